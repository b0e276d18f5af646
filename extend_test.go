package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/renew"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/reading"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/quorumlock/redlock/redlocktrace"
)

// TestExtendCountsFromSending: validity is counted from before the first byte of
// the confirmed request, and an unconfirmed one moves nothing until it is confirmed (B3).
func TestExtendCountsFromSending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		l := acquired(t, lk, "a")
		pass(5 * time.Second)
		for _, m := range ms {
			m.slow(100 * time.Millisecond)
		}
		sent := time.Now()
		if err := l.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := sent.Add(10*time.Second - 102*time.Millisecond)
		if !l.Until().Equal(want) {
			t.Errorf("valid until %v after sending, want %v", l.Until().Sub(sent), want.Sub(sent))
		}
		for _, m := range ms[:3] {
			m.hang()
		}
		pass(5 * time.Second)
		ctx := l.Context(t.Context())
		begin := time.Now()
		wantQuorumError(t, l.Extend(t.Context()), ErrNoQuorum)
		if took := time.Since(begin); took != lk.settings().NodeTimeout {
			t.Errorf("failed after %v, want NodeTimeout", took)
		}
		if !l.Until().Equal(want) {
			t.Errorf("an unconfirmed extension moved the end by %v", l.Until().Sub(want))
		}
		ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		again := time.Now()
		if err := l.Extend(ended); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNoQuorum) {
			t.Errorf("%v is not both the context's error and why", err)
		}
		for _, m := range ms[:3] {
			m.resume() // the late extensions are carried out now
		}
		want = again.Add(10*time.Second - 102*time.Millisecond)
		wantEnd(t, ctx, want, errExpired)
		if err := l.Extend(t.Context()); !errors.Is(err, ErrLost) || errors.Is(err, ErrHeld) {
			t.Errorf("extending an expired lock: %v (E1)", err)
		}
	})
}

// TestExtensionThatComesTooLate: a confirmation after the end of validity does not count, whether
// or not a context has reported the end.
func TestExtensionThatComesTooLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		for i, before := range []time.Duration{5 * time.Millisecond, 0, -5 * time.Millisecond} {
			l := acquired(t, lk, fmt.Sprint(i))
			until := l.Until()
			pass(time.Until(until) - before)
			for _, m := range ms {
				m.slow(5 * time.Millisecond)
			}
			if err := l.Extend(t.Context()); !errors.Is(err, errExpired) {
				t.Errorf("begun %v before the end, confirmed 10 ms later: %v", before, err)
			}
			if !l.Until().Equal(until) {
				t.Errorf("begun %v before the end: the end moved by %v", before, l.Until().Sub(until))
			}
			for _, m := range ms {
				m.slow(0)
			}
			pass(time.Second)
			ms.empty(t)
		}
	})
}

// TestExtendAfterTheEnd: no node is asked to extend a lock whose validity is over, and the error says that
// nobody had extended it.
func TestExtendAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var asked int
		lk := newModels(3).locker(t, &Options{Hooks: &Hooks{Trace: &redlocktrace.Trace{Node: func(_ context.Context, r redlocktrace.Reply) {
			if r.Step == "extend" {
				asked++
			}
		}}}})
		l := acquired(t, lk, "a")
		pass(12 * time.Second)
		err := l.Extend(t.Context())
		if want := `redlock: "a": lock lost: validity ended, and it was not extended`; err == nil || err.Error() != want || !errors.Is(err, ErrLost) {
			t.Errorf("%v, want %s", err, want)
		}
		pass(time.Second)
		if asked != 0 {
			t.Errorf("%d nodes were asked", asked)
		}
	})
}

