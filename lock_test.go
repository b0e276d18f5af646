package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestEndIsToldAtItsTimeWithItsCause: the end of validity is told at its time and with its cause, though
// nothing comes from the network (D1).
func TestEndIsToldAtItsTimeWithItsCause(t *testing.T) {
	t.Run("not renewed", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			wantEnd(t, l.Context(t.Context()), l.Until(), errExpired)
			synctest.Wait()
			ms.empty(t)
			if err := l.Release(t.Context()); !errors.Is(err, ErrLost) {
				t.Errorf("Release after the end: %v", err)
			}
		})
	})
	t.Run("renewed, and then all nodes hang", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			var lost []error
			var mu sync.Mutex
			lk := ms.locker(t, &Options{Hooks: &Hooks{Lost: func(_ *Lock, cause error) {
				mu.Lock()
				defer mu.Unlock()
				lost = append(lost, cause)
			}}})
			l := acquired(t, lk, "a", AutoRenew())
			ctx := l.Context(t.Context())
			pass(time.Minute)
			if err := ctx.Err(); err != nil {
				t.Fatal("lost while all was well:", context.Cause(ctx))
			}
			for _, m := range ms {
				m.hang()
			}
			wantEnd(t, ctx, l.Until(), errExpired)
			synctest.Wait()
			mu.Lock()
			if len(lost) != 1 || !errors.Is(lost[0], ErrLost) {
				t.Errorf("hooks told %v", lost)
			}
			mu.Unlock()
			for _, m := range ms {
				m.resume()
			}
			pass(3 * time.Second)
			ms.empty(t)
		})
	})
	t.Run("another has it on a majority", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a", AutoRenew())
			ctx := l.Context(t.Context())
			for _, m := range ms[:3] {
				m.put("a", "rival", time.Hour)
			}
			begin := time.Now()
			<-ctx.Done()
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("told after %v; the next renewal was due by a third of the TTL", took)
			}
			q := wantQuorumError(t, context.Cause(ctx), ErrLost)
			if n := q.Nodes(); len(n) == 0 || n[0].Outcome != OutcomeStolen || n[0].Holder != "rival" {
				t.Errorf("%v does not name the holder", q)
			}
			synctest.Wait()
			if n := ms.held("a", "rival"); n != 3 {
				t.Errorf("the rival is left with %d nodes of 3", n)
			}
		})
	})
	t.Run("a parent that ends first leaves nothing behind", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			l := acquired(t, newModels(3).locker(t, nil), "a")
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				l.Context(ctx)
				cancel()
			}
			synctest.Wait()
			if n := len(l.watchers); n > 0 {
				t.Errorf("%d watchers left", n)
			}
		})
	})
}

