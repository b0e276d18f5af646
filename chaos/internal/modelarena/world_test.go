package modelarena_test

import (
	"slices"
	"testing"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/modelarena"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// plan draws the plan of a scenario that has many kinds of faults.
func plan(t *testing.T, seed uint64) *scenario.Plan {
	t.Helper()
	i := slices.IndexFunc(scenario.All, func(s *scenario.Scenario) bool { return s.Name == "everything" })
	if i < 0 {
		t.Fatal("the scenario is gone")
	}
	return scenario.All[i].NewPlan(scenario.Limits{Name: "model", Exact: true}, seed, nil, 0)
}

// TestRunRepeats: a plan gives the same history each time, of which clients got locks and in which the planned faults
// happened; another seed gives another one.
func TestRunRepeats(t *testing.T) {
	digests := make(map[string]bool)
	for _, seed := range []uint64{1, 1, 2} {
		p := plan(t, seed)
		h, err := modelarena.Run(p)
		if err != nil {
			t.Fatal(err)
		}
		count := make(map[history.Kind]int)
		for _, e := range h.Events {
			count[e.Kind]++
		}
		if count[history.Got] == 0 || count[history.Struck] != len(p.Faults) || count[history.Calm] != 1 {
			t.Errorf("seed %d: %d locks, %d of %d faults, %d times calm", seed, count[history.Got], count[history.Struck], len(p.Faults), count[history.Calm])
		}
		digests[h.Digest()] = true
	}
	if len(digests) != 2 {
		t.Errorf("three runs with two seeds have %d histories", len(digests))
	}
}