// TestExtensionThatIsConfirmedLate: answers that come after their round has ended count from when
// the extension was sent.
func TestExtensionThatIsConfirmedLate(t *testing.T) {
	const valid = 10*time.Second - 102*time.Millisecond
	t.Run("from when it was sent", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(3)
			l := acquired(t, ms.locker(t, nil), "a")
			pass(time.Second)
			ms[1].hang()
			ms[2].hang()
			sent, before := time.Now(), l.Until()
			wantQuorumError(t, l.Extend(t.Context()), ErrNoQuorum)
			pass(time.Second)
			if !l.Until().Equal(before) {
				t.Errorf("one answer of three moved the end by %v", l.Until().Sub(before))
			}
			ms[1].resume()
			pass(time.Millisecond)
			if want := sent.Add(valid); !l.Until().Equal(want) {
				t.Errorf("valid until %v after sending, want %v", l.Until().Sub(sent), valid)
			}
			ms[2].resume()
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprintf("not if the lock has ended, and its holder was told: %v", told), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(3)
				l := acquired(t, ms.locker(t, nil), "a")
				until := l.Until()
				pass(time.Until(until) - time.Second)
				ms[1].hang()
				ms[2].hang()
				wantQuorumError(t, l.Extend(t.Context()), ErrNoQuorum)
				if told {
					wantEnd(t, l.Context(t.Context()), until, errExpired)
				}
				pass(time.Until(until))
				ms[1].resume()
				ms[2].resume()
				pass(time.Second)
				if !l.Until().Equal(until) {
					t.Errorf("the end moved by %v after the end", l.Until().Sub(until))
				}
				if err := l.Release(t.Context()); !errors.Is(err, ErrLost) {
					t.Errorf("released: %v", err)
				}
				pass(time.Second)
				ms.empty(t)
			})
		})
	}
	t.Run("not past MaxHold", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(3)
			l := acquired(t, ms.locker(t, nil), "a", MaxHold(12*time.Second))
			ctx, most := l.Context(t.Context()), time.Now().Add(12*time.Second)
			pass(5 * time.Second)
			ms[1].hang()
			ms[2].hang()
			wantQuorumError(t, l.Extend(t.Context()), ErrNoQuorum)
			ms[1].resume()
			ms[2].resume()
			wantEnd(t, ctx, most, errMaxHold)
		})
	})
	t.Run("not after an extension that was sent later", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			pass(time.Second)
			for _, m := range ms[2:] {
				m.hang()
			}
			wantQuorumError(t, l.Extend(t.Context()), ErrNoQuorum)
			ms[2].resume()
			pass(time.Second)
			sent := time.Now()
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			ms[3].resume()
			ms[4].resume()
			pass(time.Second)
			if want := sent.Add(valid); !l.Until().Equal(want) {
				t.Errorf("valid until %v after the second was sent, want %v", l.Until().Sub(sent), valid)
			}
		})
	})
	for what, lose := range map[string]func(m *model){
		"has lost it since":     func(m *model) { m.forget() },
		"has a rival's by then": func(m *model) { m.put("a", "rival", time.Minute) },
	} {
		t.Run("not with the yes of a node that "+what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(3)
				l := acquired(t, ms.locker(t, nil), "a")
				pass(time.Second)
				ms[1].hang()
				ms[2].hang()
				before := l.Until()
				wantQuorumError(t, l.Extend(t.Context()), ErrNoQuorum)
				lose(ms[0])
				pass(100 * time.Millisecond)
				wantQuorumError(t, l.Extend(t.Context()), ErrNoQuorum) // at once, and the no comes a moment later
				pass(time.Millisecond)
				ms[1].resume()
				pass(time.Millisecond)
				if !l.Until().Equal(before) {
					t.Errorf("the end moved by %v", l.Until().Sub(before))
				}
				ms[2].resume() // now it is a quorum without that node
				pass(100 * time.Millisecond)
				if !l.Until().After(before) {
					t.Error("the end did not move with two of three")
				}
				sent := time.Now()
				if err := l.Extend(t.Context()); err != nil || !l.Until().Equal(sent.Add(valid)) {
					t.Errorf("extended once more: %v, until %v after sending", err, l.Until().Sub(sent))
				}
			})
		})
	}
	t.Run("and a lock is kept on nodes that are always too late", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(3)
			lk := ms.locker(t, &Options{TTL: time.Second, NodeTimeout: 100 * time.Millisecond})
			l := acquired(t, lk, "a", AutoRenew())
			ctx := l.Context(t.Context())
			ms[1].slow(55 * time.Millisecond)
			ms[2].slow(55 * time.Millisecond)
			pass(time.Minute)
			if ctx.Err() != nil {
				t.Fatal(context.Cause(ctx))
			}
			if err := l.Release(t.Context()); !errors.Is(err, ErrNoQuorum) {
				t.Errorf("released: %v", err)
			}
			pass(time.Second)
			ms.empty(t)
		})
	})
}

