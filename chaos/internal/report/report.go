// Package report draws judged histories as one HTML page, and puts events in words.
package report

import (
	"io"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/judge"
)

// A Report is what a campaign has found, for people to look at.
type Report struct {
	Title   string
	Created time.Time
	Summary []ScenarioResult
	Shown   []ShownRun
}

// A ScenarioResult is what became of one scenario in one arena.
type ScenarioResult struct {
	Scenario   string  `json:"scenario"`
	About      string  `json:"about,omitempty"` // a sentence
	Arena      string  `json:"arena"`
	Schedules  int     `json:"schedules"`  // that were run
	Holds      int     `json:"holds"`      // in all of them
	Violations int     `json:"violations"` // in all of them, but for those that there must be
	PerSecond  float64 `json:"per_second"` // schedules

	// MustFail says that a promise cannot be kept here, and that the judge has to
	// notice; Failed that it has. Fails are the rules that may be broken, all of
	// them if it is nil, and Because says why.
	MustFail bool     `json:"must_fail,omitempty"`
	Failed   bool     `json:"failed,omitempty"`
	Fails    []string `json:"fails,omitempty"`
	Because  string   `json:"because,omitempty"`

	// Seed is that of the first schedule with a violation, or else of the first;
	// Replay is the command that runs it again.
	Seed   uint64 `json:"seed"`
	Replay string `json:"replay,omitempty"`
}

// OK says whether the scenario went as it should.
func (s ScenarioResult) OK() bool { return s.Violations == 0 && (s.Failed || !s.MustFail) }

// Outcome says in some words how the scenario went.
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

// unexpected counts the violations that there must not be.
func (s ScenarioResult) unexpected(v judge.Verdict) (n int) {
	for _, violation := range v.Violations {
		if !s.MustFail || s.Fails != nil && !slices.Contains(s.Fails, violation.Rule) {
			n++
		}
	}
	return n
}

// A ShownRun is a history to look at, and what the judge says of it.
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
