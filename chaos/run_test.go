package chaos_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

func ExampleTest() {
	// func TestLocksInTrouble(t *testing.T)
	test := func(t *testing.T) {
		chaos.Run(t, chaos.Config{
			Options:   &redlock.Options{TTL: 3 * time.Second, Prefix: "lock:"}, // the program's own
			Nodes:     5,
			Scenarios: []string{"crashing nodes", "partitions", "clients"},
		})
	}
	_ = test
}

// hopeless has faults that no lock survives: keys that are dropped while they are held, and
// machines that stand still.
func hopeless() *chaos.Scenario {
	return &chaos.Scenario{
		Name: "broken nodes", About: "made up",
		Nodes: []int{3}, Clients: [2]int{4, 4}, TTL: []time.Duration{200 * time.Millisecond}, RTT: []time.Duration{time.Millisecond},
		Span: 4, Spread: 1, Rate: 20, Troubles: []chaos.Trouble{chaos.Evict, chaos.Evict, chaos.Suspend},
	}
}

// If all promises are kept the test passes, in the caller's arenas and with the caller's options.
func TestTest(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	chaos.Run(t, chaos.Config{
		Options:   &redlock.Options{TTL: time.Second, Prefix: "lock:", Hooks: &redlock.Hooks{Warning: func(error) {}}},
		Nodes:     5,
		Scenarios: need.Sized([]string{"calm"}, []string{"calm", "crashing-nodes"}, []string{"calm", "crashing-nodes"}),
		Schedules: need.Sized(2, 20, 20), Miniredis: need.Sized(1, 2, 2), Seed: 1, Report: page,
	})
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "All promises kept") || !strings.Contains(string(text), "TestTest") {
		t.Errorf("%v: the report has %d bytes", err, len(text))
	}
}

// inChild has tests that must fail or be skipped. They run in processes of their own, with the
// output that these must print next to them.
var inChild = []struct {
	name string
	cfg  chaos.Config
	want string // a pattern
}{
	{"violations", chaos.Config{Scenarios: []string{"broken nodes"}, Schedules: 20, Miniredis: 1, Seed: 1},
		`model, broken nodes: \d+ violations?\n +seed \d+, at \S+, (exclusion|told): (.*\n)+? +replay: redlock chaos --arena model --scenario "broken nodes" --seed \d+ --schedules 1\n` +
			`(.*\n)*? +to run it again: chaos.Run with Config.Seed \d+, Scenarios "broken nodes", Schedules 1, and the same Options and Nodes\n` +
			`(.*\n)* +--- FAIL: TestInChild/violations/model/broken_nodes`},
	{"flags for what there are flags for", chaos.Config{Scenarios: []string{"broken nodes"}, Schedules: 20, Miniredis: 1, Nodes: 5, Options: &redlock.Options{TTL: 100 * time.Millisecond}},
		`Config.Seed is [1-9]\d*\n(.*\n)* +replay: redlock chaos --arena model --scenario "broken nodes" --seed \d+ --schedules 1 --nodes 5 --ttl 100ms\n`},
	{"negative", chaos.Config{Nodes: -1, Schedules: -2, Miniredis: -3, Real: -4},
		`: chaos: Config\.Nodes -1 is negative\n +chaos: Config\.Schedules -2 is negative\n +chaos: Config\.Miniredis -3 is negative\n +chaos: Config\.Real -4 is negative\n`},
	{"too many nodes", chaos.Config{Nodes: 9}, `: chaos: Config\.Nodes 9: there can be 8\n`},
	{"no such scenario", chaos.Config{Scenarios: []string{"calm", "crashes"}}, `: chaos: Config\.Scenarios: there is no scenario "crashes"; there are: crashing nodes, `},
	{"one scenario twice", chaos.Config{Scenarios: []string{"slow-links", "slow links"}}, `: chaos: Config\.Scenarios: "slow links" is there twice\n`},
	{"a clock", chaos.Config{Options: &redlock.Options{Clock: clock{}}}, `: chaos: Config\.Options\.Clock: the harness has clocks of its own`},
	{"options that New refuses", chaos.Config{Options: &redlock.Options{TTL: time.Second, MaxTTL: time.Millisecond}},
		`: chaos: Config: 3 nodes: redlock: Options\.MaxTTL 1ms is less than TTL 1s\n`},
	{"a quorum for fewer nodes", chaos.Config{Options: &redlock.Options{Quorum: 3}}, `: chaos: Config: 7 nodes: redlock: Options\.Quorum 3 of 7 nodes is no majority`},
	{"a scenario that does not fit", chaos.Config{Nodes: 2, Scenarios: []string{"calm", "minority"}}, `: chaos: Config\.Scenarios: "minority": it is about a minority that fails`},
	{"a TTL that is too short", chaos.Config{Options: &redlock.Options{TTL: 4 * time.Millisecond}, Scenarios: []string{"calm"}},
		`: chaos: Config\.Scenarios: "calm": a TTL of 4ms is over before`},
	{"a report that cannot be written", chaos.Config{Report: "/no/such/directory/page.html"}, `: chaos: Config\.Report: open /no/such`},
	{"no server", chaos.Config{Scenarios: []string{"calm"}, Schedules: 1, Miniredis: 1, Real: 1}, ` no redis-server in PATH.*\n(.*\n)* +--- SKIP: TestInChild/no_server/real `},
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

const childVariable = "REDLOCK_CHAOS_TEST_CHILD"

func TestInChild(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		need.Elsewhere(t, "TestOutcomes runs it")
	}
	chaos.Scenarios = append(slices.Clone(chaos.Scenarios), hopeless())
	for _, c := range inChild {
		t.Run(c.name, func(t *testing.T) { chaos.Run(t, c.cfg) })
	}
	t.Run("in a bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { chaos.Run(t, chaos.Config{}) })
	})
}

