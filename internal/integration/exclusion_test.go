package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestExclusion: sixteen workers of four Lockers on one key of three servers, with
// a TTL so short that long holds live by their renewals, while one server is
// killed and restarted with its data.
func TestExclusion(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 3, "--appendonly", "yes") // each write is on disk before its reply, so kill -9 loses nothing
	length := need.Sized(2*time.Second, 3*time.Second, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()

	var guarded guard
	var held, renewals, ends atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		lk := open(t, redistest.Clients(t, servers), &redlock.Options{TTL: 200 * time.Millisecond})
		for j := range 4 {
			who := fmt.Sprintf("worker %d of locker %d", j, i)
			all.Go(func() {
				for ctx.Err() == nil {
					l, err := lk.Acquire(ctx, "a", redlock.AutoRenew())
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						return
					}
					first := l.Until()
					guarded.enter(l, who)
					hold(l.Context(ctx), held.Add(1)%25 == 0)
					if l.Until().After(first) {
						renewals.Add(1)
					}
					guarded.leave(l)
					if err := l.Release(ctx); errors.Is(err, redlock.ErrLost) {
						ends.Add(1) // a busy machine, or a dead node, has cost it a renewal
					}
				}
			})
		}
	}
	all.Go(func() {
		for _, s := range []int{1, 2} {
			select {
			case <-time.After(length / 4):
			case <-ctx.Done():
			}
			servers[s].Kill()
			time.Sleep(length / 20) // for that long the other servers must do
			restart(t, servers[s])
		}
	})
	all.Wait()
	if guarded.broken != "" {
		t.Error(guarded.broken)
	}
	locks := 0
	for _, n := range guarded.entered {
		locks += n
	}
	t.Logf("%d locks by %d workers, %d of them renewed, %d lost", locks, len(guarded.entered), renewals.Load(), ends.Load())
	if locks < 50 || renewals.Load() == 0 {
		t.Error("too few to tell anything")
	}
	nothingLeft(t, servers)
}

// hold works for a moment, or for longer than a TTL. How many holds are long must not be left to chance: a few
// more of them take most of the time.
func hold(ctx context.Context, long bool) {
	d := rand.N(3 * time.Millisecond)
	if long {
		d = 300 * time.Millisecond
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