// TestFilledNodesDoNotCount: a node that lost the token gets it again, but does
// not vouch for the time in between (B2, B4).
func TestFilledNodesDoNotCount(t *testing.T) {
	t.Run("a rival had it in between", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			lk, rival := ms.locker(t, nil), ms.locker(t, nil)
			l := acquired(t, lk, "a")
			for _, m := range ms[:3] {
				m.forget()
			}
			theirs := acquired(t, rival, "a")
			if err := theirs.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantQuorumError(t, l.Extend(t.Context()), ErrLost)
			pass(time.Second)
			ms.empty(t)
		})
	})
	t.Run("all nodes are filled up, and count again later", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(3)
			lk := ms.locker(t, nil)
			ms[0].put("a", "rival", time.Second) // a losing rival briefly sits there
			l := acquired(t, lk, "a")
			if n := ms.held("a", l.Token()); n != 2 {
				t.Fatalf("held on %d nodes", n)
			}
			pass(2 * time.Second)
			for i, lose := range []int{-1, -1, 1, -1, -1, 2, -1, -1, 0} {
				if lose >= 0 {
					ms[lose].forget()
				}
				if err := l.Extend(t.Context()); err != nil {
					t.Fatalf("extension %d: %v", i, err)
				}
				synctest.Wait()
				if n := ms.held("a", l.Token()); n != 3 {
					t.Errorf("extension %d: held on %d of 3 nodes", i, n)
				}
			}
		})
	})
	t.Run("not in the very next extension", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(3)
			l := acquired(t, ms.locker(t, nil), "a")
			ms[0].forget()
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			ms[1].forget()
			// Node 0 has the token, since the last extension; node 2 alone has
			// had it since before.
			wantQuorumError(t, l.Extend(t.Context()), ErrLost)
		})
	})
	t.Run("not from when it was asked", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			const timeout = 500 * time.Millisecond
			ms, filling, rivals, never := newModels(3), make(chan struct{}), make(chan struct{}), make(chan struct{})
			defer close(never)
			away := false
			lk := ms.over(t, &Options{NodeTimeout: timeout}, func(c *modelConn) {
				c.gate(func(q *arena.Call) chan struct{} {
					switch {
					case c.model == ms[0] && q.Op == wire.Acquire && q.Ticket == lane.Ours:
						return filling
					case c.model == ms[1] && away:
						return never
					}
					return nil
				})
			})
			rival := ms.over(t, &Options{NodeTimeout: timeout}, func(c *modelConn) {
				c.gate(func(q *arena.Call) chan struct{} {
					if c.model == ms[1] && (q.Op == wire.Acquire || q.Op == wire.Plain) {
						return rivals
					}
					return nil
				})
			})
			l := acquired(t, lk, "a", TTL(600*time.Millisecond))
			synctest.Wait()
			ms[0].forget()
			for range 2 { // node 0 is asked to take the token again; and 1 and 2 confirm
				if err := l.Extend(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			pass(480 * time.Millisecond)
			got := make(chan error, 1)
			go func() {
				_, err := rival.TryAcquire(t.Context(), "a")
				got <- err
			}()
			synctest.Wait()
			ms[0].forget()
			close(filling)
			synctest.Wait()
			if ms[0].holder("a") != l.Token() {
				t.Fatal("node 0 was not filled up")
			}
			pass(60 * time.Millisecond)
			away = true
			if err := l.Extend(t.Context()); err == nil {
				t.Error("2 confirms it, and 0, which is not known to have had the token all the time")
			}
			pass(70 * time.Millisecond)
			close(rivals)
			if err := <-got; err == nil && time.Until(l.Until()) > 0 {
				t.Error("there are two holders")
			}
		})
	})
	t.Run("not when the reply of the filling was lost", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(3)
			lk := ms.over(t, nil, func(c *modelConn) {
				c.gate(func(q *arena.Call) chan struct{} {
					if c.model != ms[0] || q.Op != wire.Acquire {
						return nil
					}
					lost := make(chan struct{})
					go func() { c.model.Lose(1); close(lost) }()
					return lost
				})
			})
			l := acquired(t, lk, "a")
			ms[0].forget()
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(time.Second) // the lane has a connection again
			if n := ms.held("a", l.Token()); n != 3 {
				t.Fatalf("held on %d nodes", n)
			}
			ms[1].forget()
			wantQuorumError(t, l.Extend(t.Context()), ErrLost)
		})
	})
}

