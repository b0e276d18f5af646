package redlock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestHungLaneIsBounded: a node that hangs costs callers nothing beyond the first
// NodeTimeout, and keeps neither goroutines nor a growing queue (C1, C2).
func TestHungLaneIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		ms[0].hang()
		ms[1].hang()
		goroutines := runtime.NumGoroutine()
		start := time.Now()
		for i := range 10_000 {
			l, err := lk.TryAcquire(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("10,000 locks with two of five nodes hung waited %v for them", took)
		}
		if now := runtime.NumGoroutine(); now > goroutines {
			t.Errorf("%d goroutines, %d before", now, goroutines)
		}
		pass(lk.opts.NodeTimeout + time.Millisecond)
		for i := range 100 {
			l, err := lk.TryAcquire(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			l.Release(t.Context())
		}
		for _, kept := range lk.lanes.Weigh()[:2] {
			if kept > 10_001 { // what came before it was known to hang
				t.Errorf("%d requests queued at a hung node", kept)
			}
		}
		pass(3 * time.Second) // the lanes have given up their connections
		for _, kept := range lk.lanes.Weigh()[:2] {
			if kept > 1 {
				t.Errorf("%d requests kept for a node that is down; one was in flight", kept)
			}
		}
		ms[0].resume()
		ms[1].resume()
		pass(2 * time.Second)
		if left := ms.left(); len(left) > 0 {
			t.Errorf("left on the nodes: %v", left)
		}
	})
}

// TestSilentNodeAnswersForItself: from NodeTimeout on a silent node is a failed
// vote at once, and it votes again when it speaks.
func TestSilentNodeAnswersForItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var downs []string
		var back time.Duration
		ms := newModels(3)
		lk := ms.locker(t, &Options{Hooks: &Hooks{
			NodeDown: func(e *NodeError) { mu.Lock(); defer mu.Unlock(); downs = append(downs, e.Error()) },
			NodeUp:   func(_ string, d time.Duration) { mu.Lock(); defer mu.Unlock(); back = d },
		}})
		ms[0].hang()
		ms[1].hang()
		begin := time.Now()
		_, err := lk.TryAcquire(t.Context(), "a")
		if took := time.Since(begin); took != lk.opts.NodeTimeout {
			t.Errorf("first attempt took %v, want NodeTimeout %v", took, lk.opts.NodeTimeout)
		}
		q := wantQuorumError(t, err, ErrNoQuorum)
		if nodes := q.Nodes(); len(nodes) != 2 || nodes[0].Node != "node0" || nodes[0].Outcome != OutcomeTimeout || nodes[1].Node != "node1" {
			t.Errorf("%v does not name the two", err)
		}
		pass(time.Millisecond)
		begin = time.Now()
		_, err = lk.TryAcquire(t.Context(), "a")
		wantQuorumError(t, err, ErrNoQuorum)
		if took := time.Since(begin); took != 0 {
			t.Errorf("second attempt waited %v for nodes known to be silent", took)
		}
		synctest.Wait()
		if did := ms[2].seen; len(did) != 2 {
			t.Errorf("the third was bothered with %q: the second attempt was lost without it", did)
		}
		pass(5 * time.Second)
		if len(downs) != 2 {
			t.Errorf("hooks told %q", downs)
		}
		ms[0].resume()
		ms[1].resume()
		pass(2 * time.Second)
		if back < 3*time.Second {
			t.Errorf("NodeUp says it was down for %v", back)
		}
		l, err := lk.TryAcquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := ms.held("a", l.Token()); n != 3 {
			t.Errorf("held on %d of 3", n)
		}
	})
}

// TestDownNodeAnswersAtOnce: a node that is known to be gone costs no wait at all.
func TestDownNodeAnswersAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		for _, m := range ms[:3] {
			m.kill()
		}
		for range 20 {
			begin := time.Now()
			_, err := lk.TryAcquire(t.Context(), "a")
			wantQuorumError(t, err, ErrNoQuorum)
			if took := time.Since(begin); took > 0 {
				t.Errorf("took %v", took)
			}
			pass(777 * time.Millisecond)
		}
	})
}

