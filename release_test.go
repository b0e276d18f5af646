package redlock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

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
		if left := ms.left(); len(left) > 0 {
			t.Errorf("left on the nodes: %v", left)
		}
	})
}

func TestRelease(t *testing.T) {
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
	t.Run("of a lock that expired unnoticed", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			pass(time.Until(l.Until())) // the keys live for the drift longer
			if err := l.Release(t.Context()); !errors.Is(err, errExpired) {
				t.Errorf("got %v, want that it had expired", err)
			}
			synctest.Wait()
			if left := ms.left(); len(left) > 0 {
				t.Errorf("left on the nodes: %v", left)
			}
		})
	})
	t.Run("after a node refused to extend", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			ms[0].set(func(m *model) { m.fails = errLoading })
			if err := l.Extend(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			ms[0].set(func(m *model) { m.fails = nil })
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if left := ms.left(); len(left) > 0 {
				t.Errorf("left on the nodes: %v", left)
			}
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
					t.Errorf("%s saw %q", m.name, m.seen)
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
			if left := ms.left(); len(left) > 0 {
				t.Errorf("left on the nodes: %v", left)
			}
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
			if took := time.Since(begin); took != lk.opts.NodeTimeout || told.Load() != 1 {
				t.Errorf("took %v, hook called %d times", took, told.Load())
			}
			if again := l.Release(t.Context()); again != err {
				t.Errorf("released again: %v", again)
			}
		})
	})
}
