package scenario_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/chaos/internal/modelarena"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// TestRequestsMeet acquires every pair of requests that a plan can have: the judge must know which
// of them conflict.
func TestRequestsMeet(t *testing.T) {
	var all []history.Request
	for _, w := range slices.Concat(scenario.Workloads...) {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		excluded := 0
		p, _ := modelarena.NewWorld(&scenario.Plan{Run: history.Head{Nodes: 3}, Rates: make([]float64, 3), RTT: time.Millisecond}).Enter(1, "c1")
		locker, err := p.Locker(&redlock.Options{TTL: time.Minute, Separator: "/", Quarantine: -1})
		if err != nil {
			t.Error(err)
			return
		}
		defer locker.Close()
		for _, a := range all {
			for _, b := range all {
				first, err := locker.TryAcquire(t.Context(), a.Name, client.Options(a)...)
				if err != nil {
					t.Errorf("%v: %v", a, err)
					return
				}
				second, err := locker.TryAcquire(t.Context(), b.Name, client.Options(b)...)
				if want := a.Conflicts(b, "/"); want != errors.Is(err, redlock.ErrHeld) || !want && err != nil {
					t.Errorf("%v after %v: %v; they conflict: %v", b, a, err, want)
				}
				if err == nil {
					_ = second.Release(t.Context())
				} else {
					excluded++
				}
				if err := first.Release(t.Context()); err != nil {
					t.Errorf("%v: %v", a, err)
				}
				time.Sleep(time.Second)
			}
		}
		if excluded < len(all) {
			t.Errorf("%d of %d conflict", excluded, len(all)*len(all))
		}
	})
}
