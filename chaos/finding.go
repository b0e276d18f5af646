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

// Command is the command that runs a schedule of this campaign again; "": there are no flags for its
// Options.
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

// Findings is Run for a report: the commands that replay a schedule use the campaign's Nodes and Options. With
// other options than a scenario was written for, a scenario that must fail may succeed.
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

// rarely is how often a scenario that must fail runs before its success is an error. In the model the rarest
// failure shows once in five hundred schedules; for the other arenas the rate is not known.
const rarely = 2000

// missing reports whether a scenario that must fail has not, although it ran often enough.
func (f *Finding) missing() bool {
	return f.MustFail && !f.Failed && f.Arena == Model.Name && f.Schedules >= rarely
}

// OK reports whether the scenario went as it should, as far as is known.
func (f *Finding) OK() bool { return f.Violations == 0 && !f.missing() }

// Outcome summarises how the scenario went.
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

// mostTold is the largest number of violations that Tell prints for one schedule.
const mostTold = 5

// Tell describes in some lines how the scenario went: the violations, their schedules, and the commands that
// run them again.
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
			most = 1 // one example is enough
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

// around lists what was measured about the computer shortly before an instant, in order.
func around(h *History, at time.Duration) (all []string) {
	const long, most = time.Second, 12
	for _, e := range h.Events {
		servers := e.Kind == Measured && strings.HasPrefix(e.Error, "node ") // servers are asked at the end of the run
		if e.Kind != Stalled && e.Kind != Measured || !servers && (e.At > at || max(e.At, e.Until) < at-h.Run.Idle-long) {
			continue
		}
		all = append(all, fmt.Sprintf("at %v: %s", report.FormatTime(e.At), strings.ReplaceAll(report.FormatEvent(e), "\n", " ")))
	}
	return all[max(0, len(all)-most):]
}

// NewReport puts findings into a report. A page has room for only so many histories: those with violations
// come first.
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

// FreshSeed returns a new seed that is short enough to type.
func FreshSeed() uint64 { return 1 + rand.Uint64N(999_999_999) }
