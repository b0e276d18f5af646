package chaos

import (
	"io"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/judge"
	"github.com/quorumlock/redlock/chaos/internal/realarena"
	"github.com/quorumlock/redlock/chaos/internal/report"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// What a run was, and what happened in it: package [history] says what each field is.
//
// [history]: https://pkg.go.dev/github.com/quorumlock/redlock/chaos/history
type (
	// A History is what happened in one run, and all that the judge sees.
	History = history.History

	// A Head is the first line of a history: where it comes from, and its bounds.
	Head = history.Head

	// An Event is one line of a history.
	Event = history.Event

	// A Kind is what an Event is about: see [Ask] and those that follow.
	Kind = history.Kind

	// A Fault is one thing that goes wrong, at one place, for some time.
	Fault = history.Fault

	// A FaultKind is what goes wrong: see [Kill] and those that follow.
	FaultKind = history.FaultKind

	// Trouble is FaultKind by its first name.
	Trouble = history.FaultKind

	// A Weight is what there is in memory at a node, or for a node.
	Weight = history.Weight
)

// What is run.
type (
	// A Scenario is a mixture of faults, and the clients that live with it: see [Scenarios].
	Scenario = scenario.Scenario

	// A Plan is a scenario with everything in it decided: what a seed stands for.
	Plan = scenario.Plan
)

// What the judge says.
type (
	// A Violation is a promise that was not kept: by which Rule, At what time, in a Text,
	// and the Events that show it.
	Violation = judge.Violation

	// A Verdict has the Violations of a history, by time, and counts how much there was
	// that could have been one.
	Verdict = judge.Verdict
)

// What [NewReport] makes.
type (
	// A Report is what a campaign has found, and is written as one page of HTML.
	Report = report.Report

	// A ScenarioResult is what became of one scenario in one arena.
	ScenarioResult = report.ScenarioResult

	// A ShownRun is a history to look at, its verdict, and the command that runs it again.
	ShownRun = report.ShownRun
)

// The kinds of events: package history says what each tells.
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
	Measured = history.Measured
	Weighed  = history.Weighed
)

// The kinds of faults: package history says what each does.
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
	Step         = history.Step
	Mute         = history.Mute
	Deafen       = history.Deafen
	Churn        = history.Churn
	Clock        = history.Clock
	Forge        = history.Forge
	Still        = history.Still
	Replay       = history.Replay
	Boot         = history.Boot
	Pause        = history.Pause
	Suspend      = history.Suspend
	Crash        = history.Crash
	Skew         = history.Skew
)

// Scenarios are all there are. They are in package chaos/internal/scenario, one entry each.
var Scenarios = scenario.All

// ReadHistory reads what [History.Write] has written.
func ReadHistory(r io.Reader) (*History, error) { return history.Decode(r) }

// Judge looks at a history by every rule. It is pure, and has an answer to any history, also
// to one that no client can have lived through.
func Judge(h *History) Verdict { return judge.Judge(h) }

// ClientMain must be the first thing that main, or TestMain, of a program does that runs
// plans in the [Real] arena. The clients there are processes of their own, and each of them
// is this program again. It returns at once unless this process is one; then it runs the
// client and does not return.
func ClientMain() { realarena.ClientMain() }
