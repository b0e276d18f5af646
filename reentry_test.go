package redlock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// path has names be paths.
func path() *Options { return &Options{Separator: "/"} }

// TestJoin: under a lock's context, a lock that it takes in is the same hold: nothing is
// sent, and releasing the inner one gives nothing away.
func TestJoin(t *testing.T) {
	for _, tt := range []struct {
		name         string
		outer, inner string
		of, in       []AcquireOption
	}{
		{"the same name", "a", "a", nil, nil},
		{"below", "a", "a/b/c", nil, nil},
		{"shared in alone", "a", "a", nil, []AcquireOption{Shared()}},
		{"shared in shared", "a", "a", []AcquireOption{Shared()}, []AcquireOption{Shared()}},
		{"below, shared in shared", "a", "a/b", []AcquireOption{Shared()}, []AcquireOption{Shared()}},
		{"one of several", "a", "b", []AcquireOption{Also("b")}, nil},
		{"several", "a", "b", []AcquireOption{Also("b", "c")}, []AcquireOption{Also("a/x", "c")}},
		{"a slot of it", "a", "a", []AcquireOption{Slots(2)}, []AcquireOption{Slots(2)}},
		{"a slot, in alone", "a", "a", nil, []AcquireOption{Slots(2)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(3)
				lk := ms.locker(t, path())
				o, err := lk.settings().acquisition(tt.outer, tt.of)
				if err != nil {
					t.Fatal(err)
				}
				outer := lk.newLock(o, 0, lk.newToken(o, ""))
				outer.until = time.Now().Add(time.Minute)
				ctx := outer.Context(t.Context())
				inner, err := lk.TryAcquire(ctx, tt.inner, append(tt.in, Reentrant())...)
				if err != nil {
					t.Fatal(err)
				}
				if inner.Token() != outer.Token() || inner.Fence() != outer.Fence() || !inner.Until().Equal(outer.Until()) {
					t.Errorf("%v is not of the hold of %v", inner, outer)
				}
				within := inner.Context(ctx)
				if err := inner.Release(ctx); err != nil {
					t.Error(err)
				}
				if context.Cause(within) != errReleased || ctx.Err() != nil {
					t.Errorf("after the inner one was released: %v, and the outer one %v", context.Cause(within), ctx.Err())
				}
			})
		})
	}
}