func TestOutcomes(t *testing.T) {
	need.Full(t) // it starts a program for each
	ends := func(name, want string) {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestInChild$/^"+strings.ReplaceAll(name, " ", "_")+"$")
			cmd.Env = append(os.Environ(), childVariable+"=1", "PATH=/no/such/directory", "GORACE=atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			if failed := err != nil; failed == (name == "no server") || !regexp.MustCompile(want).Match(out) {
				t.Errorf("failed is %v, and there should be %s in\n%s", failed, want, out)
			}
		})
	}
	for _, c := range inChild {
		ends(c.name, c.want)
	}
	ends("in a bubble", `: chaos: Config: virtual time is not available here, as in a testing/synctest bubble: `)
}

// A scenario that must fail and has not is an error only if it ran often enough; one that did not
// run at all is none.
func TestFindings(t *testing.T) {
	result := func(arena string, schedules, violations int, failed bool) chaos.ScenarioResult {
		return chaos.ScenarioResult{
			Scenario: "s", Arena: arena, Schedules: schedules, Violations: violations, MustFail: true, Failed: failed, Fails: []string{"told"}, Because: "why",
		}
	}
	for _, c := range []struct {
		result chaos.ScenarioResult
		ok     bool
		tell   string
	}{
		{result("model", 1999, 0, false), true, "model, s: not shown: why"},
		{result("model", 2000, 0, false), false, "model, s: did not fail, but must: why"},
		{result("miniredis", 2000, 0, false), true, "miniredis, s: not shown: why"},
		{result("model", 2000, 0, true), true, "model, s: failed, as it must: why"},
		{result("model", 10, 2, true), false, "model, s: 2 violations"},
		{result("model", 0, 0, false), true, "model, s: not run: why"},
	} {
		f := chaos.Finding{ScenarioResult: c.result}
		if f.OK() != c.ok || f.Tell() != c.tell {
			t.Errorf("%+v: OK is %v, and it tells %q", c.result, f.OK(), f.Tell())
		}
		r := chaos.NewReport("", []chaos.Finding{f})
		if r.Summary[0].OK() != c.ok {
			t.Errorf("%+v: the report says %s", c.result, r.Summary[0].Outcome())
		}
	}
}

// Of a schedule with many violations some are printed, the unexpected ones first; if there are
// unexpected ones, no expected one is printed.
func TestTell(t *testing.T) {
	f := chaos.Finding{ScenarioResult: chaos.ScenarioResult{Scenario: "s", Arena: "a", Schedules: 1, Violations: 7, MustFail: true, Failed: true, Fails: []string{"told"}}}
	var v chaos.Verdict
	for range 7 {
		v.Violations = append(v.Violations, chaos.Violation{Rule: "told", Text: "late"}, chaos.Violation{Rule: "exclusion", Text: "two\nlines"})
	}
	f.Shown = []chaos.ShownRun{{History: &chaos.History{Run: chaos.Head{Seed: 8}}, Verdict: v, Replay: "again"}}
	want := "a, s: 7 violations" + strings.Repeat("\n    seed 8, at 0s, exclusion: two; lines", 5) + "\n    and 2 more in that schedule\n    replay: again"
	if got := f.Tell(); got != want {
		t.Errorf("it tells\n%s\nand not\n%s", got, want)
	}
}

// The most similar names come first.
func TestClosest(t *testing.T) {
	for name, want := range map[string]string{
		"everythign": "everything", "Refusal": "refusals", "node": "crashing nodes", "crashed": "crashing nodes", "stepping-clock": "stepping clocks", "neighbors": "neighbours",
	} {
		if got := (&chaos.UnknownScenario{Name: name}).Closest(); got[0] != want || len(got) != len(chaos.Scenarios) {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// There are no flags for most options, so no command is printed for those.
func TestCommand(t *testing.T) {
	for _, c := range []struct {
		opts *redlock.Options
		want string
	}{
		{nil, `redlock chaos --arena model --scenario "a b" --seed 7 --schedules 1 --nodes 3`},
		{&redlock.Options{}, `redlock chaos --arena model --scenario "a b" --seed 7 --schedules 1 --nodes 3`},
		{&redlock.Options{TTL: time.Minute}, `redlock chaos --arena model --scenario "a b" --seed 7 --schedules 1 --nodes 3 --ttl 1m0s`},
		{&redlock.Options{TTL: time.Minute, Prefix: "p"}, ""},
		{&redlock.Options{Hooks: &redlock.Hooks{}}, ""},
	} {
		if got := (&chaos.Campaign{Arena: chaos.Model, Nodes: 3, Options: c.opts}).Command("a b", 7); got != c.want {
			t.Errorf("%+v: %s", c.opts, got)
		}
	}
}
