package scenario_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// spelled is a plan as text, without what is not drawn.
func spelled(t *testing.T, p *scenario.Plan) string {
	t.Helper()
	run := *p
	run.Options.Clock, run.Options.Hooks = nil, nil
	text, err := json.Marshal(struct {
		Plan    *scenario.Plan
		TTL     time.Duration
		MaxTTL  time.Duration
		Timeout time.Duration
	}{&run, run.Options.TTL, run.Options.MaxTTL, run.Options.NodeTimeout})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPlansAreDrawnBySeed: for each scenario a seed gives one plan, and another seed another one. Its faults are at
// nodes and clients that there are, of kinds that the arena can inject, and its quorum is a majority.
func TestPlansAreDrawnBySeed(t *testing.T) {
	arena := scenario.Limits{Name: "model", Exact: true, Cannot: []history.FaultKind{history.Still}}
	for _, s := range scenario.All {
		seen := make(map[string]bool)
		for seed := range uint64(5) {
			p := s.NewPlan(arena, seed, nil, 0)
			text := spelled(t, p)
			if again := spelled(t, s.NewPlan(arena, seed, nil, 0)); again != text {
				t.Errorf("%s: seed %d gives two plans", s.Name, seed)
			}
			seen[text] = true
			for _, f := range p.Faults {
				if f.Node < 0 || f.Node >= p.Run.Nodes || f.Kind.OnClient() && f.Client < 1 || slices.Contains(arena.Cannot, f.Kind) {
					t.Errorf("%s: seed %d: %v", s.Name, seed, f)
				}
			}
			if p.Run.Seed != seed || p.Run.Scenario != s.Name || p.TTL <= 0 || len(p.Names) == 0 || 2*p.Run.Quorum <= max(p.Run.Members, 1) {
				t.Errorf("%s: seed %d: %+v", s.Name, seed, p.Run)
			}
		}
		if len(seen) != 5 {
			t.Errorf("%s: five seeds give %d plans", s.Name, len(seen))
		}
	}
}

// TestArenaBoundsTTLs: a scenario's TTLs that are too short or too long for an arena are left out, and if none is left, the
// arena's own bound is taken.
func TestArenaBoundsTTLs(t *testing.T) {
	all := []time.Duration{time.Second, 3 * time.Second, 10 * time.Second}
	for _, tt := range []struct {
		least, most time.Duration
		want        []time.Duration
	}{
		{0, 0, all},
		{2 * time.Second, 5 * time.Second, all[1:2]},
		{time.Minute, 0, []time.Duration{time.Minute}},
		{0, time.Millisecond, []time.Duration{time.Millisecond}},
	} {
		if got := (scenario.Limits{Least: tt.least, Most: tt.most}).TTLs(all); !slices.Equal(got, tt.want) {
			t.Errorf("from %v to %v: %v, want %v", tt.least, tt.most, got, tt.want)
		}
	}
}

// TestMostNodesLoseTheirData: where most nodes lose their data, they do so at one moment, and one or two others do not.
func TestMostNodesLoseTheirData(t *testing.T) {
	i := slices.IndexFunc(scenario.All, func(s *scenario.Scenario) bool { return s.Most })
	if i < 0 {
		t.Fatal("the scenario is gone")
	}
	outages := 0
	for seed := range uint64(50) {
		p := scenario.All[i].NewPlan(scenario.Limits{Name: "real"}, seed, nil, 0)
		at := make(map[time.Duration]map[int]bool)
		for _, f := range p.Faults {
			if f.Kind != history.KillEmpty {
				continue
			}
			when := f.At.Truncate(time.Microsecond)
			if at[when] == nil {
				at[when] = make(map[int]bool)
			}
			at[when][f.Node] = true
		}
		outages += len(at)
		for when, nodes := range at {
			if stay := p.Run.Nodes - len(nodes); stay < 1 || stay > 2 {
				t.Errorf("seed %d: at %v %d of %d nodes lose their data", seed, when, len(nodes), p.Run.Nodes)
			}
		}
	}
	if outages < 50 {
		t.Errorf("50 plans have %d outages", outages)
	}
}
