package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/internal/report"
)

// Command is what runs a schedule of this campaign again, or nothing if there are
// no flags for its Options.
func (c *Campaign) Command(scenario string, seed uint64) string {
	command := replay(c.Arena.Name, scenario, seed)
	if c.Nodes > 0 {
		command += fmt.Sprintf(" --nodes %d", c.Nodes)
	}
	if o := c.Options; o != nil {
		if *o != (redlock.Options{TTL: o.TTL}) {
			return ""
		}
		if o.TTL > 0 {
			command += fmt.Sprintf(" --ttl %v", o.TTL)
		}
	}
	return command
}

// Findings is Run for a report to people: the commands that replay a
// schedule do it with the campaign's Nodes and Options. With others than a scenario
// was written for, what must fail may go well.
func (c *Campaign) Findings(ctx context.Context) []Finding {
	findings := c.Run(ctx)
	for i := range findings {
		f := &findings[i]
		if c.Nodes > 0 || c.Options != nil {
			f.MustFail = f.MustFail && f.Failed
		}
		f.Replay = c.Command(f.Scenario, f.Seed)
		for j := range f.Shown {
			f.Shown[j].Replay = c.Command(f.Scenario, f.Shown[j].History.Run.Seed)
		}
	}
	return findings
}

// rarely is how often a scenario that must fail is run before it is a fault that
// it has not failed. In the model the rarest failure shows once in five hundred
// schedules; how it is elsewhere is not known.
const rarely = 2000

// missing reports whether what must fail has not, although it was run for long.
func (f *Finding) missing() bool {
	return f.MustFail && !f.Failed && f.Arena == Model.Name && f.Schedules >= rarely
}

// OK reports whether the scenario went as it should, for all that is known.
func (f *Finding) OK() bool { return f.Violations == 0 && !f.missing() }

// Outcome says in some words how the scenario went.
func (f *Finding) Outcome() string {
	switch {
	case f.Schedules == 0:
		return "not run"
	case f.Error != nil:
		return "could not be run"
	case f.OK() && f.MustFail && !f.Failed:
		return "not shown"
	}
	return f.ScenarioResult.Outcome()
}

// mostTold are the violations of one schedule that are told of.
const mostTold = 5

// Tell says in some lines how the scenario went: what was violated, in which
// schedules, and the commands that run them again.
func (f *Finding) Tell() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s, %s: %s", f.Arena, f.Scenario, f.Outcome())
	if f.MustFail && f.Violations == 0 {
		fmt.Fprintf(&s, ": %s", f.Because)
	}
	if f.Error != nil {
		fmt.Fprintf(&s, "\n    %v", f.Error)
	}
	for _, shown := range f.Shown {
		told := slices.Clone(shown.Verdict.Violations)
		if f.Violations > 0 {
			told = slices.DeleteFunc(told, func(v Violation) bool { return slices.Contains(f.Fails, v.Rule) })
		}
		if len(told) == 0 {
			continue
		}
		most := mostTold
		if f.OK() {
			most = 1 // it is only an example
		}
		for _, v := range told[:min(len(told), most)] {
			fmt.Fprintf(&s, "\n    seed %d, %s", shown.History.Run.Seed, strings.ReplaceAll(v.String(), "\n", "; "))
		}
		for _, text := range around(shown.History, told[0].At) {
			fmt.Fprintf(&s, "\n    %s", text)
		}
		if more := len(told) - most; more > 0 {
			fmt.Fprintf(&s, "\n    and %d more in that schedule", more)
		}
		if shown.Replay != "" {
			fmt.Fprintf(&s, "\n    replay: %s", shown.Replay)
		}
	}
	return s.String()
}

// around tells of what the computer did to a run shortly before an instant, the last of it
// last.
func around(h *History, at time.Duration) (all []string) {
	const long, most = time.Second, 12
	for _, e := range h.Events {
		servers := e.Kind == Measured && strings.HasPrefix(e.Error, "node ") // they say so when all is over
		if e.Kind != Stalled && e.Kind != Measured || !servers && (e.At > at || max(e.At, e.Until) < at-h.Run.Idle-long) {
			continue
		}
		all = append(all, fmt.Sprintf("at %v: %s", report.FormatTime(e.At), strings.ReplaceAll(report.FormatEvent(e), "\n", " ")))
	}
	return all[max(0, len(all)-most):]
}

// NewReport puts findings into a report. There is only so much room on a page for
// histories: those that need a look come first.
func NewReport(title string, findings []Finding) *Report {
	r := &Report{Title: title, Created: time.Now()}
	for i := range findings {
		f := &findings[i]
		result := f.ScenarioResult
		result.MustFail = f.MustFail && (f.Failed || f.missing())
		r.Summary = append(r.Summary, result)
	}
	for _, first := range []func(*Finding) bool{
		func(f *Finding) bool { return !f.OK() },
		func(f *Finding) bool { return f.OK() && f.Failed },
		func(f *Finding) bool { return f.OK() && !f.Failed },
	} {
		for i := range findings {
			if f := &findings[i]; first(f) {
				r.Shown = append(r.Shown, f.Shown...)
			}
		}
	}
	return r
}

// FreshSeed is one that was not used before, and that can be typed.
func FreshSeed() uint64 { return 1 + rand.Uint64N(999_999_999) }
