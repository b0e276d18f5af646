package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// TestStepAfterIdleTime: a client has sent nothing for a minute. So it has not noticed that a
// node's clock was set, by half a second, and that the node has dropped a lock of another client,
// which is still valid for a moment. The idle minute must not excuse a step that the drift of that
// lock has no room for, however long other locks may live. A rival that finds only this node and
// another free must not get the lock.
func TestStepAfterIdleTime(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Second, 3 * time.Second} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaks.Check(t)
				var nodes []*model.Node
				for i := range 3 {
					nodes = append(nodes, model.NewNode(sim.Seed(1), fmt.Sprint("node", i), 200*time.Microsecond))
				}
				locker := func(number int) *redlock.Locker {
					h := model.NewHost(sim.Seed(1), fmt.Sprint("p", number))
					opts := &redlock.Options{TTL: ttl, MaxTTL: 10 * time.Minute, Clock: h}
					replace.In(opts, h.Parts(func(addr string) *model.Node { return model.Named(nodes, addr) }))
					lk, err := redlock.New(model.Clients([]string{"node0", "node1", "node2"}), opts)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = lk.Close() })
					return lk
				}
				holder, rival := locker(1), locker(2)
				nodes[0].Cut(true, true)
				time.Sleep(time.Second)
				released(t, acquired(t, rival, "b"))
				time.Sleep(time.Minute - ttl)

				l := acquired(t, holder, "a")
				time.Sleep(ttl - 400*time.Millisecond)
				nodes[2].Step(500 * time.Millisecond)
				nodes[0].Cut(false, false)
				time.Sleep(200 * time.Millisecond) // the rival finds node 0, which has never had the lock
				left := time.Until(l.Until())
				if left <= 0 {
					t.Fatal("the lock has ended before the rival asks: this tests nothing")
				}
				ctx, cancel := context.WithDeadline(t.Context(), l.Until()) // or the rival gets the lock as soon as it is free
				defer cancel()
				second, err := rival.TryAcquire(ctx, "a")
				if err == nil {
					t.Fatalf("two holders: the first lock is valid for another %v, the second for %v", time.Until(l.Until()), time.Until(second.Until()))
				}
				if n := nodeOf(err, "node2"); n == nil || n.Outcome != redlock.OutcomeQuarantined && n.Outcome != redlock.OutcomeLate || !strings.Contains(n.Error(), "its clock was set by 49") && !strings.Contains(n.Error(), "its clock was set by 5") {
					t.Errorf("the error does not say what is wrong with node2: %v", err)
				}
				if !errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, redlock.ErrHeld) {
					t.Error(err)
				}
			})
		})
	}
}
