// Package report draws judged histories as one HTML page, and describes events.
package report

import (
	"io"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/judge"
)

// A Report has a campaign's findings, for readers.
type Report struct {
	Title   string
	Created time.Time
	Good    string // what is said if no rule was broken; "": that all promises were kept
	Summary []ScenarioResult
	Shown   []ShownRun
}

// A ScenarioResult is the result of one scenario in one arena.
type ScenarioResult struct {
	Scenario   string  `json:"scenario"`
	About      string  `json:"about,omitempty"` // a sentence
	Arena      string  `json:"arena"`
	Schedules  int     `json:"schedules"`  // that were run
	Holds      int     `json:"holds"`      // in all of them
	Violations int     `json:"violations"` // in all of them, without the expected ones
	PerSecond  float64 `json:"per_second"` // schedules

	// MustFail says that a promise cannot be kept here, and that the judge must notice;
	// Failed that it has. Fails lists the rules that may be broken (nil: all), and
	// Because says why.
	MustFail bool     `json:"must_fail,omitempty"`
	Failed   bool     `json:"failed,omitempty"`
	Fails    []string `json:"fails,omitempty"`
	Because  string   `json:"because,omitempty"`

	// Seed is the seed of the first schedule with a violation, or else of the first
	// schedule; Replay is the command that runs it again.
	Seed   uint64 `json:"seed"`
	Replay string `json:"replay,omitempty"`
}

// OK reports whether the scenario went as it should.
func (s ScenarioResult) OK() bool { return s.Violations == 0 && (s.Failed || !s.MustFail) }

// Outcome summarises how the scenario went.
func (s ScenarioResult) Outcome() string {
	switch {
	case s.Violations > 0:
		return FormatCount(s.Violations, "violation")
	case s.MustFail && s.Failed:
		return "failed, as it must"
	case s.MustFail:
		return "did not fail, but must"
	case s.Schedules == 0:
		return "not run"
	}
	return "kept"
}

// unexpected counts the violations that must not occur.
func (s ScenarioResult) unexpected(v judge.Verdict) (n int) {
	for _, violation := range v.Violations {
		if !s.MustFail || s.Fails != nil && !slices.Contains(s.Fails, violation.Rule) {
			n++
		}
	}
	return n
}

// A ShownRun is a history to show, with the judge's verdict.
type ShownRun struct {
	History *history.History
	Verdict judge.Verdict
	Replay  string // the command that runs it again
}

// Write writes the report as one HTML page that needs no other file, no network
// and no script.
func (r *Report) Write(w io.Writer) error {
	return reportTemplate().Execute(w, r.page())
}
