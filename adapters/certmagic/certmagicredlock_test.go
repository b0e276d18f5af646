package certmagicredlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	certmagicredlock "github.com/quorumlock/redlock/adapters/certmagic"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// TestExclusion: three instances, each with three goroutines.
func TestExclusion(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		var inside, turns atomic.Int32
		var all sync.WaitGroup
		for range 3 {
			s := instance(t, nodes, "")
			for range 3 {
				all.Go(func() {
					for range 8 {
						if err := s.Lock(t.Context(), "a"); err != nil {
							t.Error(err)
							return
						}
						if n := inside.Add(1); n != 1 {
							t.Errorf("%d inside at once", n)
						}
						time.Sleep(rand.N(time.Second))
						turns.Add(1)
						inside.Add(-1)
						if err := s.Unlock(t.Context(), "a"); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		all.Wait()
		if got := turns.Load(); got != 72 {
			t.Errorf("%d turns, want 72", got)
		}
	})
}

// TestOrder: instances get the lock first come, first served. Two goroutines of one instance share its
// place: the second one asks the nodes only when the first one has unlocked, and so comes after the
// instances that wait by then.
func TestOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		holder := instance(t, nodes, "")
		lock(t, holder, "x")
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		wait := func(name string, s *certmagicredlock.Storage) {
			all.Go(func() {
				if err := s.Lock(t.Context(), "x"); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				if err := s.Unlock(t.Context(), "x"); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Second) // virtual: long enough to stand in the queue
		}
		a := instance(t, nodes, "")
		wait("a", a)
		wait("a again", a)
		for _, name := range []string{"b", "c", "d"} {
			wait(name, instance(t, nodes, ""))
		}
		unlock(t, holder, "x")
		all.Wait()
		if want := []string{"a", "b", "c", "d", "a again"}; !slices.Equal(order, want) {
			t.Errorf("the order is %q, want %q", order, want)
		}
	})
}

// TestUnlockIsTheHolders: an instance that has not locked a name does not unlock it.
func TestUnlockIsTheHolders(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		a, b := instance(t, nodes, ""), instance(t, nodes, "")
		lock(t, a, "x")
		if err := b.Unlock(t.Context(), "x"); err == nil {
			t.Error("b has unlocked what is a's")
		}
		if err := b.RenewLockLease(t.Context(), "x", time.Hour); err == nil {
			t.Error("b has renewed what is a's")
		}
		if ok, err := b.TryLock(t.Context(), "x"); ok || err != nil {
			t.Errorf("b: TryLock: %v, %v", ok, err)
		}
		if ok, err := a.TryLock(t.Context(), "x"); ok || err != nil {
			t.Errorf("a, again: TryLock: %v, %v", ok, err)
		}
		unlock(t, a, "x")
		if err := a.Unlock(t.Context(), "x"); err == nil {
			t.Error("a has unlocked it twice")
		}
		if ok, err := b.TryLock(t.Context(), "x"); !ok || err != nil {
			t.Errorf("b: TryLock when it is free: %v, %v", ok, err)
		}
		unlock(t, b, "x")
	})
}

// TestContext: it bounds the waiting, for another process or for one's own, and leaves
// nothing behind.
func TestContext(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		a, b := instance(t, nodes, ""), instance(t, nodes, "")
		lock(t, a, "x")
		for who, s := range map[string]*certmagicredlock.Storage{"another process": b, "the same one": a} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // six times the TTL: it is renewed
			began := time.Now()
			err := s.Lock(ctx, "x")
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, redlock.ErrHeld) || time.Since(began) != time.Minute {
				t.Errorf("%s: %v after %v", who, err, time.Since(began))
			}
			cancel()
		}
		if err := a.RenewLockLease(t.Context(), "x", time.Hour); err != nil {
			t.Errorf("after two minutes: %v", err)
		}
		unlock(t, a, "x")
		for _, s := range []*certmagicredlock.Storage{a, b} { // a call that gave up blocks no other
			began := time.Now()
			lock(t, s, "x")
			unlock(t, s, "x")
			if took := time.Since(began); took > time.Second {
				t.Errorf("a free lock took %v", took)
			}
		}
	})
}

// TestLost: the nodes are away for longer than a lock lives. The holder is told when it asks; another
// instance gets the lock meanwhile; and another goroutine of the same instance waits for the one that
// has lost the lock, which cannot release another holder's.
func TestLost(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		a, b := instance(t, nodes, ""), instance(t, nodes, "")
		lock(t, a, "x")
		for i := range 2 {
			nodes.Hang(i)
		}
		if err := a.RenewLockLease(t.Context(), "x", time.Hour); err != nil {
			t.Errorf("while it is valid: %v", err)
		}
		inA := locking(t.Context(), a, "x")
		inB := locking(t.Context(), b, "x")
		time.Sleep(10 * time.Second) // the TTL
		if err := a.RenewLockLease(t.Context(), "x", time.Hour); !errors.Is(err, redlock.ErrLost) {
			t.Errorf("when it has ended: %v", err)
		}
		for i := range 2 {
			nodes.Resume(i)
		}
		if err := <-inB; err != nil {
			t.Fatal(err)
		}
		waits(t, inA)

		if err := a.Unlock(t.Context(), "x"); !errors.Is(err, redlock.ErrLost) {
			t.Errorf("the one who lost it: Unlock: %v", err)
		}
		synctest.Wait()
		waits(t, inA) // b has it
		unlock(t, b, "x")
		if err := <-inA; err != nil {
			t.Fatal(err)
		}
		if err := a.Unlock(t.Context(), "x"); err != nil {
			t.Error(err)
		}
	})
}

// TestFaults: a missing answer does not count as held, and a name that could not be locked is not kept.
func TestFaults(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		a := instance(t, nodes, "")
		nodes.Kill(0)
		nodes.Kill(1)
		if ok, err := a.TryLock(t.Context(), "x"); ok || !errors.Is(err, redlock.ErrNoQuorum) {
			t.Errorf("without a quorum: %v, %v", ok, err)
		}
		nodes.Restart(0, true)
		nodes.Restart(1, true)
		lock(t, a, "x") // waits for them, and for their quarantine
		unlock(t, a, "x")
	})
}