// TestAutoRenewExtendsUntilTheRelease: after every third of the TTL, and no longer once the lock was released.
func TestAutoRenewExtendsUntilTheRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, &Options{TTL: 3 * time.Second})
		l := acquired(t, lk, "a", AutoRenew())
		pass(time.Hour)
		if rest := time.Until(l.Until()); rest < time.Second {
			t.Errorf("after an hour %v are left", rest)
		}
		synctest.Wait()
		renewals := 0
		for _, did := range ms[0].seen {
			if did == "extend a" {
				renewals++
			}
		}
		if renewals < 3590 || renewals > 3700 {
			t.Errorf("%d renewals in an hour at a third of 3 s", renewals)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		pass(0)
		sent := len(ms[0].seen)
		pass(time.Minute)
		if now := ms[0].seen[sent:]; len(now) > 0 {
			t.Errorf("after the release: %q", now)
		}
	})
}

// TestRenewalIsTriedAgain: a majority that hangs for half the TTL costs nothing.
func TestRenewalIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		l := acquired(t, ms.locker(t, nil), "a", AutoRenew())
		ctx := l.Context(t.Context())
		for range 5 {
			for _, m := range ms[:3] {
				m.hang()
			}
			pass(5 * time.Second)
			for _, m := range ms[:3] {
				m.resume()
			}
			pass(20 * time.Second)
			if ctx.Err() != nil {
				t.Fatal(context.Cause(ctx))
			}
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestMaxHoldEndsALock: a lock ends after MaxHold, renewed or extended, and its keys are deleted then.
func TestMaxHoldEndsALock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		begin := time.Now()
		l := acquired(t, lk, "a", AutoRenew(), MaxHold(time.Minute))
		wantEnd(t, l.Context(t.Context()), begin.Add(time.Minute), errMaxHold)
		short := acquired(t, lk, "b", MaxHold(time.Second))
		if !short.Until().Equal(time.Now().Add(time.Second)) {
			t.Errorf("valid for %v", time.Until(short.Until()))
		}
		if err := short.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		if !short.Until().Equal(time.Now().Add(time.Second)) {
			t.Errorf("extended to %v", time.Until(short.Until()))
		}
		wantEnd(t, short.Context(t.Context()), short.Until(), errMaxHold)
		synctest.Wait()
		ms.empty(t)
	})
}

// A wobbly clock has two readings, as that of a host, of which the monotonic one is now and then 30 ns late.
type wobbly struct{ looks atomic.Int64 }

