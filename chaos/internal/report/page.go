package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/judge"
)

// A page must open on a phone, too: so only this much of the histories is drawn. A history that is
// cut still gets enough to show what led to a violation.
const (
	mostRuns   = 24
	mostEvents = 6000 // on a page
	mostOfOne  = 3000
	leastOfOne = 250
	mostListed = 50 // violations of one history
	mostShown  = 12 // events of one violation
)

//go:embed report.html.tmpl
var reportPage string

// reportTemplate is parsed when it is needed, and not by every program that links this package.
var reportTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"digits":  formatInt,
		"count":   FormatCount,
		"round":   FormatTime,
		"seconds": func(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) },
		"who":     formatSubject,
		"tell":    FormatEvent,
		"rate":    formatRate,
		"add":     func(a, b int) int { return a + b },
	}).Parse(reportPage))
})

// A reportView is the data of the template.
type reportView struct {
	*Report
	Class, Verdict, Detail string
	Schedules, Holds       int
	Violations             int // in scenarios that must not have any
	MustFail, Failed       int
	Runs                   []runView
	Omitted                int // of Shown
}

// A runView is one history with its drawing.
type runView struct {
	ShownRun
	ID             string
	Class, Outcome string
	Holds          int
	Broken         []brokenView
	Unlisted       int
	Chart          *chart
}

// A brokenView describes a violation.
type brokenView struct {
	judge.Violation
	Number int
	Drawn  bool
	Shows  []eventView
	More   int
}

// An eventView is a line of the list of events.
type eventView struct {
	Index int
	history.Event
}

// page collects the data of the page.
func (r *Report) page() *reportView {
	p := &reportView{Report: r}
	results := map[[2]string]ScenarioResult{}
	for _, s := range r.Summary {
		results[[2]string{s.Scenario, s.Arena}] = s
		p.Schedules += s.Schedules
		p.Holds += s.Holds
		p.Violations += s.Violations
		if s.MustFail {
			p.MustFail++
		}
		if s.MustFail && s.Failed {
			p.Failed++
		}
	}
	unexpected := func(s ShownRun) int {
		return results[[2]string{s.History.Run.Scenario, s.History.Run.Arena}].unexpected(s.Verdict)
	}
	seen := 0
	for _, s := range r.Shown {
		seen += unexpected(s)
	}
	// Runs with violations come first, so that they are not left out.
	shown := slices.Clone(r.Shown)
	slices.SortStableFunc(shown, func(a, b ShownRun) int { return min(unexpected(b), 1) - min(unexpected(a), 1) })
	shown = shown[:min(len(shown), mostRuns)]
	p.Omitted = len(r.Shown) - len(shown)
	limit := drawLimit(shown)
	for i, s := range shown {
		result := results[[2]string{s.History.Run.Scenario, s.History.Run.Arena}]
		p.Runs = append(p.Runs, newRunView(s, fmt.Sprintf("r%d", i+1), result, limit))
	}
	// The headline must not contradict the runs below it.
	p.Violations = max(p.Violations, seen)
	p.headline()
	return p
}

// drawLimit divides the room on a page among the histories. The long ones get what the short ones do
// not need.
func drawLimit(shown []ShownRun) int {
	var lengths []int
	for _, s := range shown {
		lengths = append(lengths, len(s.History.Events))
	}
	slices.Sort(lengths)
	left := mostEvents
	for i, n := range lengths {
		if share := left / (len(lengths) - i); n > share {
			return min(max(share, leastOfOne), mostOfOne)
		}
		left -= n
	}
	return mostOfOne
}

// headline is the summary. That no rule was broken means something only if schedules were run, and if
// the scenarios that must fail have failed.
func (p *reportView) headline() {
	missing := ""
	switch n := p.MustFail - p.Failed; {
	case n == 1:
		missing = "an expected failure did not show"
	case n > 1:
		missing = formatInt(n) + " expected failures did not show"
	}
	switch {
	case p.Violations > 0:
		p.Class, p.Verdict = "bad", FormatCount(p.Violations, "violation")
		if missing != "" {
			p.Detail = "And " + missing + "."
		}
	case missing != "":
		p.Class, p.Verdict = "bad", strings.ToUpper(missing[:1])+missing[1:]
		p.Detail = "Too few schedules were run, or the judge overlooks things."
	case p.Schedules == 0 && len(p.Runs) == 0:
		p.Class, p.Verdict = "none", "Nothing was run"
	default:
		p.Class, p.Verdict = "good", cmp.Or(p.Good, "All promises kept")
		if p.MustFail > 0 {
			p.Detail = "What must fail has failed."
		}
	}
}

func newRunView(s ShownRun, id string, result ScenarioResult, limit int) runView {
	v := runView{ShownRun: s, ID: id, Class: "good", Outcome: "kept"}
	for _, e := range s.History.Events {
		if e.Kind == history.Got {
			v.Holds++
		}
	}
	switch n := len(s.Verdict.Violations); {
	case result.unexpected(s.Verdict) > 0:
		v.Class, v.Outcome = "bad", FormatCount(n, "violation")
	case n > 0:
		v.Outcome = FormatCount(n, "violation") + ", as it must"
	case result.MustFail:
		v.Class, v.Outcome = "none", "no violation here"
	case !s.History.Run.Start.IsZero():
		v.Outcome = "in order"
	}
	v.Chart = newChart(s.History, s.Verdict, id, limit)
	listed := s.Verdict.Violations[:min(len(s.Verdict.Violations), mostListed)]
	v.Unlisted = len(s.Verdict.Violations) - len(listed)
	for i, violation := range listed {
		b := brokenView{Violation: violation, Number: i + 1, Drawn: v.Chart.shows(violation.At)}
		for _, index := range violation.Events {
			if index < 0 || index >= len(s.History.Events) {
				continue
			}
			if len(b.Shows) == mostShown {
				b.More++
				continue
			}
			b.Shows = append(b.Shows, eventView{index, s.History.Events[index]})
		}
		v.Broken = append(v.Broken, b)
	}
	return v
}

// Length is how long the run took.
func (v runView) Length() time.Duration {
	if n := len(v.History.Events); n > 0 {
		return v.History.Events[n-1].At
	}
	return 0
}

// Listed returns the events that are drawn.
func (v runView) Listed() []eventView {
	var all []eventView
	for i := v.Chart.First; i < v.Chart.Last; i++ {
		all = append(all, eventView{i, v.History.Events[i]})
	}
	return all
}
