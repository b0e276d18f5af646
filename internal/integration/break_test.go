package integration_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// broken breaks a lock by what Inspect says.
func broken(t *testing.T, lk *redlock.Locker, name string) {
	t.Helper()
	s := inspect(t, lk, name)
	token := s.Token
	for _, h := range s.Holders {
		token = h.Token
	}
	if err := lk.Break(t.Context(), name, token); err != nil {
		t.Fatal(err)
	}
}

// TestBreakFreesALockOfAnyKind: a lock of any kind is free when it is broken, with all its keys. Its holder is told by the
// next renewal, and the next lock has a larger fence.
func TestBreakFreesALockOfAnyKind(t *testing.T) {
	for row, tt := range []struct {
		name    string
		lock    string
		options []redlock.AcquireOption
		rivals  [][]redlock.AcquireOption // that could not have it before; each of "a"
	}{
		{"exclusive", "a", nil, [][]redlock.AcquireOption{nil, {redlock.Shared()}}},
		{"shared", "a", []redlock.AcquireOption{redlock.Shared()}, [][]redlock.AcquireOption{nil}},
		{"a slot", "a", []redlock.AcquireOption{redlock.Slots(1)}, [][]redlock.AcquireOption{nil, {redlock.Slots(1)}}},
		{"one slot of many", "a", []redlock.AcquireOption{redlock.Slots(redlock.MaxSlots)}, [][]redlock.AcquireOption{nil}},
		{"in folders", "a/b/c", nil, [][]redlock.AcquireOption{nil, {redlock.Shared()}}},
		{"a slot in a folder", "a/b", []redlock.AcquireOption{redlock.Slots(5)}, [][]redlock.AcquireOption{nil}},
		{"shared in a folder", "a/b", []redlock.AcquireOption{redlock.Shared()}, [][]redlock.AcquireOption{nil}},
	} {
		if !need.Sample(row+1, 6) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			fences(t, func(f *fenced) {
				opts := redlock.Options{Prefix: "app:", Separator: "/"}
				holder, other := f.locker(&opts), f.locker(&opts)
				l := atRest(f.T, holder, tt.lock, append(tt.options, redlock.TTL(6*time.Second), redlock.AutoRenew())...)
				ctx := l.Context(f.Context())
				pass(time.Second)
				for _, options := range tt.rivals {
					refused(f.T, other, "a", options...)
				}
				broken(f.T, other, tt.lock)
				for _, options := range tt.rivals {
					next := atRest(f.T, other, "a", options...)
					if next.Fence() < l.Fence() || len(options) == 0 && next.Fence() == l.Fence() {
						f.Errorf("the next lock's fence is %d, and that of the broken one %d", next.Fence(), l.Fence())
					}
					if err := next.Release(f.Context()); err != nil {
						f.Error(err)
					}
				}
				if ctx.Err() != nil {
					f.Errorf("the holder was told before its next renewal: %v", context.Cause(ctx))
				}
				pass(1100 * time.Millisecond) // a third of the TTL after the acquisition
				if why := context.Cause(ctx); !errors.Is(why, redlock.ErrLost) {
					f.Errorf("the renewal ended the holder's context with %v", why)
				}
				pass(time.Second)
				if keys := f.locks(); len(keys) > 0 {
					f.Errorf("left are %q", keys)
				}
			})
		})
	}
}

// TestBreakComparesTheToken: no other token is deleted, whichever node has it.
func TestBreakComparesTheToken(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(nil)
		was := atRest(f.T, lk, "a")
		if err := was.Release(f.Context()); err != nil {
			f.Fatal(err)
		}
		l := atRest(f.T, lk, "a")
		e := wantKind(f.T, lk.Break(f.Context(), "a", was.Token()), redlock.ErrLost)
		if e.Op != "break" || e.Held != 5 || len(e.Nodes()) != 5 {
			f.Errorf("%+v", e)
		}
		wantKind(f.T, lk.Break(f.Context(), "b", was.Token()), redlock.ErrLost)
		if err := l.Extend(f.Context()); err != nil {
			f.Errorf("another token was broken: %v", err)
		}

		// One of several readers, and no other.
		one, two := atRest(f.T, lk, "r", redlock.Shared()), atRest(f.T, lk, "r", redlock.Shared())
		if err := lk.Break(f.Context(), "r", one.Token()); err != nil {
			f.Fatal(err)
		}
		wantKind(f.T, one.Extend(f.Context()), redlock.ErrLost)
		if err := two.Extend(f.Context()); err != nil {
			f.Errorf("another reader was broken: %v", err)
		}
	})
}

