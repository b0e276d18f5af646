package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/redlocktrace"
)

// A turn is the result of a call that waited.
type turn struct {
	lock  *redlock.Lock
	at    time.Time
	tries int
	err   error
}

// waits makes a process of its own wait for "a".
func (h *waitingRoom) waits(ctx context.Context, opts redlock.Options, options ...redlock.AcquireOption) <-chan turn {
	h.Helper()
	tries := make(chan int, 1) // comes a moment after the call has returned
	opts.Hooks = &redlock.Hooks{Trace: &redlocktrace.Trace{End: func(_ context.Context, op redlocktrace.Operation) {
		if op.Op == "acquire" {
			tries <- op.Tries
		}
	}}}
	lk, got := open(h.T, h.Clients(), &opts), make(chan turn, 1)
	h.calls.Go(func() {
		l, err := lk.Acquire(ctx, "a", options...)
		at := time.Now()
		got <- turn{l, at, <-tries, err}
	})
	time.Sleep(100 * time.Millisecond) // by then it was refused, and has subscribed
	return got
}

// TestReleaseCallsTheNextWaiter: a release calls the next waiter, which has the lock two round trips after the release
// began, with its next attempt, and for a whole TTL. No other waiter makes an attempt.
func TestReleaseCallsTheNextWaiter(t *testing.T) {
	for name, tt := range map[string]struct {
		opts    redlock.Options
		options []redlock.AcquireOption
		ttl     time.Duration
	}{
		"once":          {ttl: 10 * time.Second},
		"renewed":       {options: []redlock.AcquireOption{redlock.AutoRenew()}, ttl: 10 * time.Second},
		"shared":        {options: []redlock.AcquireOption{redlock.Shared()}, ttl: 10 * time.Second},
		"several names": {options: []redlock.AcquireOption{redlock.Also("b")}, ttl: 10 * time.Second},
		"short":         {opts: redlock.Options{TTL: 200 * time.Millisecond, MaxTTL: 10 * time.Second}, options: []redlock.AcquireOption{redlock.TTL(200 * time.Millisecond)}, ttl: 200 * time.Millisecond},
	} {
		if !need.Sample(len(name), 2) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			inWaitingRoom(t, func(h *waitingRoom) {
				before := acquired(h.T, h.locker(), "a")
				got := h.waits(h.Context(), tt.opts, tt.options...)
				behind := h.waits(h.Context(), redlock.Options{})
				begin := time.Now()
				released(h.T, before)
				next := <-got
				if next.err != nil {
					t.Fatal(next.err)
				}
				l := next.lock
				// Half a millisecond each way. The first attempt was refused, and the second was made when it
				// had subscribed. One whose lease is short has made more.
				if took := next.at.Sub(begin); took > 2500*time.Microsecond || next.tries != 3 && tt.ttl > time.Second {
					t.Errorf("it has the lock after %v, and %d attempts", took, next.tries)
				}
				if l.Fence() < before.Fence() || l.Fence() == before.Fence() && name != "shared" {
					t.Errorf("fence %d after %d", l.Fence(), before.Fence())
				}
				if left, drift := time.Until(l.Until()), tt.ttl/100+2*time.Millisecond; left > tt.ttl || left < tt.ttl-drift-5*time.Millisecond {
					t.Errorf("valid for %v at first", left)
				}
				released(h.T, l)
				last := <-behind
				if last.err != nil || last.tries != 3 {
					t.Errorf("the waiter behind it has it with %d attempts, %v", last.tries, last.err)
				}
				released(h.T, last.lock) // at once: nothing may be left, places in queues included
			})
		})
	}
}

// TestNobodyGetsBetween: while the first waiter is on its way to a lock that was released, no other
// client gets it on any node, whether it waits or not.
func TestNobodyGetsBetween(t *testing.T) {
	inWaitingRoom(t, func(h *waitingRoom) {
		before, newcomer := acquired(h.T, h.locker(), "a"), h.locker()
		got := h.waits(h.Context(), redlock.Options{})
		// The release reaches the nodes after half a millisecond, and the waiter's attempt after one and a half.
		tried := make(chan error)
		time.AfterFunc(250*time.Microsecond, func() {
			for range 2 { // by plain commands, and by the script
				l, err := newcomer.TryAcquire(h.Context(), "a")
				if err == nil {
					_ = l.Release(h.Context())
				}
				if !errors.Is(err, redlock.ErrHeld) {
					tried <- fmt.Errorf("a newcomer got between: %w", err)
					return
				}
			}
			tried <- nil
		})
		released(h.T, before)
		next, err := <-got, <-tried
		if next.err != nil || err != nil {
			t.Fatal(next.err, err)
		}
		released(h.T, next.lock)
	})
}

// TestCalledWaiterThatIsGoneCostsItsLease: a waiter that was called and has ended, or was cut off, costs the one behind it
// no more than its lease.
func TestCalledWaiterThatIsGoneCostsItsLease(t *testing.T) {
	need.Full(t)
	inWaitingRoom(t, func(h *waitingRoom) {
		before := acquired(h.T, h.locker(), "a")
		cut := newLink(h)
		ctx, stop := context.WithCancel(h.Context())
		h.calls.Go(func() {
			if _, err := cut.locker.Acquire(ctx, "a"); err == nil {
				t.Error("it has the lock")
			}
		})
		time.Sleep(100 * time.Millisecond)
		behind := h.waits(h.Context(), redlock.Options{})
		begin := time.Now()
		time.AfterFunc(750*time.Microsecond, cut.cut) // the call is on its way
		released(h.T, before)
		last := <-behind
		stop()
		if last.err != nil || last.at.Sub(begin) > 3*time.Second+called {
			t.Errorf("the next waiter has it after %v, %v", last.at.Sub(begin), last.err)
		}
		released(h.T, last.lock)
	})
}

// TestMaxHoldBoundsALockThatWasWaitedFor: MaxHold is a limit for a lock that was waited for as well, also if it is shorter
// than a trip.
func TestMaxHoldBoundsALockThatWasWaitedFor(t *testing.T) {
	need.Full(t)
	for _, hold := range []time.Duration{time.Second, 500 * time.Microsecond} {
		t.Run(hold.String(), func(t *testing.T) {
			inWaitingRoom(t, func(h *waitingRoom) {
				before := acquired(h.T, h.locker(), "a")
				got := h.waits(h.Context(), redlock.Options{}, redlock.AutoRenew(), redlock.MaxHold(hold))
				behind := h.waits(h.Context(), redlock.Options{})
				released(h.T, before)
				next, last := <-got, <-behind
				if next.err != nil || last.err != nil {
					t.Fatal(next.err, last.err)
				}
				if until := next.lock.Until(); until.After(next.at.Add(hold)) {
					t.Errorf("valid for %v", until.Sub(next.at))
				}
				if next.lock.Fence() >= last.lock.Fence() {
					t.Errorf("fence %d, and of the next holder %d", next.lock.Fence(), last.lock.Fence())
				}
				if err := next.lock.Release(h.Context()); err == nil || !strings.Contains(err.Error(), "MaxHold") {
					t.Errorf("release says %v", err)
				}
				released(h.T, last.lock)
			})
		})
	}
}