func (c *wobbly) Now() time.Time {
	now, n := time.Now(), c.looks.Add(1)
	return reading.Of(now, now.Add(-30*time.Duration(n*n%7%2)))
}

// TestMaxHoldIsReachedOnClocksThatWobble: that a lock lives for no longer than MaxHold is known, whatever lies between two
// readings: it is not extended in vain, and the reason for its end is MaxHold.
func TestMaxHoldIsReachedOnClocksThatWobble(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lk := newModels(3).locker(t, &Options{Clock: new(wobbly)})
		for range 50 {
			l := acquired(t, lk, "a", MaxHold(time.Second))
			for range 10 {
				if !l.spent() {
					t.Fatalf("MaxHold would allow more, with %v left", l.left())
				}
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestThousandsAreRenewedInFewPipelines: one goroutine renews them all, in few pipelines, some
// hundred at a time, and all of them when they are due.
func TestThousandsAreRenewedInFewPipelines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 2000
		ms, counted := newModels(1), new(counting)
		lk := ms.over(t, nil, counted.over)
		goroutines := leaks.Running()
		locks := make([]*Lock, n)
		for i := range locks {
			locks[i] = acquired(t, lk, fmt.Sprint(i), AutoRenew())
		}
		before := len(counted.sizes())
		due := locks[0].Until().Add(lk.settings().drift(lk.settings().TTL) - lk.settings().TTL*2/3) // a third of the TTL after it was sent
		pass(time.Until(due))
		renewals := counted.sizes()[before:]
		if got := sum(renewals); got != n {
			t.Errorf("%d of %d were renewed when they were due", got, n)
		}
		if most := slices.Max(renewals); most > renew.MaxUnderWay {
			t.Errorf("%d renewals were under way at once", most)
		}
		pass(25 * time.Second)
		if now := leaks.Running(); now > goroutines {
			t.Errorf("%d goroutines, %d before", now, goroutines)
		}
		if batches := len(counted.sizes()) - before; batches > 8*n/20 {
			t.Errorf("eight renewals of %d locks took %d pipelines", n, batches)
		}
		for _, l := range locks {
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n, _ := lk.renewals.Len(); n > 0 {
			t.Error("released locks are still in the heap")
		}
	})
}

// TestRenewalsDueTogetherSharePipelines: locks that are due at nearly the same time share their
// pipelines.
func TestRenewalsDueTogetherSharePipelines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms, counted := newModels(1), new(counting)
		lk := ms.over(t, nil, counted.over)
		for i := range 90 {
			acquired(t, lk, fmt.Sprint(i), AutoRenew())
			pass(time.Millisecond)
		}
		before := len(counted.sizes())
		pass(5 * time.Second)
		renewals := counted.sizes()[before:]
		if sum(renewals) != 90 || len(renewals) > 30 {
			t.Errorf("90 renewals, due within 90 ms, went in pipelines of %v", renewals)
		}
	})
}