// TestCleanUpOutlivesTheCaller: an attempt whose caller is gone, at nodes that
// carried it out and did not answer in time, is released as soon as they answer
// (C4).
func TestCleanUpOutlivesTheCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		for _, m := range ms {
			m.slow(100 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		_, err := lk.TryAcquire(ctx, "a")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the context's error in it", err)
		}
		if n := len(ms.left()); n != 5 {
			t.Fatalf("%d nodes have the key: the test does not test what it means to", n)
		}
		pass(time.Second)
		if left := ms.left(); len(left) > 0 {
			t.Errorf("left on the nodes: %v", left)
		}
	})
}

// TestOwedReleases: a release that a node did not answer is sent again when it
// can be, also one that the server refused while its connection was well.
func TestOwedReleases(t *testing.T) {
	for _, tt := range []struct {
		name        string
		break_, fix func(*model)
	}{
		{"killed", (*model).kill, (*model).revive},
		{"hung", (*model).hang, (*model).resume},
		{"refusing", func(m *model) { m.set(func(m *model) { m.fails = errLoading }) }, func(m *model) { m.set(func(m *model) { m.fails = nil }) }},
		{"reply lost", func(m *model) { m.set(func(m *model) { m.deaf = 1 }) }, func(*model) {}},
	} {
		for _, rtt := range []time.Duration{0, 10 * time.Millisecond} {
			t.Run(fmt.Sprint(tt.name, ", ", rtt), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					ms := newModels(3)
					for _, m := range ms {
						m.slow(rtt / 2)
					}
					lk := ms.locker(t, &Options{TTL: time.Hour})
					var locks []*Lock // so many at once that all conns are under way with them
					for i := range 2 * farConns {
						l, err := lk.TryAcquire(t.Context(), fmt.Sprint(i))
						if err != nil {
							t.Fatal(err)
						}
						locks = append(locks, l)
					}
					pass(time.Second)
					tt.break_(ms[0])
					var wg sync.WaitGroup
					for i, l := range locks {
						wg.Go(func() {
							time.Sleep(time.Duration(i) * time.Millisecond)
							if err := l.Release(t.Context()); err != nil {
								t.Error(err)
							}
						})
					}
					wg.Wait()
					pass(5 * time.Second)
					tt.fix(ms[0])
					pass(2 * time.Second)
					if left := ms.left(); len(left) > 0 {
						t.Errorf("left on the nodes: %v", left)
					}
				})
			})
		}
	}
}

// TestRefusalsLeaveNothingToRelease: attempts at a node that answers, and refuses
// to write, do not pile up there.
func TestRefusalsLeaveNothingToRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		ms[0].set(func(m *model) { m.fails = errLoading })
		for range 100 {
			acquired(t, lk, "a").Release(t.Context())
			synctest.Wait()
		}
		if kept := lk.lanes.Weigh()[0]; kept > 0 {
			t.Errorf("%d owed or queued", kept)
		}
	})
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

var errLoading error = redisError("LOADING Redis is loading the dataset in memory")

// TestUnsentAcquireIsDropped: an acquire that waited in the lane past its
// deadline never goes out, and neither does its release.
func TestUnsentAcquireIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		ms[0].slow(300 * time.Millisecond) // 600 ms for a pipeline; NodeTimeout is 500
		first, err := lk.TryAcquire(t.Context(), "first")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		kept, _ := lk.TryAcquire(t.Context(), "kept")
		gone, _ := lk.TryAcquire(t.Context(), "gone")
		gone.Release(t.Context())
		pass(5 * time.Second)
		if want := []string{"acquire first"}; !slices.Equal(ms[0].seen, want) {
			t.Errorf("the slow node saw %q, want %q", ms[0].seen, want)
		}
		first.Release(t.Context())
		kept.Release(t.Context())
	})
}

// TestCloseDrains: what was to be released when Close was called is released,
// for as long as NodeTimeout; a hung node does not hold it longer.
func TestCloseDrains(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		for _, m := range ms {
			m.slow(50 * time.Millisecond)
		}
		ms[4].hang()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := lk.TryAcquire(ctx, "never sent")
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		lk.TryAcquire(ctx, "a")
		begin := time.Now()
		if err := lk.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > lk.opts.NodeTimeout {
			t.Errorf("Close took %v", took)
		}
		if left := ms.left(); len(left) > 0 {
			t.Errorf("left on the nodes: %v", left)
		}
		if err := lk.Close(); !errors.Is(err, ErrClosed) {
			t.Errorf("second Close: %v", err)
		}
		if _, err := lk.TryAcquire(t.Context(), "a"); !errors.Is(err, ErrClosed) {
			t.Errorf("TryAcquire after Close: %v", err)
		}
	})
}
