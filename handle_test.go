package redlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// handle detaches a lock, and gives what another process reads of what this one writes.
func handle(t *testing.T, l *Lock) (h Handle) {
	t.Helper()
	detached, err := l.Detach()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(detached)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func attached(t *testing.T, lk *Locker, h Handle, options ...AcquireOption) *Lock {
	t.Helper()
	l, err := lk.Attach(t.Context(), h, options...)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return l
}

// TestAttachGivesBackWhatIsLeftOfALostLock: with a quorum of nodes that do not have it any more there is no
// lock, and what is left of it is given back.
func TestAttachGivesBackWhatIsLeftOfALostLock(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, ms models, rival *Locker){
		"its TTL is over":        func(*testing.T, models, *Locker) { pass(10001 * time.Millisecond) },
		"nodes have forgotten":   func(_ *testing.T, ms models, _ *Locker) { ms[0].forget(); ms[1].forget(); ms[2].forget() },
		"another has it already": func(t *testing.T, _ models, rival *Locker) { pass(10001 * time.Millisecond); acquired(t, rival, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(5)
				lk := ms.locker(t, nil)
				h := handle(t, acquired(t, lk, "a"))
				lose(t, ms, ms.locker(t, nil))
				wantQuorumError(t, attachFails(t, lk, h), ErrLost)
				pass(time.Second)
				if n := ms.held("a", h.Token); n > 0 {
					t.Errorf("left on %d nodes", n)
				}
			})
		})
	}
}

func attachFails(t *testing.T, lk *Locker, h Handle) error {
	t.Helper()
	l, err := lk.Attach(t.Context(), h)
	if err == nil {
		t.Fatalf("attached: %v", l)
	}
	return err
}

// TestAttachWithoutQuorumTakesNothingAway: too few answers take nothing away, and the handle is as good as
// before.
func TestAttachWithoutQuorumTakesNothingAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		h := handle(t, acquired(t, lk, "a"))
		for _, m := range ms[:3] {
			m.hang()
		}
		wantQuorumError(t, attachFails(t, lk, h), ErrNoQuorum)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := lk.Attach(ctx, h); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNoQuorum) {
			t.Errorf("%v is not both the context's error and why", err)
		}
		for _, m := range ms[:3] {
			m.resume()
		}
		pass(time.Second)
		if n := ms.held("a", h.Token); n != 5 {
			t.Errorf("held on %d nodes", n)
		}
		attached(t, lk, h)
	})
}

// TestAttachRefusesVotesThatTookTheWholeLife: votes that take a lock's whole life to come are too late, as they are to
// acquire it.
func TestAttachRefusesVotesThatTookTheWholeLife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms, clock := newModels(3), new(pausing)
		lk := ms.locker(t, &Options{Clock: clock, Quorum: 3})
		h := handle(t, acquired(t, lk, "a"))
		ms[2].slow(time.Millisecond)
		ms[2].spy = func(*arena.Call) { clock.skipped.Store(int64(9898 * time.Millisecond)) }
		if q := wantQuorumError(t, attachFails(t, lk, h), ErrNoQuorum); q.Granted < 3 {
			t.Errorf("%v", q)
		}
	})
}

// TestDetachKeepsLateGrants: a grant of the acquisition's that comes in when the lock is
// detached is part of it. Were it given back, then a node would lose a lock that the next
// process has counted it for. Detach waits for the nodes that have yet to answer, for a
// NodeTimeout at most. Those that have not by then are in the handle, and never count.
func TestDetachKeepsLateGrants(t *testing.T) {
	for _, tt := range []struct{ far, waits time.Duration }{
		{100 * time.Millisecond, 200 * time.Millisecond},
		{300 * time.Millisecond, 500 * time.Millisecond},
	} {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			lk := ms.locker(t, nil)
			for _, m := range ms[3:] {
				m.slow(tt.far)
			}
			l, err := lk.Acquire(t.Context(), "a") // a call that may wait learns of late grants itself
			if err != nil {
				t.Fatal(err)
			}
			if n := ms.held("a", l.Token()); n != 3 {
				t.Errorf("held on %d nodes at once", n)
			}
			begun := time.Now()
			h := handle(t, l)
			if waited := time.Since(begun); waited < tt.waits || waited > tt.waits+100*time.Millisecond {
				t.Errorf("%+v: waited for %v", tt, waited)
			}
			if late := tt.far*2 > tt.waits; late != (fmt.Sprint(h.Healed) == "[node3 node4]") || !late && h.Healed != nil {
				t.Errorf("%+v: without a vote: %v", tt, h.Healed)
			}
			pass(time.Second)
			if n := ms.held("a", h.Token); n != 5 {
				t.Errorf("held on %d of 5 nodes", n)
			}
		})
	}
}