// TestDoPassesOnErrorsPanicsAndLosses: the function runs under the lock, renewed; its error and its panic reach the
// caller, and so does the loss of the lock.
func TestDoPassesOnErrorsPanicsAndLosses(t *testing.T) {
	errWork := errors.New("work failed")
	t.Run("passes on the error", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			lk := ms.locker(t, nil)
			err := lk.Do(t.Context(), "a", func(ctx context.Context, l *Lock) error {
				pass(time.Hour)
				if n := ms.held("a", l.Token()); n != 5 || ctx.Err() != nil {
					t.Errorf("after an hour held on %d nodes, %v", n, ctx.Err())
				}
				return errWork
			})
			synctest.Wait()
			if err != errWork || len(ms.left()) > 0 {
				t.Errorf("%v; left on the nodes: %v", err, ms.left())
			}
		})
	})
	t.Run("passes on a panic", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			lk := ms.locker(t, nil)
			func() {
				defer func() {
					if got := recover(); got != errWork {
						t.Errorf("recovered %v", got)
					}
				}()
				lk.Do(t.Context(), "a", func(context.Context, *Lock) error { panic(errWork) })
			}()
			synctest.Wait()
			ms.empty(t)
		})
	})
	t.Run("tells that the lock was lost", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			lk := ms.locker(t, nil)
			err := lk.Do(t.Context(), "a", func(ctx context.Context, l *Lock) error {
				for _, m := range ms {
					m.forget()
				}
				<-ctx.Done()
				return errWork
			})
			if !errors.Is(err, errWork) || !errors.Is(err, ErrLost) {
				t.Errorf("got %v, want both", err)
			}
		})
	})
	t.Run("tells it also when the work did not notice", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			err := ms.locker(t, nil).Do(t.Context(), "a", func(context.Context, *Lock) error {
				synctest.Wait()
				for _, m := range ms {
					m.forget()
				}
				return nil
			})
			if !errors.Is(err, ErrLost) {
				t.Errorf("got %v, want ErrLost", err)
			}
		})
	})
	t.Run("does not fail for a release that got no answer", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			err := ms.locker(t, nil).Do(t.Context(), "a", func(context.Context, *Lock) error {
				for _, m := range ms {
					m.hang()
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("does not call the function without the lock", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(1)
			ms[0].put("a", "rival", time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := ms.locker(t, nil).Do(ctx, "a", func(context.Context, *Lock) error {
				t.Error("called")
				return nil
			})
			if !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	})
}

// TestRenewalIsNotPutOff: that the holder extends the lock himself just now, and
// gives up on it at once, is no reason to be late with the renewal.
func TestRenewalIsNotPutOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, &Options{TTL: 300 * time.Millisecond, NodeTimeout: 140 * time.Millisecond})
		l := acquired(t, lk, "a", AutoRenew())
		held := l.Context(t.Context())
		pass(99 * time.Millisecond) // the renewal is due in one
		for _, m := range ms {
			m.slow(20 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
		defer cancel()
		given := time.Now() // the extension that is given up reaches to a TTL from here, when its answers are here
		if err := l.Extend(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("extended: %v", err)
		}
		pass(80 * time.Millisecond)
		if !l.Until().After(given.Add(300*time.Millisecond)) || held.Err() != nil {
			t.Errorf("not renewed within 80 ms, of the 300 that it has; %v", context.Cause(held))
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestRenewWhileEndsWithItsContext: the lock then lasts until the end of its validity, and no longer; a release comes first if it does.
func TestRenewWhileEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, lk, _ := aFleet(t, 3, Options{})
		request, cancel := context.WithCancel(t.Context())
		l := acquired(t, lk, "a", RenewWhile(request))
		gone := acquired(t, lk, "b", RenewWhile(request))
		j := acquiredUnder(t, lk, acquired(t, lk, "c"), "c", Reentrant(), RenewWhile(request))
		pass(time.Minute)
		if err := errors.Join(gone.Release(t.Context()), l.why(), j.why()); err != nil {
			t.Fatal("it was not renewed:", err)
		}
		cancel()
		synctest.Wait()
		<-l.Context(t.Context()).Done()
		if late := time.Since(l.Until()); late < 0 || late > time.Millisecond || !errors.Is(l.why(), errExpired) {
			t.Errorf("ended %v after its validity: %v", late, l.why())
		}
		pass(10 * time.Second)
		if j.why() == nil {
			t.Error("the handle that joined is renewed still")
		}
		if err := j.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

// TestLocksInUseAreNotForgotten: no Warning if a context is made for each call, during Shutdown, and where MaxHold ends the lock.
func TestLocksInUseAreNotForgotten(t *testing.T) {
	for name, use := range map[string]func(lk *Locker, l *Lock){
		"a context for each call": func(_ *Locker, l *Lock) {
			for range 120 {
				call, cancel := context.WithCancel(context.Background())
				_ = l.Context(call)
				pass(time.Minute / 2)
				cancel()
				pass(time.Minute / 2)
			}
		},
		"Shutdown": func(lk *Locker, l *Lock) {
			_ = l.Context(context.Background())
			go func() {
				_ = lk.Do(context.Background(), "b", func(context.Context, *Lock) error { pause(3 * time.Hour); return nil })
			}()
			pass(2 * time.Hour)
			_ = lk.Shutdown(context.Background())
		},
		"MaxHold": func(lk *Locker, _ *Lock) {
			if _, err := lk.TryAcquire(context.Background(), "c", AutoRenew(), MaxHold(3*time.Hour)); err != nil {
				panic(err)
			}
			pass(2 * time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				_, lk, _ := aFleet(t, 3, Options{Hooks: &Hooks{Warning: func(err error) { t.Error(err) }}})
				l := acquired(t, lk, "a", AutoRenew())
				if name == "MaxHold" {
					_ = l.Release(t.Context())
				}
				use(lk, l)
			})
		})
	}
}

// TestForgottenLockIsWarnedOfOnce: one that is renewed for an hour while nobody would notice its end, by the place in the program.
func TestForgottenLockIsWarnedOfOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var warned []string
		var mu sync.Mutex
		_, lk, _ := aFleet(t, 3, Options{Hooks: &Hooks{Warning: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			warned = append(warned, err.Error())
		}}})
		used := acquired(t, lk, "used", AutoRenew())
		ctx := used.Context(t.Context())
		bounded := acquired(t, lk, "bounded", RenewWhile(t.Context()))
		go func() {
			_ = lk.Do(t.Context(), "do", func(ctx context.Context, _ *Lock) error { <-ctx.Done(); return nil })
		}()
		for i := range 3 {
			_, err := lk.Acquire(t.Context(), fmt.Sprint("forgotten", i), AutoRenew())
			if err != nil {
				t.Fatal(err)
			}
		}
		pass(3 * time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if len(warned) != 1 || !strings.Contains(warned[0], "extend_test.go:") || !strings.Contains(warned[0], "TestForgottenLockIsWarnedOfOnce") {
			t.Errorf("warned: %q", warned)
		}
		if ctx.Err() != nil || bounded.why() != nil {
			t.Error("the others have ended")
		}
	})
}

