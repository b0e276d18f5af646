package integration_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestTicketByTheNodes: a waiter's place in the queue is by when it came, also if its clock is
// wrong and it came before it had heard from the nodes, or if all that it has heard took long on
// the way there.
func TestTicketByTheNodes(t *testing.T) {
	for name, tt := range map[string]struct {
		ahead time.Duration
		leg   time.Duration // how long a message is on its way to the nodes at first; 0: for ever
	}{
		"a clock that is ahead":  {ahead: time.Hour},
		"a clock that is behind": {ahead: -time.Hour},
		"slow requests":          {leg: 300 * time.Millisecond},
	} {
		if !need.Sample(len(name), 2) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			threeNodes(t, func(f *fenced) {
				holder := f.locker(nil)
				if _, err := holder.TryAcquire(f.Context(), "a", redlock.AutoRenew()); err != nil {
					f.Fatal(err)
				}
				clock := new(settable)
				clock.ahead.Store(int64(tt.ahead))
				for i := range f.Len() {
					if tt.leg == 0 {
						f.Hang(i)
						time.AfterFunc(3*time.Second, func() { f.Resume(i) })
						continue
					}
					legs := 0
					f.Path(i).SetLatency(func() time.Duration {
						legs++
						return tt.leg * time.Duration(legs%2)
					})
				}
				lk := f.locker(&redlock.Options{Clock: clock, NodeTimeout: 50 * time.Millisecond})
				if tt.leg > 0 {
					pass(10 * time.Second)
					for i := range f.Len() {
						f.Path(i).SetLatency(nil)
					}
				}
				const wait = 8 * time.Second
				go lk.Acquire(f.Context(), "a")
				pass(wait)
				state, err := holder.Inspect(f.Context(), "a")
				if err != nil || len(state.Waiting) != 1 {
					f.Fatalf("%v, %+v: want one waiter", err, state.Waiting)
				}
				if w := state.Waiting[0]; (w.For-wait).Abs() > 10*time.Millisecond || w.Nodes != 3 {
					f.Errorf("it waits for %v on %d nodes, want %v on 3", w.For, w.Nodes, wait)
				}
			})
		})
	}
}

// TestWinnerLeavesNoPlace: a waiter that has the lock is in no queue any more, also at a node that has
// no vote. Such a node carries out what it is asked to, and may have the waiter in its queue by this
// attempt or by an earlier one: a release would hand it the lock there, and no client would give it
// back.
func TestWinnerLeavesNoPlace(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ails  func(*arena.Node)
		lasts time.Duration // a lease is three seconds: afterwards an earlier place would be over
		says  string
	}{
		{"in quarantine", (*arena.Node).Flush, 3 * time.Second, "quarantined for"},
		{"with a clock that is off", func(n *arena.Node) { n.Step(-500 * time.Millisecond) }, time.Second, "its clock is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFleet(t, 3)
				opts := &redlock.Options{MaxNodeSkew: 250 * time.Millisecond}
				holder, reader := f.client(opts, 0), f.client(opts, 0)
				l, err := holder.TryAcquire(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				got := make(chan *redlock.Lock, 1)
				go func() {
					r, err := reader.Acquire(t.Context(), "a", redlock.Shared())
					if err != nil {
						t.Error(err)
					}
					got <- r
				}()
				pass(time.Second)
				tt.ails(f.nodes[2])
				for range 2 { // the node has the holder's token again, and refuses the reader
					pass(tt.lasts / 2)
					if err := l.Extend(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := reader.TryAcquire(t.Context(), "a"); err == nil || !strings.Contains(message(err), tt.says) {
					t.Errorf("the node does not ail: %v", err)
				}
				f.nodes[2].Delay(50*time.Millisecond, 0)
				if err := errors.Join(l.Extend(t.Context()), l.Release(t.Context())); err != nil {
					t.Fatal(err)
				}
				r := <-got                   // while the release is on its way to the node, which refuses the reader once more
				pass(200 * time.Millisecond) // a lease is longer
				if err := r.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				pass(200 * time.Millisecond)
				want, _ := f.nodes[0].Size()
				if keys, _ := f.nodes[2].Size(); keys != want {
					t.Errorf("the node has %d keys, and the others have %d", keys, want)
				}
			})
		})
	}
}

// TestTriesDoNotOvertakeTheFirstWaiter: clients that try for a lock all the time neither overtake the first waiter, nor keep
// the lock from it for more than some round trips: an attempt by plain commands sets the key before it
// sees the queue.
func TestTriesDoNotOvertakeTheFirstWaiter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		ttl := need.Sized(2*time.Second, 10*time.Second, 10*time.Second)
		opts := &redlock.Options{TTL: ttl}
		if _, err := f.client(opts, 0).TryAcquire(t.Context(), "a"); err != nil { // and does not release it
			t.Fatal(err)
		}
		free := time.Now().Add(ttl)
		waiter, got := f.client(opts, 0), make(chan time.Time, 1)
		go func() {
			if _, err := waiter.Acquire(t.Context(), "a", redlock.AutoRenew()); err != nil {
				t.Error(err)
			}
			got <- time.Now()
		}()
		pass(time.Until(free))
		const stopped = 100 * time.Millisecond // it does not notice at once
		f.host[waiter].Stop(stopped)
		ctx, cancel := context.WithCancel(t.Context())
		var storm sync.WaitGroup
		for i := range 30 { // by plain commands the first time, and now and then
			lk := f.client(opts, 0)
			storm.Go(func() {
				pass(time.Duration(i) * 5 * time.Millisecond)
				for ctx.Err() == nil {
					if _, err := lk.TryAcquire(ctx, "a"); err == nil {
						t.Error("a client that came later has the lock")
						return
					}
					pass(time.Millisecond)
				}
			})
		}
		if late := (<-got).Sub(free); late > stopped+10*time.Millisecond {
			t.Errorf("the first waiter got the lock %v after it was free", late)
		}
		cancel()
		storm.Wait()
	})
}