// TestBreakOfSeveralNames: broken at one of its names, the lock is not extended at the others.
func TestBreakOfSeveralNames(t *testing.T) {
	fences(t, func(f *fenced) {
		lk, other := f.locker(nil), f.locker(nil)
		l := atRest(f.T, lk, "a", redlock.Also("b"))
		broken(f.T, other, "b")
		next := atRest(f.T, other, "b")
		refused(f.T, other, "a")
		wantKind(f.T, l.Extend(f.Context()), redlock.ErrLost)
		pass(10 * time.Second)
		if after := atRest(f.T, other, "a"); after.Fence() <= l.Fence() || next.Fence() <= l.Fence() {
			f.Errorf("fences %d and %d after %d", next.Fence(), after.Fence(), l.Fence())
		}
	})
}

// TestBreakRefusesOtherTokens: what is no token of this very lock breaks nothing.
func TestBreakRefusesOtherTokens(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(&redlock.Options{Separator: "/"})
		l := atRest(f.T, lk, "a/b")
		for name, token := range map[string]string{"a": l.Token(), "": "t", "a/b": ""} {
			if err := lk.Break(f.Context(), name, token); err == nil || errors.Is(err, redlock.ErrLost) {
				f.Errorf("%q, %q: %v", name, token, err)
			}
		}
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		if err := lk.Break(ctx, "a/b", l.Token()); !errors.Is(err, context.Canceled) {
			f.Errorf("canceled: %v", err)
		}
		if err := l.Extend(f.Context()); err != nil {
			f.Error(err)
		}
	})
}

// TestBreakCallsTheFirstWaiter: the first waiter has the lock as soon as it is broken, as after a release.
func TestBreakCallsTheFirstWaiter(t *testing.T) {
	fences(t, func(f *fenced) {
		holder, waiter, other := f.locker(nil), f.locker(nil), f.locker(nil)
		l := atRest(f.T, holder, "a")
		got := make(chan *redlock.Lock, 1)
		go func() {
			next, err := waiter.Acquire(f.Context(), "a")
			if err != nil {
				f.Error(err)
			}
			got <- next
		}()
		pass(time.Second)
		broken(f.T, other, "a")
		synctest.Wait()
		select {
		case next := <-got:
			if next.Fence() <= l.Fence() {
				f.Errorf("the waiter's fence is %d, and that of the broken lock %d", next.Fence(), l.Fence())
			}
		default:
			f.Error("the waiter does not have it")
		}
		wantKind(f.T, l.Extend(f.Context()), redlock.ErrLost)
	})
}

// TestLateWriterIsRefused: the holder is stopped, its lock broken, and the next holder writes. What the first
// one writes then, believing in its lock, is refused.
func TestLateWriterIsRefused(t *testing.T) {
	fences(t, func(f *fenced) {
		lk, other := f.locker(nil), f.locker(nil)
		highest := int64(0)
		write := func(l *redlock.Lock) bool {
			ok := l.Fence() >= highest
			highest = max(highest, l.Fence())
			return ok
		}
		l := atRest(f.T, lk, "a")
		ctx := l.Context(f.Context())
		if !write(l) {
			f.Error("the first write was refused")
		}
		broken(f.T, other, "a")
		if !write(l) {
			f.Error("nobody has written since: nothing refuses the broken holder")
		}
		next := atRest(f.T, other, "a")
		if !write(next) {
			f.Error("the next holder's write was refused")
		}
		if ctx.Err() != nil || write(l) {
			f.Errorf("the broken holder believes in its lock (%v), and its write was accepted", ctx.Err())
		}
	})
}
