package redlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestExtendCountsFromSending: validity is counted from before the first byte of
// the confirmed request, and an unconfirmed one moves nothing (B3).
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
		if took := time.Since(begin); took != lk.opts.NodeTimeout {
			t.Errorf("failed after %v, want NodeTimeout", took)
		}
		if !l.Until().Equal(want) {
			t.Errorf("an unconfirmed extension moved the end by %v", l.Until().Sub(want))
		}
		ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := l.Extend(ended); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNoQuorum) {
			t.Errorf("%v is not both the context's error and why", err)
		}
		for _, m := range ms[:3] {
			m.resume() // the late extension is carried out now
		}
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
			if left := ms.left(); len(left) > 0 {
				t.Errorf("left on the nodes: %v", left)
			}
		}
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
			if left := ms.left(); len(left) > 0 {
				t.Errorf("left on the nodes: %v", left)
			}
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
	t.Run("not when the reply of the filling was lost", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(3)
			l := acquired(t, ms.locker(t, nil), "a")
			ms[0].forget()
			ms[0].spy = func(q *lane.Request) {
				if q.Op == wire.Acquire {
					ms[0].deaf = 1
				}
			}
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