// TestReleaseOfALateKeyThatComesLate: a node sets the key when the time is up, and is told to drop it. That release is on
// its way for so long that the connection is given up. Over the next one the node drops the key. Then the first release
// arrives: if the node had been given the key again, and had confirmed an extension, there could be two holders.
func TestReleaseOfALateKeyThatComesLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const timeout = 50 * time.Millisecond
		ms, hung, ghost := newModels(3), make(chan struct{}), make(chan struct{})
		releases := 0
		lk := ms.over(t, &Options{NodeTimeout: timeout}, func(c *modelConn) {
			c.gate(func(q *arena.Call) chan struct{} {
				switch {
				case c.model != ms[2]:
				case q.Op == wire.Plain:
					return hung
				case q.Op == wire.Release:
					if releases++; releases == 1 {
						return ghost
					}
				}
				return nil
			})
		})
		rival := ms.locker(t, &Options{NodeTimeout: timeout})
		l := acquired(t, lk, "a")
		pass(4 * timeout)
		close(hung)
		pass(patience(timeout) + time.Second)
		if releases != 2 || ms[2].holder("a") != "" {
			t.Fatalf("%d releases, the node has %q", releases, ms[2].holder("a"))
		}
		extends(t, l, 2) // the node gets the token again, and the others confirm
		pass(4 * time.Second)
		ms[1].kill()
		err := l.Extend(t.Context())
		close(ghost)
		pass(time.Millisecond)
		ms[1].revive()
		oneHolder(t, l, rival, timeout)
		wantQuorumError(t, err, ErrNoQuorum)
	})
}