// TestDetachKnowsOfAReleaseUnderWay: a node has set the key too late, and the release of that has not been answered when the
// lock is detached, though it was extended in the meantime. The release may come when the next process relies on the key.
func TestDetachKnowsOfAReleaseUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const timeout = 50 * time.Millisecond
		ms, hung, releases := newModels(3), make(chan struct{}), make(chan struct{})
		lk := ms.over(t, &Options{NodeTimeout: timeout}, func(c *modelConn) {
			c.gate(func(q *arena.Call) chan struct{} {
				switch {
				case c.model != ms[2]:
				case q.Op == wire.Plain:
					return hung
				case q.Op == wire.Release:
					return releases
				}
				return nil
			})
		})
		next, rival := ms.locker(t, &Options{NodeTimeout: timeout}), ms.locker(t, &Options{NodeTimeout: timeout})
		l := acquired(t, lk, "a")
		pass(4 * timeout)
		close(hung)
		pass(2 * timeout)
		extends(t, l, 3)
		if ms[2].holder("a") != l.Token() {
			t.Fatal("the node does not have the key")
		}
		l, err := next.Attach(t.Context(), handle(t, l))
		if err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		ms[1].kill()
		err = l.Extend(t.Context())
		close(releases)
		pass(time.Millisecond)
		ms[1].revive()
		oneHolder(t, l, rival, timeout)
		wantQuorumError(t, err, ErrNoQuorum)
	})
}

// TestHealedNodesNeverCount: a node that was refilled before the lock was detached has no vote for
// the process that attaches it. Nor are nodes refilled that have lost it since: since when a node has
// the token could not be told any more.
func TestHealedNodesNeverCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		l := acquired(t, lk, "a")
		ms[0].forget()
		if err := l.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h := handle(t, l)
		if fmt.Sprint(h.Healed) != "[node0]" || ms.held("a", h.Token) != 3 {
			t.Fatalf("healed are %v; held on %d nodes", h.Healed, ms.held("a", h.Token))
		}
		l = attached(t, ms.locker(t, nil), h)
		for range 3 { // however often it is extended, and handed on
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			h = handle(t, l)
			l = attached(t, lk, h)
		}
		if fmt.Sprint(h.Healed) != "[node0]" {
			t.Errorf("healed are %v", h.Healed)
		}
		ms[1].forget()
		wantQuorumError(t, l.Extend(t.Context()), ErrLost)

		// Two extensions later it has a vote again, and no need to be in the handle.
		l = acquired(t, lk, "b")
		ms[0].forget()
		for range 3 {
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if h = handle(t, l); len(h.Healed) > 0 {
			t.Errorf("healed are %v", h.Healed)
		}
		l = attached(t, lk, h)
		ms[1].forget()
		for range 3 {
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := ms.held("b", h.Token); n != 2 {
			t.Errorf("held on %d nodes: one that had lost an attached lock was given it anew", n)
		}
	})
}

// TestMaxHoldIsHandedOnWithTheLock: the limit belongs to the lock, whichever process has it.
func TestMaxHoldIsHandedOnWithTheLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		begun := time.Now()
		h := handle(t, acquired(t, lk, "a", MaxHold(15*time.Second)))
		pass(8 * time.Second)
		l := attached(t, lk, h)
		ctx := l.Context(t.Context())
		wantEnd(t, ctx, begun.Add(15*time.Second), errMaxHold)
		synctest.Wait() // it is given back

		h = handle(t, acquired(t, lk, "a", MaxHold(8*time.Second)))
		pass(9 * time.Second)
		if err := attachFails(t, lk, h); !errors.Is(err, errMaxHold) {
			t.Errorf("attached after its time: %v", err)
		}
		pass(time.Second)
		ms.empty(t)
	})
}

// TestDetachWaitsForWhatIsUnderWay: what is said to the nodes while it is detached is over before; so the
// handle knows of every node that was given it anew.
func TestDetachWaitsForWhatIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		l := acquired(t, ms.locker(t, nil), "a")
		for _, m := range ms {
			m.slow(100 * time.Millisecond)
		}
		extended := make(chan error, 1)
		go func() { extended <- l.Extend(t.Context()) }()
		pass(50 * time.Millisecond)
		begun := time.Now()
		h := handle(t, l)
		if waited := time.Since(begun); waited != 150*time.Millisecond {
			t.Errorf("waited for %v", waited)
		}
		if err := <-extended; err != nil {
			t.Error(err)
		}
		if want := begun.Add(10*time.Second - 152*time.Millisecond); !h.Until.Equal(want) {
			t.Errorf("the handle's lock is valid for %v, want %v", h.Until.Sub(begun), want.Sub(begun))
		}
	})
}