// TestMoreThanHeld: a call for more than the lock contains is refused at once. It would wait for its own lock.
func TestMoreThanHeld(t *testing.T) {
	for _, tt := range []struct {
		name         string
		outer, inner string
		of, in       []AcquireOption
		says         string
	}{
		{"alone in shared", "a", "a", []AcquireOption{Shared()}, nil, `"a" (shared)`},
		{"alone below shared", "a", "a/b", []AcquireOption{Shared()}, nil, `"a" (shared)`},
		{"the folder", "a/b", "a", nil, nil, `"a/b" (alone)`},
		{"the folder, shared", "a/b", "a", []AcquireOption{Shared()}, []AcquireOption{Shared()}, `"a/b" (shared)`},
		{"one more", "a", "a", nil, []AcquireOption{Also("b")}, `"a" (alone)`},
		{"alone in a slot", "a", "a", []AcquireOption{Slots(2)}, nil, `"a" (slot 1 of 2)`},
		{"shared in a slot", "a", "a", []AcquireOption{Slots(2)}, []AcquireOption{Shared()}, `"a" (slot 1 of 2)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(3)
				lk := ms.locker(t, path())
				o, err := lk.settings().acquisition(tt.outer, tt.of)
				if err != nil {
					t.Fatal(err)
				}
				outer := lk.newLock(o, 1, lk.newToken(o, ""))
				outer.until = time.Now().Add(time.Minute)
				_, err = lk.Acquire(outer.Context(t.Context()), tt.inner, append(tt.in, Reentrant())...)
				if err == nil || !strings.Contains(err.Error(), tt.says) || errors.Is(err, ErrHeld) {
					t.Errorf("%v, want it to say %s", err, tt.says)
				}
			})
		})
	}
}

// TestNotJoined: what has nothing to do with the lock of the context is acquired, and so is
// what another Locker has, or a lock that has ended.
func TestNotJoined(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk, other := ms.locker(t, path()), ms.locker(t, path())
		outer, err := lk.TryAcquire(t.Context(), "a/b")
		if err != nil {
			t.Fatal(err)
		}
		ctx := outer.Context(t.Context())
		for _, name := range []string{"a1", "b"} {
			l, err := lk.TryAcquire(ctx, name, Reentrant())
			if err != nil {
				t.Fatal(err)
			}
			if l.Token() == outer.Token() {
				t.Errorf("%q has been joined", name)
			}
			if err := l.Release(ctx); err != nil {
				t.Error(err)
			}
		}
		if l, err := other.TryAcquire(ctx, "a/b", Reentrant()); !errors.Is(err, ErrHeld) {
			t.Errorf("another Locker has %v, %v", l, err)
		}
		if err := outer.Release(ctx); err != nil {
			t.Error(err)
		}
		if l, err := lk.TryAcquire(ctx, "a/b", Reentrant()); err == nil || l != nil {
			t.Errorf("under the context of a lock that was released: %v", l)
		}
	})
}

// TestLastOneGivesBack: a hold ends with the last of its handles, in any order; and a handle that was released
// before reports its end.
func TestLastOneGivesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		outer, err := lk.TryAcquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx := outer.Context(t.Context())
		first, err1 := lk.TryAcquire(ctx, "a", AutoRenew(), Reentrant())
		second, err2 := lk.TryAcquire(first.Context(ctx), "a", Reentrant())
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if err := outer.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if context.Cause(ctx) != errReleased || outer.Extend(t.Context()) != errReleased {
			t.Error("the handle that was released is not told so")
		}
		if context.Cause(outer.Context(t.Context())) != errReleased {
			t.Error("it has a context that lives")
		}
		pass(time.Minute) // the first one has it renewed
		if n := ms.held("a", second.Token()); n != 3 || second.Extend(t.Context()) != nil {
			t.Errorf("the lock is on %d nodes while a handle is in it", n)
		}
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if n := ms.held("a", second.Token()); n != 3 {
			t.Errorf("the lock is on %d nodes while a handle is in it", n)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		pass(0)
		if left := ms.left(); len(left) > 0 {
			t.Error(left)
		}
	})
}

// TestJoinedAreTold: a handle that has joined is told when the hold is lost, also if only it watches.
func TestJoinedAreTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		outer, err := lk.TryAcquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		inner, err := lk.TryAcquire(outer.Context(t.Context()), "a", Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		ctx := inner.Context(t.Context())
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, errExpired) || time.Until(inner.Until()) > 0 {
			t.Errorf("told %v with %v left", cause, time.Until(inner.Until()))
		}
		for _, l := range []*Lock{inner, outer} {
			if err := l.Release(t.Context()); !errors.Is(err, ErrLost) {
				t.Error(err)
			}
		}
	})
}

// TestDoInDo: nested calls run under one hold, which is renewed until the outer one ends.
func TestDoInDo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, path())
		err := lk.Do(t.Context(), "a", func(ctx context.Context, outer *Lock) error {
			err := lk.Do(ctx, "a/b", func(ctx context.Context, inner *Lock) error {
				if inner.Token() != outer.Token() || inner.Name() != "a/b" {
					t.Errorf("%v is not of the hold of %v", inner, outer)
				}
				pass(time.Minute)
				return ctx.Err()
			}, Reentrant())
			pass(time.Minute)
			return errors.Join(err, ctx.Err())
		})
		if err != nil {
			t.Error(err)
		}
		pass(0)
		if left := ms.left(); len(left) > 0 {
			t.Error(left)
		}
	})
}

// TestJoinBesideRelease: a call under the context of a lock that has joined a hold, while that lock
// is released, joins the hold or ends with it; the race detector must find nothing.
func TestJoinBesideRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		outer := acquired(t, lk, "a")
		for range 100 {
			inner, err := lk.TryAcquire(outer.Context(t.Context()), "a", Reentrant())
			if err != nil {
				t.Fatal(err)
			}
			ctx := inner.Context(t.Context())
			var both sync.WaitGroup
			both.Go(func() {
				l, err := lk.TryAcquire(ctx, "a", Reentrant()) // or ctx has ended
				if err == nil && l.Token() != outer.Token() {
					t.Errorf("%v is another lock than %v", l, outer)
				}
				if err == nil {
					l.Release(ctx)
				}
			})
			both.Go(func() { inner.Release(ctx) })
			both.Wait()
		}
		if err := outer.Extend(t.Context()); err != nil {
			t.Errorf("the joined handles have released it: %v", err)
		}
	})
}

// TestNotReentrant: without Reentrant, what the context already holds is refused at once by each
// verb, and nothing is sent. Four goroutines under one lock's context are not all in at once.
func TestNotReentrant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, path())
		outer := acquired(t, lk, "a")
		ctx := outer.Context(t.Context())
		pass(0)
		sent := len(ms[0].seen)
		begun := time.Now()
		_, try := lk.TryAcquire(ctx, "a")
		_, below := lk.Acquire(ctx, "a/b", Shared())
		do := lk.Do(ctx, "a", func(context.Context, *Lock) error { t.Error("it was called"); return nil })
		for _, err := range []error{try, below, do} {
			if err == nil || !strings.Contains(err.Error(), `ctx is of the lock on "a" (alone), which takes that in: with Reentrant()`) {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, ErrHeld) || errors.Is(err, ErrNoQuorum) {
				t.Errorf("%v is what the nodes say", err)
			}
		}
		pass(0)
		if len(ms[0].seen) != sent || time.Since(begun) > 0 {
			t.Errorf("took %v and sent %q", time.Since(begun), ms[0].seen[sent:])
		}

		var in, most, refused int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				err := lk.Do(ctx, "a", func(context.Context, *Lock) error {
					mu.Lock()
					in++
					most = max(most, in)
					mu.Unlock()
					return nil
				})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused++
				}
			})
		}
		all.Wait()
		if most > 0 || refused != 4 {
			t.Errorf("%d at once, %d refused", most, refused)
		}
		if err := outer.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
