package redlock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// farConns is how many connections a far link gets.
const farConns = 8

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
				if far := ms[0].connections() > 1; far != (rtt > 0) {
					t.Fatalf("%d conns", ms[0].connections())
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
				if kept := lk.lanes.Weigh(); sum(kept) > 0 {
					t.Errorf("the lanes still have %v requests", kept)
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
		ms, counted := newModels(1), new(counting)
		lk, m := ms.over(t, nil, counted.over), ms[0]
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
	*modelConn
	counts  sync.Mutex
	batches []int
}

// over has what goes over this connection counted.
func (c *counting) over(conn *modelConn) lane.Server {
	c.modelConn = conn
	return c
}

func (c *counting) Exec(batch []*lane.Request) error {
	c.counts.Lock()
	c.batches = append(c.batches, len(batch))
	c.counts.Unlock()
	return c.modelConn.Exec(batch)
}

func (c *counting) sizes() []int {
	c.counts.Lock()
	defer c.counts.Unlock()
	return slices.Clone(c.batches)
}

// TestBrokenConnectionsAreNoticedTogether: when one connection has broken, the others of its lane are made anew
// before they are used.
func TestBrokenConnectionsAreNoticedTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var links []*onceBroken
		ms := newModels(1)
		ms[0].slow(5 * time.Millisecond)
		lk := ms.over(t, nil, func(c *modelConn) lane.Server {
			links = append(links, &onceBroken{modelConn: c, all: &links})
			return links[0]
		})
		pass(time.Second)
		if len(links) != 8 {
			t.Fatalf("%d connections", len(links))
		}
		for _, l := range links {
			l.broken.Store(true)
		}
		_, err := lk.TryAcquire(t.Context(), "first")
		wantQuorumError(t, err, ErrNoQuorum)
		var wg sync.WaitGroup
		for i := range 2 * farConns {
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

// TestConnsOnABusyComputer: a link whose round trips vary gets connections one by one, and
// only for what is to be sent and could leave with another: neither for one caller, nor to a
// server that cannot be reached.
func TestConnsOnABusyComputer(t *testing.T) {
	for _, busy := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			models := newModels(3)
			for _, m := range models {
				m.slow(5 * time.Millisecond)
			}
			lk := models.over(t, nil, func(c *modelConn) lane.Server { return varying{c, busy} })
			conns := func(node int) int { return models[node].connections() }
			for range 10 {
				l, err := lk.TryAcquire(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			alone := farConns
			if busy {
				alone = 1
			}
			if n := conns(0); n != alone {
				t.Errorf("busy: %v; for one caller there are %d", busy, n)
			}
			models[0].kill()
			var wg sync.WaitGroup
			for i := range 16 * farConns {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					l, err := lk.TryAcquire(t.Context(), fmt.Sprint(i))
					if err != nil {
						t.Error(err)
						return
					}
					_ = l.Release(t.Context())
				})
			}
			wg.Wait()
			pass(time.Second)
			if n := conns(1); n != farConns {
				t.Errorf("busy: %v; for many callers there are %d", busy, n)
			}
			if n := conns(0); busy && n > 2 {
				t.Errorf("to a server that is dead there are %d", n)
			}
		})
	}
}

// varying is a server whose round trips do, or not.
type varying struct {
	*modelConn
	vary bool
}

func (v varying) Unsteady() bool { return v.vary }

func (v varying) Fork() lane.Server {
	v.modelConn.Fork()
	return v
}

// onceBroken is a connection that may be broken until it is made anew.
type onceBroken struct {
	*modelConn
	all    *[]*onceBroken
	broken atomic.Bool
}

func (o *onceBroken) Fork() lane.Server {
	other := &onceBroken{modelConn: o.modelConn, all: o.all}
	*o.all = append(*o.all, other)
	return other
}

func (o *onceBroken) Connect(ctx context.Context) (time.Duration, error) {
	o.broken.Store(false)
	return o.modelConn.Connect(ctx)
}

func (o *onceBroken) Exec(batch []*lane.Request) error {
	if o.broken.Load() {
		for _, q := range batch {
			q.Reply = wire.Reply{Status: wire.Unreachable, Err: errCut}
		}
		return errCut
	}
	return o.modelConn.Exec(batch)
}

// TestFirstConnIsEnough: a server that lets no further connection in votes over
// the one that it has.
func TestFirstConnIsEnough(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(1)
		ms[0].slow(5 * time.Millisecond)
		lk := ms.over(t, nil, func(c *modelConn) lane.Server { return &exclusive{c} })
		for range 3 {
			pass(time.Second)
			if err := acquired(t, lk, "a").Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// exclusive has all connections but the first hang.
type exclusive struct{ *modelConn }

func (e *exclusive) Fork() lane.Server { return &hanging{e.modelConn} }

type hanging struct{ *modelConn }

func (h *hanging) Connect(ctx context.Context) (time.Duration, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// TestPendingReleaseOfAnotherConn: the first connection repeats owed releases, also if it was idle when
// another one came to owe one.
func TestPendingReleaseOfAnotherConn(t *testing.T) {
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

func sum(all []int) (s int) {
	for _, n := range all {
		s += n
	}
	return s
}
