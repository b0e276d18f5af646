package chaos

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/internal/coverage"
)

// A Campaign carries out many schedules and judges each of them.
type Campaign struct {
	Arena     *Arena
	Scenarios []*Scenario // nil: all that the arena has
	Schedules int         // in all; 0: until the context ends
	Seed      uint64      // of the first schedule of each scenario; the next ones count up

	// Options are options of the Lockers that override the scenarios': a TTL, for example, then
	// holds for all scenarios. The Clock is the harness's.
	Options *redlock.Options
	Nodes   int // 0: the scenario's

	// Coverage counts the situations that the schedules reach; nil: they are not counted. It is for [Model].
	Coverage *Coverage

	Workers  int                               // schedules at once; 0: as many as processors
	Progress func(Progress)                    // called now and then; may be nil
	Violated func(h *History, verdict Verdict) // called with each history that has violations which it must not have; may be nil
}

// Progress is how far a campaign has come.
type Progress struct {
	Arena       string
	Done, Total int // schedules; Total is 0 if there is no end
	Violations  int
	Elapsed     time.Duration
}

// A Finding is the result of a campaign for one scenario.
type Finding struct {
	ScenarioResult
	Writes      int `json:"writes,omitempty"`       // that the resource accepted
	FailedAfter int `json:"failed_after,omitempty"` // how many schedules it took until a scenario that must fail did

	Shown []ShownRun `json:"-"` // those with a violation, or, if there is none, the first
	Error error      `json:"-"` // what kept a schedule from being carried out
}

// mostShownRuns bounds the histories that are kept for one scenario.
const mostShownRuns = 3

// Run carries the campaign out and returns its findings, scenario by scenario. It ends early when ctx
// does.
func (c *Campaign) Run(ctx context.Context) []Finding {
	scenarios := c.Scenarios
	if scenarios == nil {
		scenarios = c.Arena.Scenarios()
	}
	findings := make([]Finding, len(scenarios))
	for i, s := range scenarios {
		findings[i].ScenarioResult = ScenarioResult{
			Scenario: s.Name, About: s.About, Arena: c.Arena.Name, MustFail: s.Fails != nil, Fails: s.Fails, Because: s.Because, Seed: c.Seed,
		}
	}
	type job struct {
		scenario int
		seed     uint64
	}
	jobs := make(chan job)
	var mu sync.Mutex
	begin, done, violations := time.Now(), 0, 0
	var workers sync.WaitGroup
	for range c.workers() {
		workers.Go(func() {
			for j := range jobs {
				s := scenarios[j.scenario]
				start := time.Now()
				h, verdict, err := c.one(s, j.seed)
				mu.Lock()
				f := &findings[j.scenario]
				if f.add(s, j.seed, h, verdict, err, time.Since(start)); f.Violations > 0 && c.Violated != nil && !expects(s, verdict) {
					c.Violated(h, verdict)
				}
				done++
				if violations = 0; c.Progress != nil && done%max(c.Schedules/500, 1) == 0 {
					for i := range findings {
						violations += findings[i].Violations
					}
					c.Progress(Progress{c.Arena.Name, done, c.Schedules, violations, time.Since(begin)})
				}
				mu.Unlock()
			}
		})
	}
	for k := range c.order(scenarios) {
		if ctx.Err() != nil {
			break
		}
		jobs <- job{k.scenario, c.Seed + uint64(k.number)}
	}
	close(jobs)
	workers.Wait()
	for i := range findings {
		f := &findings[i]
		f.Replay = replay(c.Arena.Name, f.Scenario, f.Seed)
		if f.PerSecond > 0 {
			f.PerSecond = float64(f.Schedules) / f.PerSecond // until here it was the time
		}
	}
	return findings
}

func (c *Campaign) workers() int {
	if c.Workers > 0 {
		return c.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// one carries out one schedule.
func (c *Campaign) one(s *Scenario, seed uint64) (*History, Verdict, error) {
	p := c.Arena.plan(s, seed, c.Options, c.Nodes)
	if c.Coverage != nil {
		p.Sheet = coverage.NewSheet(s.Faults(c.Arena.limits()), s.Steps())
	}
	h, err := c.Arena.run(p)
	if err != nil {
		return nil, Verdict{}, err
	}
	if c.Coverage != nil {
		p.Sheet.History(h)
		c.Coverage.Add(p.Sheet)
	}
	return h, Judge(h), nil
}

// A place is the number-th schedule of a scenario.
type place struct{ scenario, number int }

// order mixes the scenarios, each as often as its weight allows, so that each has had its share, and
// at least one schedule, whenever a campaign ends.
func (c *Campaign) order(scenarios []*Scenario) func(func(place) bool) {
	return func(yield func(place) bool) {
		next := make([]float64, len(scenarios)) // what each has cost so far
		number := make([]int, len(scenarios))
		for k := 0; c.Schedules == 0 || k < max(c.Schedules, len(scenarios)); k++ {
			least := 0
			for i := range next {
				if next[i] < next[least] {
					least = i
				}
			}
			if !yield(place{least, number[least]}) {
				return
			}
			number[least]++
			next[least] += float64(max(scenarios[least].Weight, 1))
		}
	}
}

// add counts one schedule in.
func (f *Finding) add(s *Scenario, seed uint64, h *History, v Verdict, err error, took time.Duration) {
	f.Schedules++
	f.PerSecond += took.Seconds()
	if err != nil {
		if f.Error == nil {
			f.Error, f.Seed = fmt.Errorf("seed %d: %w", seed, err), seed
		}
		f.Violations++
		return
	}
	f.Holds += v.Holds
	f.Writes += v.Writes
	show := f.Schedules == 1
	if expects(s, v) {
		if len(v.Violations) > 0 && !f.Failed {
			f.Failed, f.FailedAfter, f.Seed = true, f.Schedules, seed
			f.Shown, show = nil, true
		}
	} else {
		if f.Violations == 0 {
			f.Seed, f.Shown = seed, nil
		}
		f.Violations += len(v.Violations)
		show = len(f.Shown) < mostShownRuns
	}
	if show {
		f.Shown = append(f.Shown, ShownRun{History: h, Verdict: v, Replay: replay(h.Run.Arena, s.Name, seed)})
	}
}

// expects reports whether a verdict has only violations that the scenario is known for.
func expects(s *Scenario, v Verdict) bool {
	for i := range v.Violations {
		if !slices.Contains(s.Fails, v.Violations[i].Rule) {
			return false
		}
	}
	return true
}

// replay is the command that runs a schedule again.
func replay(arena, scenario string, seed uint64) string {
	if strings.ContainsAny(scenario, " \"") {
		scenario = strconv.Quote(scenario)
	}
	return fmt.Sprintf("redlock chaos --arena %s --scenario %s --seed %d --schedules 1", arena, scenario, seed)
}

// Replay carries out one schedule.
func (a *Arena) Replay(s *Scenario, seed uint64, opts *redlock.Options) (*History, Verdict, error) {
	return (&Campaign{Arena: a, Options: opts}).one(s, seed)
}

// Scenarios lists the scenarios that an arena can run.
func (a *Arena) Scenarios() []*Scenario {
	return slices.DeleteFunc(slices.Clone(Scenarios), func(s *Scenario) bool {
		return s.Only != nil && !slices.Contains(s.Only, a.Name) || len(s.Troubles) > 0 && len(a.limits().Able(s.Troubles)) == 0
	})
}
