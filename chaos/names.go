package chaos

import (
	"io"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/coverage"
	"github.com/quorumlock/redlock/chaos/internal/judge"
	"github.com/quorumlock/redlock/chaos/internal/realarena"
	"github.com/quorumlock/redlock/chaos/internal/report"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// The types of a history; package [history] documents their fields.
//
// [history]: https://pkg.go.dev/github.com/quorumlock/redlock/chaos/history
type (
	// A History has what happened in one run, and is all that the judge sees.
	History = history.History

	// A Head is the first line of a history: where it comes from, and its bounds.
	Head = history.Head

	// An Event is one line of a history.
	Event = history.Event

	// A Kind is what an Event is about: see [Ask] and those that follow.
	Kind = history.Kind

	// A Fault is one fault at one node or client, for some time.
	Fault = history.Fault

	// A FaultKind is the kind of a fault: see [Kill] and those that follow.
	FaultKind = history.FaultKind

	// Trouble is the former name of FaultKind.
	Trouble = history.FaultKind

	// A Weight is the amount of memory in use at a node, or in a client for a node.
	Weight = history.Weight
)

// What a campaign runs.
type (
	// A Scenario is a mixture of faults, with the clients that work under it: see [Scenarios].
	Scenario = scenario.Scenario

	// A Plan is a scenario in which a seed has decided everything.
	Plan = scenario.Plan

	// Coverage counts the situations that schedules reach; see [Campaign.Coverage].
	Coverage = coverage.Counts

	// A CoverageReport says which situations were reached, and which were not.
	CoverageReport = coverage.Report
)

// The judge's results.
type (
	// A Violation is a promise that was not kept: the Rule, the time (At), a description (Text) and the
	// Events that show it.
	Violation = judge.Violation

	// A Verdict has the Violations of a history, by time, and counts the events in which there could have
	// been one.
	Verdict = judge.Verdict
)

// Reports, made by [NewReport].
type (
	// A Report has a campaign's findings, and is written as one page of HTML.
	Report = report.Report

	// A ScenarioResult is the result of one scenario in one arena.
	ScenarioResult = report.ScenarioResult

	// A ShownRun is a history to look at, its verdict, and the command that runs it again.
	ShownRun = report.ShownRun
)

// The kinds of events; package history documents them.
const (
	Ask      = history.Ask
	Got      = history.Got
	Denied   = history.Denied
	Extend   = history.Extend
	Extended = history.Extended
	Failed   = history.Failed
	Renewed  = history.Renewed
	Release  = history.Release
	Released = history.Released
	Told     = history.Told
	Read     = history.Read
	Wrote    = history.Wrote
	Refused  = history.Refused
	Found    = history.Found
	Crashed  = history.Crashed
	Held     = history.Held
	Struck   = history.Struck
	Healed   = history.Healed
	Calm     = history.Calm
	Left     = history.Left
	Stalled  = history.Stalled
	Lost     = history.Lost
	Changing = history.Changing
	Changed  = history.Changed
	Break    = history.Break
	Broke    = history.Broke
	Measured = history.Measured
	Weighed  = history.Weighed
)

// The kinds of faults; package history documents them.
const (
	Kill         = history.Kill
	KillEmpty    = history.KillEmpty
	Hang         = history.Hang
	Slow         = history.Slow
	Jitter       = history.Jitter
	Cut          = history.Cut
	CutRequests  = history.CutRequests
	CutReplies   = history.CutReplies
	Part         = history.Part
	Reset        = history.Reset
	LoseReplies  = history.LoseReplies
	TearReplies  = history.TearReplies
	Repeat       = history.Repeat
	RepeatLate   = history.RepeatLate
	Flush        = history.Flush
	Evict        = history.Evict
	Full         = history.Full
	ReadOnly     = history.ReadOnly
	Loading      = history.Loading
	Locked       = history.Locked
	Crowded      = history.Crowded
	FlushScripts = history.FlushScripts
	Busy         = history.Busy
	Foreign      = history.Foreign
	Values       = history.Values
	Step         = history.Step
	Mute         = history.Mute
	Deafen       = history.Deafen
	Churn        = history.Churn
	Clock        = history.Clock
	Still        = history.Still
	Mislead      = history.Mislead
	Copy         = history.Copy
	Remake       = history.Remake
	Restore      = history.Restore
	CutFile      = history.CutFile
	FlipFile     = history.FlipFile
	OldFile      = history.OldFile
	OtherFile    = history.OtherFile
	PowerCut     = history.PowerCut
	DiskFull     = history.DiskFull
	Slew         = history.Slew
	Boot         = history.Boot
	Pause        = history.Pause
	Suspend      = history.Suspend
	Crash        = history.Crash
	Skew         = history.Skew
)

// Scenarios lists all scenarios. They are in package chaos/internal/scenario, one entry each.
var Scenarios = scenario.All

// ReadHistory reads a history that [History.Write] has written.
func ReadHistory(r io.Reader) (*History, error) { return history.Decode(r) }

// Judge checks a history by every rule. It is a pure function, and accepts any history, even an impossible one.
func Judge(h *History) Verdict { return judge.Judge(h) }

// ClientMain must be called first in main, or TestMain, of a program that runs plans in the [Real]
// arena. The clients there are processes of their own, and each of them is this program again. In
// such a process ClientMain runs the client and does not return; in any other it returns at once.
func ClientMain() { realarena.ClientMain() }
