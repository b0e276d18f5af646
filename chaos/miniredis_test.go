package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestMiniredis runs some seeds of every scenario: each run ends, with only the violations that its scenario is
// known for.
func TestMiniredis(t *testing.T) {
	for i, s := range Miniredis.Scenarios() {
		if !need.Sample(i, 24) {
			continue // TestModelSchedules has others, on the model
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			holds, seeds := 0, need.Sized(1, 1, 20) // make chaos has more, without the race detector
			if s.Weight > 3 {
				seeds = need.Sized(1, 1, 10)
			}
			if s.Weight > 10 {
				need.Long(t) // make chaos runs it in a shorter time
			}
			if s.Clients[1] > 10 || s.Weight > 10 {
				need.Full(t)
				seeds = 1
			}
			var plans []*Plan
			for seed := range need.Sized(5, 16, seeds) {
				plans = append(plans, Miniredis.plan(s, uint64(seed), nil, 0))
			}
			if len(plans) > seeds { // the smallest: make chaos has others
				slices.SortFunc(plans, func(a, b *Plan) int { return cmp.Compare(size(a), size(b)) })
			}
			for _, p := range plans[:seeds] {
				seed := p.Run.Seed
				h, err := Miniredis.run(p)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
					continue
				}
				verdict := Judge(h)
				for _, v := range verdict.Violations {
					if !slices.Contains(s.Fails, v.Rule) {
						t.Errorf("seed %d: %v", seed, v)
					}
				}
				holds += verdict.Holds
			}
			if holds == 0 {
				t.Error("no client ever had a lock")
			}
		})
	}
}

// size is about what it costs to carry a plan out.
func size(p *Plan) time.Duration { return p.Span * time.Duration(p.Run.Clients) }

// TestMiniredisFaultsAreTheSeeds: a seed gives the same faults at the same times.
func TestMiniredisFaultsAreTheSeeds(t *testing.T) {
	need.Full(t)
	faults := func(seed uint64) string {
		i := slices.IndexFunc(Scenarios, func(s *Scenario) bool { return s.Name == "everything" })
		h, err := Miniredis.run(Miniredis.plan(Scenarios[i], seed, nil, 0))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, e := range h.Events {
			// A crash is over when the next client has connected. That depends on the network, and
			// differs by a millisecond from run to run.
			if e.Kind == Struck || e.Kind == Healed && e.Fault.Kind != Crash {
				fmt.Fprintf(&all, "%v %s %v\n", e.At, e.Kind, e.Fault)
			}
		}
		return all.String()
	}
	for seed := range uint64(3) {
		first, second := faults(seed), faults(seed)
		if first != second || first == "" {
			t.Errorf("seed %d: the faults were\n%s\nand then\n%s", seed, first, second)
		}
	}
	if faults(0) == faults(1) {
		t.Error("two seeds have the same faults")
	}
}

// BenchmarkMiniredis runs one complete schedule of "everything".
func BenchmarkMiniredis(b *testing.B) {
	i := slices.IndexFunc(Scenarios, func(s *Scenario) bool { return s.Name == "everything" })
	begin := time.Now()
	for n := range b.N {
		h, err := Miniredis.run(Miniredis.plan(Scenarios[i], uint64(n), nil, 0))
		if err != nil {
			b.Fatal(err)
		}
		Judge(h)
	}
	b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "schedules/s")
}
