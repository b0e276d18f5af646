// Package chaos puts Lockers to work while nodes die, hang, forget, refuse and are cut off, and
// clients are stopped, die or have wrong clocks. It records what every client did, and a judge says
// which promise was not kept.
//
// [Run] runs the scenarios with a program's own Options, as subtests. [Campaign] is what the
// command redlock chaos runs. Package [history] describes the record. For tests of code that
// uses locks there is package [redlocktest].
//
// [history]: https://pkg.go.dev/github.com/quorumlock/redlock/chaos/history
// [redlocktest]: https://pkg.go.dev/github.com/quorumlock/redlock/redlocktest
package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/internal/realarena"
	"github.com/quorumlock/redlock/chaos/internal/report"
)

// Config says what [Run] runs. The zero value is a good beginning.
type Config struct {
	// Options are those of the program under test. A field that is set, such as TTL, holds for all
	// scenarios; each scenario chooses the others itself. The Clock is the harness's. In arenas
	// whose clients are processes of their own, Hooks are not called.
	Options *redlock.Options

	Nodes     int      // how many, up to 8; 0: each scenario has its own
	Scenarios []string // by name, as redlock chaos --list has them; nil: all

	// How many schedules there are in each arena. The scenarios share them, and
	// each has one at least.
	Schedules int // in the model; 0: 2000
	Miniredis int // with go-redis and Lua; 0: 20
	Real      int // with redis-server and processes; 0: none

	Seed   uint64 // of each scenario's first schedule; 0: a fresh one
	Report string // a file for a page with the histories; "": none
}

// Run puts Lockers with the given options through the scenarios, in each of the
// arenas, and judges what they did: nodes crash, hang and forget, the network
// is cut and slow, processes stop and die. Each scenario is a subtest, such as
// model/crashing_nodes. It fails if a promise was not kept, and says which, how that
// happened, and how to reproduce it; it logs the seed that it used.
//
//	func TestLocksInTrouble(t *testing.T) {
//		chaos.Run(t, chaos.Config{
//			Options: &redlock.Options{TTL: 3 * time.Second, Prefix: "lock:"},
//			Nodes:   5,
//		})
//	}
//
// Its findings are about the options: with a Drift of less than a hundredth of the TTL, nodes whose
// clocks run fast break the rules. The model and miniredis have virtual time, in testing/synctest
// bubbles of their own, so Run cannot be called in one. But with a TTL of minutes it takes long
// even so.
//
// Config.Real needs a redis-server, and is skipped if there is none. Its clients are processes that
// run the test's program again, so its TestMain must begin with [ClientMain]:
//
//	func TestMain(m *testing.M) {
//		chaos.ClientMain()
//		os.Exit(m.Run())
//	}
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if _, client := os.LookupEnv(realarena.ClientVariable); client {
		t.Fatal("chaos: this process is to be a client: TestMain must begin with chaos.ClientMain")
	}
	if err := cfg.check(); err != nil {
		t.Fatal(err)
	}
	var page *os.File
	if cfg.Report != "" {
		var err error
		if page, err = os.Create(cfg.Report); err != nil {
			t.Fatalf("chaos: Config.Report: %v", err)
		}
		defer page.Close()
	}
	if cfg.Seed == 0 {
		cfg.Seed = FreshSeed()
	}
	t.Logf("chaos: Config.Seed is %d", cfg.Seed)
	var all []Finding
	for _, c := range cfg.campaigns() {
		t.Run(c.Arena.Name, func(t *testing.T) { all = append(all, cfg.subtests(t, c)...) })
	}
	if page != nil {
		if err := errors.Join(NewReport(t.Name(), all).Write(page), page.Close()); err != nil {
			t.Errorf("chaos: Config.Report: %v", err)
		}
	}
}

// subtests carries a campaign out, scenario by scenario.
func (cfg *Config) subtests(t *testing.T, c *Campaign) (all []Finding) {
	if err := c.Arena.Ready(); err != nil {
		t.Skip(err)
	}
	for i, share := range c.shares() {
		s := c.Scenarios[i]
		t.Run(s.Name, func(t *testing.T) {
			if why := c.Arena.Unfit(s, c.Options, c.Nodes); why != "" {
				t.Skip("chaos: ", why)
			}
			alone := *c
			alone.Scenarios, alone.Schedules = []*Scenario{s}, share
			f := alone.Findings(t.Context())[0]
			all = append(all, f)
			text := fmt.Sprintf("%s with %s\n%s", report.FormatCount(f.Schedules, "schedule"), report.FormatCount(f.Holds, "hold"), f.Tell())
			if f.OK() {
				t.Log(text)
				return
			}
			t.Errorf("%s\nto run it again: chaos.Run with Config.Seed %d, Scenarios %q, %s 1, and the same Options and Nodes",
				text, f.Seed, s.Name, countFields[c.Arena])
		})
	}
	return all
}

// countFields has, for each arena, the field of Config with its number of schedules.
var countFields = map[*Arena]string{Model: "Schedules", Miniredis: "Miniredis", Real: "Real"}

// campaigns lists the campaigns to run, also those that cannot run here.
func (cfg *Config) campaigns() (all []*Campaign) {
	scenarios, _ := FindScenarios(cfg.Scenarios)
	for _, of := range []struct {
		arena     *Arena
		schedules int
	}{{Model, cmp.Or(cfg.Schedules, 2000)}, {Miniredis, cmp.Or(cfg.Miniredis, 20)}, {Real, cfg.Real}} {
		if of.schedules > 0 {
			all = append(all, &Campaign{
				Arena: of.arena, Scenarios: scenarios, Schedules: of.schedules, Seed: cfg.Seed, Options: cfg.Options, Nodes: cfg.Nodes,
			})
		}
	}
	return all
}

// shares gives the number of schedules of each scenario, as in a campaign of all.
func (c *Campaign) shares() []int {
	n := make([]int, len(c.Scenarios))
	for k := range c.order(c.Scenarios) {
		n[k.scenario]++
	}
	return n
}

// MostNodes is the largest number of nodes: in the model each actor has turns of its own, and there
// are turns for no more.
const MostNodes = 8

// check checks a Config as a set.
func (cfg *Config) check() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf("chaos: Config."+format, args...)) }
	for _, n := range []struct {
		field string
		value int
	}{{"Nodes", cfg.Nodes}, {"Schedules", cfg.Schedules}, {"Miniredis", cfg.Miniredis}, {"Real", cfg.Real}} {
		if n.value < 0 {
			refuse("%s %d is negative", n.field, n.value)
		}
	}
	if cfg.Nodes > MostNodes {
		refuse("Nodes %d: there can be %d", cfg.Nodes, MostNodes)
	}
	scenarios, err := FindScenarios(cfg.Scenarios)
	if err != nil {
		refuse("Scenarios: %w", err)
	}
	if cfg.Options != nil && cfg.Options.Clock != nil {
		refuse("Options.Clock: the harness has clocks of its own, and sets them forward and back")
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := CheckOptions(cfg.Options, cfg.Nodes, scenarios); err != nil {
		return fmt.Errorf("chaos: Config: %w", err)
	}
	for _, s := range scenarios {
		why := ""
		for _, c := range cfg.campaigns() {
			if why = c.Arena.Unfit(s, cfg.Options, cfg.Nodes); why == "" {
				break
			}
		}
		if why != "" && len(cfg.Scenarios) > 0 {
			refuse("Scenarios: %q: %s", s.Name, why)
		}
	}
	return errors.Join(errs...)
}