// TestAcquireThatComesLateToAnEmptiedNode: an acquire by plain commands is on its way for so long that the connection is
// given up, and its node loses its data before it carries it out. What the node forgets is a grant to a rival, which is
// waiting for another vote: the key that is there now must not count for an extension, as if it had been there all along.
// Nor may it if the node was given the token since, has confirmed extensions, and then could not be reached until it had
// dropped the key.
func TestAcquireThatComesLateToAnEmptiedNode(t *testing.T) {
	for _, refilled := range []bool{false, true} {
		t.Run(fmt.Sprint("refilled ", refilled), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const timeout = 500 * time.Millisecond
				ms, ghost, rivals, never := newModels(3), make(chan struct{}), make(chan struct{}), make(chan struct{})
				defer close(never)
				away := make(map[*model]bool)
				lk := ms.over(t, &Options{NodeTimeout: timeout}, func(c *modelConn) {
					c.gate(func(q *arena.Call) chan struct{} {
						switch {
						case c.model == ms[2] && q.Op == wire.Plain && q.Keys[0] == "a":
							return ghost
						case away[c.model]:
							return never
						}
						return nil
					})
				})
				rival := ms.over(t, &Options{NodeTimeout: timeout}, func(c *modelConn) {
					c.gate(func(q *arena.Call) chan struct{} {
						if c.model == ms[1] && q.Op == wire.Plain {
							return rivals
						}
						return nil
					})
				})
				l := acquired(t, lk, "a")
				if refilled {
					pass(patience(timeout) + time.Second)
					extends(t, l, 3)
					if ms[2].holder("a") != l.Token() {
						t.Fatal("the node was not refilled")
					}
					away[ms[2]] = true
					pass(5 * time.Second)
					extends(t, l, 1)
				}
				pass(9800 * time.Millisecond) // 98 ms before its validity ends
				got := make(chan error, 1)
				go func() {
					_, err := rival.TryAcquire(t.Context(), "a")
					got <- err
				}()
				pass(time.Millisecond)
				if holder := ms[2].holder("a"); holder == "" || holder == l.Token() {
					t.Fatalf("the rival has not been granted the node: %q", holder)
				}
				ms[2].Flush()
				close(ghost)
				if refilled {
					away[ms[2]] = false
					pass(60 * time.Millisecond)
				}
				for _, name := range []string{"b", "c"} { // the client meets the node again, and tells it the set's description
					pass(time.Millisecond)
					_, _ = lk.TryAcquire(t.Context(), name)
				}
				pass(time.Millisecond)
				if ms[2].holder("a") != l.Token() {
					t.Fatal("the acquire has not come")
				}
				away[ms[1]] = true
				extended := make(chan error, 1)
				go func() { extended <- l.Extend(t.Context()) }()
				pass(time.Until(l.Until()) + 150*time.Millisecond) // node 1 has dropped the key
				close(rivals)
				if err := <-got; err != nil {
					t.Fatalf("the rival has not got the lock: %v", err)
				}
				if left := time.Until(l.Until()); left > 0 {
					t.Errorf("there are two holders, for another %v", left)
				}
				wantQuorumError(t, <-extended, ErrLost)
			})
		})
	}
}

// extends extends l n times, and lets the nodes answer each time.
func extends(t *testing.T, l *Lock, n int) {
	t.Helper()
	for range n {
		if err := l.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Millisecond)
	}
}

// oneHolder has a rival try, again and again, until l is over: it must not get the lock.
func oneHolder(t *testing.T, l *Lock, rival *Locker, pause time.Duration) {
	t.Helper()
	for time.Until(l.Until()) > 0 {
		if _, err := rival.TryAcquire(t.Context(), l.Name()); err == nil {
			t.Fatalf("there are two holders, for another %v", time.Until(l.Until()))
		}
		pass(pause)
	}
}