// TestPrintsNoSecret: a Lock, a Locker and Options print what helps, and with no verb a token or a
// password.
func TestPrintsNoSecret(t *testing.T) {
	verbs := []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"}
	bubble(t, func(t *testing.T) {
		lk := newModels(3).locker(t, nil)
		l := acquired(t, lk, "jobs")
		var logged strings.Builder
		slog.New(slog.NewTextHandler(&logged, nil)).Info("have", "lock", l)
		texts := []string{logged.String()}
		for _, verb := range verbs {
			texts = append(texts, fmt.Sprintf(verb, l))
			if got := fmt.Sprintf(verb, lk); got != "redlock.Locker(2 of 3 nodes: node0, node1, node2; TTL 10s)" {
				t.Errorf("%s prints a Locker as %s", verb, got)
			}
		}
		for _, text := range texts {
			if strings.Contains(text, l.Token()) || !strings.Contains(text, "jobs") {
				t.Errorf("printed as %s", text)
			}
		}
		if got, want := l.String(), `"jobs" (fence 946684800000000, valid for 9.9s)`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	opts := Options{TTL: time.Minute, Prefix: "app:", Hooks: new(Hooks), Quorum: 3}
	if got, want := fmt.Sprint(&opts), `redlock.Options{TTL: 1m0s, Prefix: "app:", Hooks: set, Quorum: 3}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fmt.Sprint((*Lock)(nil), (*Locker)(nil), (*Options)(nil)); got != "<nil> <nil> <nil>" {
		t.Errorf("nothing prints as %s", got)
	}
	lk, err := Connect([]string{"redis://user:secret@127.0.0.1:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lk.Close()
	for _, verb := range verbs {
		if got := fmt.Sprintf(verb, lk); strings.Contains(got, "secret") || strings.Contains(got, "user") || !strings.Contains(got, "127.0.0.1:1") {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}

// TestNothingIsFilledUpAfterRelease: the release that comes while an extension is
// under way is the last word at every node.
func TestNothingIsFilledUpAfterRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		l := acquired(t, ms.locker(t, nil), "a")
		for _, m := range ms {
			m.slow(10 * time.Millisecond)
		}
		ms[0].forget()
		extended := make(chan error)
		go func() { extended <- l.Extend(t.Context()) }()
		pass(5 * time.Millisecond)
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-extended; err == nil {
			t.Error("extended after it was released")
		}
		pass(time.Second)
		ms.empty(t)
	})
}

// TestReleaseReturnsWhenAQuorumCouldGrantAgain: and no earlier. It says that the lock was lost, if it was, and that too few
// nodes have answered, if that is so; it goes on although its context has ended.
func TestReleaseReturnsWhenAQuorumCouldGrantAgain(t *testing.T) {
	t.Run("of a lock that is gone from the nodes", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			for _, m := range ms {
				m.forget()
			}
			wantQuorumError(t, l.Release(t.Context()), ErrLost)
		})
	})
	t.Run("with two nodes that never had it, and one that forgot", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			ms[0].put("a", "rival", time.Minute)
			ms[1].put("a", "rival", time.Minute)
			l := acquired(t, ms.locker(t, nil), "a")
			ms[2].forget()
			ms[3].slow(time.Millisecond)
			ms[4].slow(time.Millisecond)
			wantQuorumError(t, l.Release(t.Context()), ErrLost)
			if n := ms.held("a", "rival"); n != 2 {
				t.Errorf("the rival has %d nodes of 2", n)
			}
		})
	})
	t.Run("waits for a quorum that could grant it again", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			ms[0].kill()
			ms[1].kill()
			lk := ms.locker(t, nil)
			synctest.Wait()
			l := acquired(t, lk, "a")
			ms[4].slow(20 * time.Millisecond)
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if left := ms.left(); len(left) > 0 {
				t.Errorf("released, and left on the nodes: %v", left)
			}
		})
	})
	t.Run("waits for nodes that have a vote", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			f := newFleet(t, 4)
			lk, _ := f.open(Options{})
			l := acquired(t, lk, "a")
			f.nodes[3].Step(-time.Hour)
			_ = l.Extend(t.Context()) // the node's answer tells its time
			f.nodes[0].Delay(20*time.Millisecond, 0)
			begin := time.Now()
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took < 10*time.Millisecond {
				t.Errorf("it returned after %v, when the first node still had the lock: the others are no quorum", took)
			}
			begin = time.Now()
			l = acquired(t, lk, "b")
			f.nodes[0].Hang(true)
			if err := l.Release(t.Context()); err != nil {
				t.Errorf("three nodes of four have deleted it: %v", err)
			}
			if took := time.Since(begin); took > lk.settings().NodeTimeout+50*time.Millisecond {
				t.Errorf("a node that hangs held a release for %v", took)
			}
			f.nodes[0].Hang(false)
		})
	})
	t.Run("of a lock that expired unnoticed", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			pass(time.Until(l.Until())) // the keys live for the drift longer
			if err := l.Release(t.Context()); !errors.Is(err, errExpired) {
				t.Errorf("got %v, want that it had expired", err)
			}
			synctest.Wait()
			ms.empty(t)
		})
	})
	t.Run("after a node refused to extend", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			ms[0].Refuse(errLoading)
			if err := l.Extend(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			ms[0].Refuse(nil)
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			ms.empty(t)
		})
	})
	t.Run("is idempotent and safe to call at once", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			for _, m := range ms {
				m.slow(10 * time.Millisecond)
			}
			errs := make(chan error)
			for range 10 {
				go func() { errs <- l.Release(t.Context()) }()
			}
			for range 10 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			for _, m := range ms {
				if n := len(m.seen); n != 2 {
					t.Errorf("%s saw %q", m.Name, m.seen)
				}
			}
		})
	})
	t.Run("ignores that ctx has ended", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := l.Release(ctx); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			ms.empty(t)
		})
	})
	t.Run("says so when too few nodes answer", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			var told atomic.Int32
			lk := ms.locker(t, &Options{Hooks: &Hooks{Unreleased: func(*Lock, error) { told.Add(1) }}})
			l := acquired(t, lk, "a")
			for _, m := range ms[1:4] {
				m.hang()
			}
			begin := time.Now()
			err := l.Release(t.Context())
			if q := wantQuorumError(t, err, ErrNoQuorum); len(q.Nodes()) != 3 || q.Nodes()[0].Node != "node1" {
				t.Errorf("%v does not name the three", err)
			}
			took := time.Since(begin)
			if synctest.Wait(); took != lk.settings().NodeTimeout || told.Load() != 1 {
				t.Errorf("took %v, hook called %d times", took, told.Load())
			}
			if again := l.Release(t.Context()); again != err {
				t.Errorf("released again: %v", again)
			}
		})
	})
}

// TestReleaseAsksAllNodes: two nodes have lost the lock to another client, and are down since. That a
// quorum confirms a release is out of the question then, but the third node has the lock.
func TestReleaseAsksAllNodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		l := acquired(t, lk, "a")
		for i := range 2 {
			pass(100 * time.Millisecond)
			ms[i].put("a", "another", time.Hour)
			_ = l.Extend(t.Context())
			ms[i].kill()
			_, _ = lk.TryAcquire(t.Context(), fmt.Sprint("notice", i))
			pass(100 * time.Millisecond)
		}
		_ = l.Release(t.Context())
		pass(time.Second)
		if token := ms[2].holder("a"); token != "" {
			t.Errorf("the node still has %s", token)
		}
	})
}

// path has names be paths.
func path() *Options { return &Options{Separator: "/"} }

// TestCallUnderALockJoinsItUnsent: under a lock's context, a lock that it takes in is the same hold: nothing is
// sent, and releasing the inner one gives nothing away.
func TestCallUnderALockJoinsItUnsent(t *testing.T) {
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

// TestMoreThanTheLockContainsIsRefused: a call for more than the lock contains is refused at once. It would wait for its own lock.
func TestMoreThanTheLockContainsIsRefused(t *testing.T) {
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

// TestOtherLocksAreNotJoined: what has nothing to do with the lock of the context is acquired, and so is
// what another Locker has, or a lock that has ended.
func TestOtherLocksAreNotJoined(t *testing.T) {
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

// TestHoldEndsWithTheLastOfItsHandles: a hold ends with the last of its handles, in any order; and a handle that was released
// before reports its end.
func TestHoldEndsWithTheLastOfItsHandles(t *testing.T) {
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

// TestJoinedHandlesAreToldOfTheLoss: a handle that has joined is told when the hold is lost, also if only it watches.
func TestJoinedHandlesAreToldOfTheLoss(t *testing.T) {
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

// TestNestedDoIsOneHold: nested calls run under one hold, which is renewed until the outer one ends.
func TestNestedDoIsOneHold(t *testing.T) {
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

// TestJoinDuringReleaseJoinsOrEnds: a call under the context of a lock that has joined a hold, while that lock
// is released, joins the hold or ends with it; the race detector must find nothing.
func TestJoinDuringReleaseJoinsOrEnds(t *testing.T) {
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

// TestWithoutReentrantTheHeldLockIsRefused: without Reentrant, what the context already holds is refused at once by each
// verb, and nothing is sent. Four goroutines under one lock's context are not all in at once.
func TestWithoutReentrantTheHeldLockIsRefused(t *testing.T) {
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

// TestMinHoldKeepsAReleasedLock: others find it held until MinHold is over, whether its process lives or not, and free after that.
func TestMinHoldKeepsAReleasedLock(t *testing.T) {
	for _, hold := range []time.Duration{2 * time.Second, 8 * time.Second} { // less and more than the TTL
		bubble(t, func(t *testing.T) {
			f, lk, h := aFleet(t, 5, Options{TTL: 4 * time.Second, MaxTTL: 10 * time.Second})
			other, _ := f.open(Options{TTL: 4 * time.Second, MaxTTL: 10 * time.Second})
			f.nodes[0].Kill()
			l := acquired(t, lk, "a", MinHold(hold), AutoRenew())
			ctx := l.Context(t.Context())
			pass(time.Second)
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if cause := context.Cause(ctx); cause != errReleased {
				t.Errorf("the work was told %v", cause)
			}
			h.Crash()
			until := l.Since().Add(hold)
			pass(time.Until(until) - 50*time.Millisecond)
			if _, err := other.TryAcquire(t.Context(), "a"); !errors.Is(err, ErrHeld) {
				t.Errorf("MinHold(%v): just before the end: %v", hold, err)
			}
			pass(time.Until(until) + 10*time.Millisecond)
			if _, err := other.TryAcquire(t.Context(), "a"); err != nil {
				t.Errorf("MinHold(%v): just after the end: %v", hold, err)
			}
		})
	}
}

// TestMinHoldOfALostLockIsLost: a release under MinHold says so if a quorum does not have the lock any more, or does not
// answer, as any release does: with the error, and to Hooks.Unreleased.
func TestMinHoldOfALostLockIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		told := make(chan error, 2)
		f, lk, _ := aFleet(t, 3, Options{Hooks: &Hooks{Unreleased: func(_ *Lock, err error) { told <- err }}})
		l := acquired(t, lk, "a", MinHold(5*time.Second))
		for _, n := range f.nodes {
			n.Evict(9)
		}
		wantQuorumError(t, l.Release(t.Context()), ErrLost)
		wantQuorumError(t, <-told, ErrLost)

		l = acquired(t, lk, "b", MinHold(5*time.Second))
		for _, n := range f.nodes {
			n.Hang(true)
		}
		wantQuorumError(t, l.Release(t.Context()), ErrNoQuorum)
		wantQuorumError(t, <-told, ErrNoQuorum)
		for _, n := range f.nodes {
			n.Hang(false)
		}
		pass(30 * time.Second)
		acquired(t, lk, "b")
	})
}

// TestMinHoldCountsNoRefilledNode: another client may have been granted the node in between, and may get another one yet.
func TestMinHoldCountsNoRefilledNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		l := acquired(t, ms.locker(t, nil), "a", MinHold(5*time.Second))
		ms[0].forget()
		if err := l.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ms[1].forget()
		wantQuorumError(t, l.Release(t.Context()), ErrLost)
	})
}

// TestMinHoldWithASetThatHasChanged: the release goes by the members that there are then.
func TestMinHoldWithASetThatHasChanged(t *testing.T) {
	onNodes(t, 4, func(f *fleet) {
		lk, operator := f.locker(Options{}, f.nodes[:3]...), f.locker(Options{}, f.nodes[:3]...)
		f.locks(lk, true)
		f.locks(operator, true)
		l := acquired(f.T, lk, "a", AutoRenew(), MinHold(9*time.Second))
		f.change(operator, Change{Add: f.nodes[3].Name})
		if err := l.Release(f.Context()); err != nil {
			f.Error(err)
		}
	})
}

// TestMinHoldByTheClockThatIsBehind: a clock that is set forward ends MinHold no earlier.
func TestMinHoldByTheClockThatIsBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, lk, h := aFleet(t, 3, Options{})
		other, _ := f.open(Options{})
		l := acquired(t, lk, "a", MinHold(9*time.Second))
		pass(time.Second)
		h.Skew(8 * time.Second)
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(7 * time.Second)
		if _, err := other.TryAcquire(t.Context(), "a"); !errors.Is(err, ErrHeld) {
			t.Errorf("8 s after the lock was acquired: %v", err)
		}
	})
}

// TestMinHoldIsBoundedByTheSet: a key that nobody renews lives for the set's MaxTTL at most.
func TestMinHoldIsBoundedByTheSet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, lk, _ := aFleet(t, 3, Options{TTL: 4 * time.Second, MaxTTL: 10 * time.Second})
		for _, options := range [][]AcquireOption{{MinHold(11 * time.Second)}, {MinHold(0)}, {MinHold(2 * time.Second), MaxHold(time.Second)}} {
			if _, err := lk.TryAcquire(t.Context(), "a", options...); err == nil || !strings.Contains(err.Error(), "MinHold") {
				t.Errorf("%v", err)
			}
		}
		if s := inspected(t, lk, "a"); s.State != StateFree {
			t.Errorf("the lock is %v", s.State)
		}
	})
}

// TestMinHoldOfAHandleThatJoins: the lock is kept for the longest of its handles, and released with the last.
func TestMinHoldOfAHandleThatJoins(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, lk, _ := aFleet(t, 3, Options{})
		l := acquired(t, lk, "a")
		if _, err := lk.TryAcquire(l.Context(t.Context()), "a", Reentrant(), MinHold(time.Hour)); err == nil {
			t.Error("MinHold of a handle is over MaxTTL")
		}
		j := acquiredUnder(t, lk, l, "a", Reentrant(), MinHold(3*time.Second))
		if err := errors.Join(l.Release(t.Context()), j.Release(t.Context())); err != nil {
			t.Fatal(err)
		}
		if s := inspected(t, lk, "a"); s.State != StateHeld || s.TTL > 3*time.Second {
			t.Errorf("%v for %v", s.State, s.TTL)
		}
		pass(3 * time.Second)
		if s := inspected(t, lk, "a"); s.State != StateFree {
			t.Errorf("after MinHold: %v", s.State)
		}
	})
}

func acquiredUnder(t *testing.T, lk *Locker, l *Lock, name string, options ...AcquireOption) *Lock {
	t.Helper()
	j, err := lk.TryAcquire(l.Context(t.Context()), name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestMinHoldKeepsWhatIsGrantedLate: a node that grants the lock after its release keeps the token, too, as a spare.
func TestMinHoldKeepsWhatIsGrantedLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, lk, host := aFleet(t, 3, Options{})
		other, _ := f.open(Options{})
		first := acquired(t, other, "a")
		got := make(chan *Lock)
		go func() {
			l, err := lk.Acquire(t.Context(), "a", MinHold(8*time.Second))
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		pass(time.Second)
		late := make(chan struct{})
		f.nodes[2].Before(func(from *arena.Host, calls []arena.Call) <-chan struct{} {
			if from == host && calls[0].Op == wire.Acquire {
				return late
			}
			return nil
		})
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		l := <-got
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(late)
		pass(time.Second)
		for _, n := range f.nodes {
			if f.Tokens(n) != 1 {
				t.Errorf("%s has %d tokens", n.Name, f.Tokens(n))
			}
		}
	})
}
