package redlock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestLaneKeepsOrder: whatever the callers do at once, over near links and far
// ones, each node sees every release after its acquire, and nothing is left (C3).
func TestLaneKeepsOrder(t *testing.T) {
	for _, rtt := range []time.Duration{0, 10 * time.Millisecond} {
		t.Run(rtt.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(5)
				for _, m := range ms {
					m.slow(rtt / 2)
				}
				lk := ms.locker(t, nil)
				if far := len(lk.nodes[0].strands) > 1; far != (rtt > 0) {
					t.Fatalf("%d strands", len(lk.nodes[0].strands))
				}
				for i, m := range ms {
					m.slow(rtt/2 + time.Duration(i)*time.Millisecond)
					m.set(func(m *model) { m.jitter = 10 * rtt })
				}
				var wg sync.WaitGroup
				for i := range 100 {
					wg.Go(func() {
						for range 20 {
							l, err := lk.TryAcquire(t.Context(), fmt.Sprint("k", i))
							if err != nil {
								t.Error(err)
								return
							}
							if err := l.Release(t.Context()); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				pass(time.Second)
				for _, m := range ms {
					last := map[string]string{}
					for _, did := range m.seen {
						var step, key string
						fmt.Sscan(did, &step, &key)
						if last[key] == step {
							t.Fatalf("%s: two of %q in a row", m.name, did)
						}
						last[key] = step
					}
				}
				if left := ms.left(); len(left) > 0 {
					t.Errorf("left on the nodes: %v", left)
				}
				for _, n := range lk.nodes {
					if len(n.flying) > 0 || len(n.queue) > 0 || len(n.owed) > 0 {
						t.Errorf("%s still has %v under way, %d queued, %d owed", n.name, n.flying, len(n.queue), len(n.owed))
					}
				}
			})
		})
	}
}

// TestFarLinkCostsOneRoundTrip: a request does not wait for the pipeline before
// its own to come back.
func TestFarLinkCostsOneRoundTrip(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const rtt = 20 * time.Millisecond
		ms := newModels(5)
		for _, m := range ms {
			m.slow(rtt / 2)
		}
		lk := ms.locker(t, nil)
		var wg sync.WaitGroup
		var total atomic.Int64
		const callers, each = 64, 20
		for i := range callers {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * rtt / callers)
				for range each {
					begin := time.Now()
					l, err := lk.TryAcquire(t.Context(), fmt.Sprint(i))
					if err != nil {
						t.Error(err)
						return
					}
					total.Add(int64(time.Since(begin)))
					l.Release(t.Context())
				}
			})
		}
		wg.Wait()
		if mean := time.Duration(total.Load() / callers / each); mean > rtt*5/4 {
			t.Errorf("a lock over a round trip of %v took %v in the mean", rtt, mean)
		}
	})
}

// TestLaneCoalesces: what comes while a pipeline is under way goes in the next
// one, in one.
func TestLaneCoalesces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newModel("node0")
		counted := &counting{model: m}
		lk, err := start(1, nil, func(*Options) []server { return []server{counted} })
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		m.slow(5 * time.Millisecond)
		for i := range 100 {
			go lk.TryAcquire(t.Context(), fmt.Sprint(i))
		}
		pass(100 * time.Millisecond)
		if got := counted.sizes(); len(got) > 4 || sum(got) != 100 {
			t.Errorf("100 requests went in batches of %v", got)
		}
	})
}

// counting notes the size of each batch.
type counting struct {
	*model
	counts  sync.Mutex
	batches []int
}

func (c *counting) exec(batch []*request) error {
	c.counts.Lock()
	c.batches = append(c.batches, len(batch))
	c.counts.Unlock()
	return c.model.exec(batch)
}

func (c *counting) sizes() []int {
	c.counts.Lock()
	defer c.counts.Unlock()
	return slices.Clone(c.batches)
}

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
		for _, n := range lk.nodes[:2] {
			n.mu.Lock()
			if queued := len(n.queue); queued > 10_001 { // what came before it was known to hang
				t.Errorf("%d requests queued at a hung node", queued)
			}
			n.mu.Unlock()
		}
		pass(3 * time.Second) // the lanes have given up their connections
		for _, n := range lk.nodes[:2] {
			n.mu.Lock()
			if queued := len(n.queue) + len(n.owed); queued > 1 {
				t.Errorf("%d requests kept for a node that is down; one was in flight", queued)
			}
			n.mu.Unlock()
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
		if nodes := q.Nodes(); len(nodes) != 2 || nodes[0].Node != "node0" || nodes[0].Outcome != Timeout || nodes[1].Node != "node1" {
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

// TestBrokenConnectionsAreNoticedTogether: when one strand's connection has
// broken, the others make new ones before they are used.
func TestBrokenConnectionsAreNoticedTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var links []*onceBroken
		lk, err := start(1, nil, func(*Options) []server {
			m := newModel("node0")
			m.slow(5 * time.Millisecond)
			return []server{&onceBroken{model: m, all: &links}}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		pass(time.Second)
		if len(links) != farStrands-1 {
			t.Fatalf("%d strands besides the first", len(links))
		}
		for _, l := range append(links, lk.nodes[0].strands[0].srv.(*onceBroken)) {
			l.broken.Store(true)
		}
		_, err = lk.TryAcquire(t.Context(), "first")
		wantQuorumError(t, err, ErrNoQuorum)
		var wg sync.WaitGroup
		for i := range 2 * farStrands {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if _, err := lk.TryAcquire(t.Context(), fmt.Sprint(i)); err != nil {
					t.Errorf("the break was known by now: %v", err)
				}
			})
		}
		wg.Wait()
	})
}

// onceBroken is a connection that may be broken until it is made anew.
type onceBroken struct {
	*model
	all    *[]*onceBroken
	broken atomic.Bool
}

func (o *onceBroken) fork() server {
	other := &onceBroken{model: o.model, all: o.all}
	*o.all = append(*o.all, other)
	return other
}

func (o *onceBroken) connect(ctx context.Context) (time.Duration, error) {
	o.broken.Store(false)
	return o.model.connect(ctx)
}

func (o *onceBroken) exec(batch []*request) error {
	if o.broken.Load() {
		for _, q := range batch {
			q.reply = reply{outcome: Unreachable, err: errCut}
		}
		return errCut
	}
	return o.model.exec(batch)
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
					var locks []*Lock // so many at once that all strands are under way with them
					for i := range 2 * farStrands {
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
		n := lk.nodes[0]
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.owed)+len(n.queue) > 0 {
			t.Errorf("%d owed, %d queued", len(n.owed), len(n.queue))
		}
	})
}

// TestOwedByAnotherStrand: it is the first strand that tries owed releases again,
// also when it was idle as another came to owe one.
func TestOwedByAnotherStrand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(1)
		ms[0].slow(5 * time.Millisecond)
		lk := ms.locker(t, &Options{TTL: time.Hour})
		kept, given := acquired(t, lk, "kept"), acquired(t, lk, "given")
		go kept.Extend(t.Context()) // there at 5 ms, back at 10 ms
		pass(time.Millisecond)
		go given.Release(t.Context()) // there at 6 ms, back at 11 ms
		pass(4500 * time.Microsecond)
		ms[0].set(func(m *model) { m.fails = errLoading })
		pass(time.Second)
		ms[0].set(func(m *model) { m.fails = nil })
		pass(time.Second)
		if left := ms.left(); len(left) != 1 || ms[0].holder("kept") == "" {
			t.Errorf("left on the nodes: %v", left)
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

func sum(all []int) (s int) {
	for _, n := range all {
		s += n
	}
	return s
}