// TestDetachRefusesWhatHasEnded: a lock that has expired or was released cannot be detached, nor can a handle that
// has joined another one. When that one is detached, those that have joined are told.
func TestDetachRefusesWhatHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lk := newModels(3).locker(t, nil)
		l := acquired(t, lk, "a")
		inner, err := lk.TryAcquire(l.Context(t.Context()), "a", Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inner.Detach(); err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("detached from within: %v", err)
		}
		within := inner.Context(t.Context())
		handle(t, l)
		if got := context.Cause(within); got != errDetached {
			t.Errorf("the handle that joined is told %v", got)
		}
		l = acquired(t, lk, "b")
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Detach(); err != errReleased {
			t.Errorf("detached after its release: %v", err)
		}
		l = acquired(t, lk, "c")
		pass(10 * time.Second)
		if _, err := l.Detach(); !errors.Is(err, errExpired) {
			t.Errorf("detached after its end: %v", err)
		}
	})
}

// TestAttachRefusesBadHandlesUnsent: what is wrong with a handle is said before anything is sent.
func TestAttachRefusesBadHandlesUnsent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, &Options{Separator: "/"})
		good := handle(t, acquired(t, lk, "a/b"))
		for _, tt := range []struct {
			break_ func(*Handle)
			want   string
		}{
			{func(h *Handle) { h.Name = "" }, "empty"},
			{func(h *Handle) { h.Name = "a:queue" }, `":queue"`},
			{func(h *Handle) { h.Also = []string{"a//b"} }, `"a//b"`},
			{func(h *Handle) { h.Token = "" }, "no token"},
			{func(h *Handle) { h.Fence = -1 }, "fence -1"},
			{func(h *Handle) { h.TTL = 0 }, "0s"},
			{func(h *Handle) { h.Prefix = "x:" }, `"x:"`},
			{func(h *Handle) { h.Separator = "" }, `separator ""`},
			{func(h *Handle) { h.Slot = 1 }, "slot 1"},
			{func(h *Handle) { h.Slots = 2 }, "slot 0"},
			{func(h *Handle) { h.Slot, h.Slots = 3, 2 }, "slot 3"},
			{func(h *Handle) { h.Slot, h.Slots = -1, 2 }, "slot -1"},
			{func(h *Handle) { h.Slot, h.Slots, h.Shared = 1, 2, true }, "Shared"},
			{func(h *Handle) { h.Healed = []string{"elsewhere:6379"} }, "elsewhere:6379"},
		} {
			bad := good
			tt.break_(&bad)
			if err := attachFails(t, lk, bad); !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "redlock: attach ") {
				t.Errorf("%v does not name %s", err, tt.want)
			}
		}
		attached(t, lk, good)
		lk.Close()
		if err := attachFails(t, lk, good); err != ErrClosed {
			t.Errorf("attached to a closed Locker: %v", err)
		}
	})
}

// TestTamperedHandle: a handle whose fence no lock can have is refused before anything is sent.
func TestTamperedHandle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		h, err := acquired(t, lk, "a").Detach()
		if err != nil {
			t.Fatal(err)
		}
		for _, fence := range []int64{-1, 0, 1 << 53, 1<<63 - 1} {
			bad := h
			bad.Fence = fence
			if _, err := lk.Attach(t.Context(), bad); err == nil || errors.Is(err, ErrNoQuorum) || !strings.Contains(err.Error(), fmt.Sprint("fence ", fence, " ")) {
				t.Errorf("fence %d: %v", fence, err)
			}
		}
		for what, option := range map[string]AcquireOption{"TTL": TTL(time.Second), "MaxHold": MaxHold(time.Second), "Reentrant": Reentrant(), "Shared": Shared(), "Also": Also("b"), "Slots": Slots(2)} {
			if _, err := lk.Attach(t.Context(), h, AutoRenew(), option); err == nil || !strings.Contains(err.Error(), "the only option is AutoRenew") {
				t.Errorf("with %s: %v", what, err)
			}
		}
		if _, err := lk.Attach(t.Context(), h, AutoRenew()); err != nil {
			t.Error(err)
		}
	})
}
