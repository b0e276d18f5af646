package redlock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/sim"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestHungLaneIsBounded: a node that hangs costs callers nothing beyond the first
// NodeTimeout, and keeps neither goroutines nor a growing queue (C1, C2).
func TestHungLaneIsBounded(t *testing.T) {
	locks := need.Sized(2_000, 10_000, 10_000)
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		ms[0].hang()
		ms[1].hang()
		goroutines := leaks.Running()
		start := time.Now()
		for i := range locks {
			l, err := lk.TryAcquire(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("%d locks with two of five nodes hung waited %v for them", locks, took)
		}
		if now := leaks.Running(); now > goroutines {
			t.Errorf("%d goroutines, %d before", now, goroutines)
		}
		pass(lk.settings().NodeTimeout + time.Millisecond)
		for i := range 100 {
			l, err := lk.TryAcquire(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			l.Release(t.Context())
		}
		for _, kept := range lk.lanes.Weigh()[:2] {
			if kept > locks+1 { // what came before it was known to hang
				t.Errorf("%d requests queued at a hung node", kept)
			}
		}
		pass(3 * time.Second) // the lanes have given up their connections
		for _, kept := range lk.lanes.Weigh()[:2] {
			if kept > 4*512 { // as many were sent before it was known to hang; what they have acquired is to be released
				t.Errorf("%d requests kept for a node that is down", kept)
			}
		}
		ms[0].resume()
		ms[1].resume()
		pass(2 * time.Second)
		ms.empty(t)
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
		if took := time.Since(begin); took != lk.settings().NodeTimeout {
			t.Errorf("first attempt took %v, want NodeTimeout %v", took, lk.settings().NodeTimeout)
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
		ms.empty(t)
	})
}

// TestReleaseIsKeptUntilTheNodeConfirmsIt: a release that a node did not answer is sent again when it
// can be, also one that the server refused while its connection was well.
func TestReleaseIsKeptUntilTheNodeConfirmsIt(t *testing.T) {
	for _, tt := range []struct {
		name        string
		break_, fix func(*model)
	}{
		{"killed", (*model).kill, (*model).revive},
		{"hung", (*model).hang, (*model).resume},
		{"refusing", func(m *model) { m.Refuse(errLoading) }, func(m *model) { m.Refuse(nil) }},
		{"reply lost", func(m *model) { m.Lose(1) }, func(*model) {}},
	} {
		for _, rtt := range []time.Duration{0, 10 * time.Millisecond} {
			t.Run(fmt.Sprint(tt.name, ", ", rtt), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					ms := newModels(3)
					for _, m := range ms {
						m.slow(rtt / 2)
					}
					lk := ms.locker(t, &Options{TTL: time.Hour})
					var locks []*Lock // so many that several writes are under way with them
					for i := range 16 {
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
					ms.empty(t)
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
		ms[0].Refuse(errLoading)
		for i := range 100 {
			acquired(t, lk, fmt.Sprint(i)).Release(t.Context())
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

// TestCloseSendsReleasesForANodeTimeout: what was to be released when Close was called is released,
// for as long as NodeTimeout; a hung node does not hold it longer.
func TestCloseSendsReleasesForANodeTimeout(t *testing.T) {
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
		if took := time.Since(begin); took > lk.settings().NodeTimeout {
			t.Errorf("Close took %v", took)
		}
		ms.empty(t)
		if err := lk.Close(); !errors.Is(err, ErrClosed) {
			t.Errorf("second Close: %v", err)
		}
		if _, err := lk.TryAcquire(t.Context(), "a"); !errors.Is(err, ErrClosed) {
			t.Errorf("TryAcquire after Close: %v", err)
		}
	})
}

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
				for i, m := range ms {
					m.Delay(rtt+time.Duration(2*i)*time.Millisecond, 10*rtt)
				}
				var wg sync.WaitGroup
				for i := range 100 {
					wg.Go(func() {
						for range need.Sized(5, 20, 20) {
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
							t.Fatalf("%s: two of %q in a row", m.Name, did)
						}
						last[key] = step
					}
				}
				ms.empty(t)
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

// counting notes the size of each batch.
type counting struct {
	lane.Server
	counts  sync.Mutex
	batches []int
}

// over has what goes over this connection counted.
func (c *counting) over(conn *modelConn) {
	c.Server = conn.Server
	conn.Server = c
}

func (c *counting) Encode(batch []*lane.Request) {
	c.counts.Lock()
	c.batches = append(c.batches, len(batch))
	c.counts.Unlock()
	c.Server.Encode(batch)
}

func (c *counting) sizes() []int {
	c.counts.Lock()
	defer c.counts.Unlock()
	return slices.Clone(c.batches)
}

// TestRefusedReleaseIsSentAgainWithoutACall: a release that the node could not carry out is sent again, without another call.
func TestRefusedReleaseIsSentAgainWithoutACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(1)
		ms[0].slow(5 * time.Millisecond)
		lk := ms.locker(t, &Options{TTL: time.Hour})
		kept, given := acquired(t, lk, "kept"), acquired(t, lk, "given")
		go kept.Extend(t.Context()) // there at 5 ms, back at 10 ms
		pass(time.Millisecond)
		go given.Release(t.Context()) // there at 6 ms, back at 11 ms
		pass(4500 * time.Microsecond)
		ms[0].Refuse(errLoading)
		pass(time.Second)
		ms[0].Refuse(nil)
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

// A town is three model nodes, and Lockers over them, each in a process of its own.
type town struct {
	nodes   []*arena.Node
	lockers []*Locker
}

func newTown(t *testing.T, lockers int, opts Options) *town {
	t.Helper()
	s, w := sim.Seed(7), new(town)
	for i := range 3 {
		w.nodes = append(w.nodes, arena.NewNode(s, fmt.Sprint("node", i+1), time.Millisecond))
	}
	for i := range lockers {
		host := arena.NewHost(s, fmt.Sprint("process", i+1))
		o := opts
		o.Clock = host
		replace.In(&o, host.Parts(func(addr string) *arena.Node { return arena.Named(w.nodes, addr) }))
		lk, err := New(arena.Clients([]string{"node1", "node2", "node3"}), &o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { lk.Close() })
		w.lockers = append(w.lockers, lk)
	}
	return w
}

// kept is the most that any Locker keeps for a node.
func (w *town) kept(node int) (most int) {
	for _, lk := range w.lockers {
		most = max(most, lk.lanes.Weigh()[node])
	}
	return most
}

// empty checks that the nodes have no lock.
func (w *town) empty(t *testing.T) {
	t.Helper()
	for _, n := range w.nodes {
		for key, token := range n.Tokens() {
			t.Errorf("left on %s: %s, %s", n.Name, key, token)
		}
	}
}

// contend has each Locker take the lock over and over, until it is told to stop and says how
// often it was had.
func (w *town) contend(t *testing.T, hold time.Duration, want func(i int) (string, []AcquireOption)) (stop func() int) {
	var calls sync.WaitGroup
	var mu sync.Mutex
	had := 0
	ctx, cancel := context.WithCancel(t.Context())
	for i, lk := range w.lockers {
		name, options := want(i)
		calls.Go(func() {
			for ctx.Err() == nil {
				l, err := lk.Acquire(ctx, name, options...)
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				time.Sleep(hold)
				_ = l.Release(ctx)
				mu.Lock()
				had++
				mu.Unlock()
			}
		})
	}
	return func() int {
		cancel()
		calls.Wait()
		return had
	}
}

// TestAnHourWithoutANode: what a lane keeps for a node that is away, and the heap, do not
// grow with the locks that change hands meanwhile. For each way in which a node can be away,
// and each kind of lock.
func TestAnHourWithoutANode(t *testing.T) {
	either := func(i int, one, other string, options ...AcquireOption) (string, []AcquireOption) {
		if i%2 == 0 {
			return one, options
		}
		return other, nil
	}
	kinds := map[string]func(i int) (string, []AcquireOption){
		"alone":   func(i int) (string, []AcquireOption) { return "a", nil },
		"shared":  func(i int) (string, []AcquireOption) { return either(i, "a", "a", Shared()) },
		"folders": func(i int) (string, []AcquireOption) { return either(i, "a/b", "a") },
		"also":    func(i int) (string, []AcquireOption) { return either(i, "a", "b", Also("b")) },
		"slots":   func(i int) (string, []AcquireOption) { return "a", []AcquireOption{Slots(2)} },
	}
	hour := need.Sized(20*time.Second, 2*time.Minute, time.Hour)
	parked := uint64(11<<20) * uint64(hour) / uint64(time.Hour) // bytes that the model holds back of what is sent to the node
	for trouble, tt := range map[string]struct {
		strike, end func(*arena.Node)
		parked      uint64
	}{
		"kill": {(*arena.Node).Kill, func(n *arena.Node) { n.Restart(true) }, 0},
		"hang": {func(n *arena.Node) { n.Hang(true) }, func(n *arena.Node) { n.Hang(false) }, parked},
		"cut":  {func(n *arena.Node) { n.Cut(true, true) }, func(n *arena.Node) { n.Cut(false, false) }, parked},
	} {
		for kind, want := range kinds {
			if row := slices.Index([]string{"kill", "hang", "cut"}, trouble); !need.Sample(row+len(kind), 3) {
				continue // a quick run has each kind with one trouble, and each trouble
			}
			t.Run(trouble+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts := Options{}
					if kind == "folders" {
						opts.Separator = "/"
					}
					w := newTown(t, 4, opts)
					stop := w.contend(t, 800*time.Millisecond, want) // a lock a second, or more
					time.Sleep(10 * time.Second)
					tt.strike(w.nodes[2])
					time.Sleep(need.Sized(20*time.Second, time.Minute, time.Minute))
					kept, heap := w.kept(2), inUse()
					if kept > 10 {
						t.Errorf("%d requests are kept after a minute", kept)
					}
					time.Sleep(hour)
					if now := w.kept(2); now > kept {
						t.Errorf("%d requests are kept, %d after a minute", now, kept)
					}
					if now := inUse(); now > heap+tt.parked+1<<19 {
						t.Errorf("the heap has %d KB, %d after a minute", now>>10, heap>>10)
					}
					tt.end(w.nodes[2])
					time.Sleep(10 * time.Second)
					if had := stop(); had < int(hour/time.Second) {
						t.Errorf("only %d locks changed hands", had)
					}
					time.Sleep(time.Second)
					w.empty(t)
				})
			})
		}
	}
}

// inUse is the size of the heap, without what is garbage.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestOwedReleasesLastForTwoTTLs: a node that can be reached, and never answers a request. What is
// owed to it is carried out each time, and owed again, for two TTLs at most.
func TestOwedReleasesLastForTwoTTLs(t *testing.T) {
	need.Full(t) // TestAnHourWithoutANode has other ways in which a node is away
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, Options{TTL: time.Second})
		stop := w.contend(t, 20*time.Millisecond, func(i int) (string, []AcquireOption) { return fmt.Sprint(i), nil })
		time.Sleep(5 * time.Second)
		w.nodes[2].Lose(1 << 30)
		most := 0
		for i := range need.Sized(20, 20, 120) {
			kept := 0 // at most in this second
			for range 20 {
				time.Sleep(time.Second / 20)
				kept = max(kept, w.kept(2))
			}
			if i < 4 {
				most = max(most, kept)
			} else if kept > most*5/4 {
				t.Errorf("%d requests are kept after %d s, %d at most before", kept, i+1, most)
				break
			}
		}
		if most < 50 {
			t.Errorf("%d requests were kept: the test does not test what it means to", most)
		}
		w.nodes[2].Lose(0)
		stop()
		time.Sleep(time.Second)
		w.empty(t)
	})
}

// TestRefusedReleaseEndsWithItsToken: a node that answers, and refuses every release, is asked for as long as the
// token can be there.
func TestRefusedReleaseEndsWithItsToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, &Options{TTL: time.Second})
		l := acquired(t, lk, "a")
		synctest.Wait()
		ms[0].Refuse(errDenied)
		l.Release(t.Context())
		pass(1900 * time.Millisecond)
		if kept := lk.lanes.Weigh()[0]; kept != 1 {
			t.Errorf("%d releases are owed while the token may be there", kept)
		}
		pass(time.Second)
		if kept := lk.lanes.Weigh()[0]; kept != 0 {
			t.Errorf("%d releases are owed when it cannot be any more", kept)
		}
	})
}

var errDenied error = redisError("NOPERM User me has no permissions to run the 'evalsha' command")

// TestNothingIsReleasedThatWasNeverSent: at a node that answers, but not as fast as locks are acquired and
// given back elsewhere, there is nothing to tell of those whose acquire never went out.
func TestNothingIsReleasedThatWasNeverSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		ms[0].slow(200 * time.Millisecond)
		for i := range need.Sized(4_000, 15_000, 200_000) {
			l, err := lk.Acquire(t.Context(), fmt.Sprint("k", i%100))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Microsecond)
		}
		// Half a second's worth of acquires, and what one pipeline is.
		if kept := lk.lanes.Weigh()[0]; kept > 5_000 {
			t.Errorf("%d requests wait for the slow node", kept)
		}
		pass(5 * time.Second)
		ms.empty(t)
	})
}

// TestCloseEndsHeldLocks: contexts end with the Locker, and the keys by their TTL.
func TestCloseEndsHeldLocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		renewed, watched, plain := acquired(t, lk, "a", AutoRenew()), acquired(t, lk, "b"), acquired(t, lk, "c")
		ctxs := []context.Context{renewed.Context(t.Context()), watched.Context(t.Context())}
		if err := lk.Close(); err != nil {
			t.Fatal(err)
		}
		for _, ctx := range ctxs {
			if cause := context.Cause(ctx); !errors.Is(cause, ErrClosed) || !errors.Is(cause, ErrLost) {
				t.Errorf("the cause is %v", cause)
			}
		}
		if ctx := plain.Context(t.Context()); !errors.Is(context.Cause(ctx), ErrClosed) {
			t.Errorf("a context asked for after Close: %v", context.Cause(ctx))
		}
		for _, l := range []*Lock{renewed, watched, plain} {
			if err := l.Release(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("Release after Close: %v", err)
			}
			if err := l.Extend(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("Extend after Close: %v", err)
			}
		}
		if left := ms.left(); len(left) != 15 {
			t.Errorf("on the nodes: %v", left)
		}
		pass(10*time.Second + time.Millisecond) // a key is there in the millisecond of its end
		if left := ms.left(); len(left) > 0 {
			t.Errorf("left after the TTL: %v", left)
		}
	})
}

// TestShutdownReleasesWhenTheWorkHasEnded: contexts end at once, locks when their work has, and the next process has them then.
func TestShutdownReleasesWhenTheWorkHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, lk, _ := aFleet(t, 3, Options{})
		next, _ := f.open(Options{})
		plain, renewed := acquired(t, lk, "plain"), acquired(t, lk, "renewed", AutoRenew())
		joined := acquiredUnder(t, lk, renewed, "renewed", Reentrant())
		var told, left time.Time
		go func() {
			err := lk.Do(t.Context(), "work", func(ctx context.Context, l *Lock) error {
				<-ctx.Done()
				told = time.Now()
				if cause := context.Cause(ctx); !errors.Is(cause, ErrClosed) || errors.Is(cause, ErrLost) {
					t.Errorf("the work was told %v", cause)
				}
				if err := l.Context(context.Background()).Err(); err == nil {
					t.Error("a context that is made after Shutdown does not end")
				}
				pause(25 * time.Second) // for longer than the TTL: it is renewed
				if err := l.Extend(context.Background()); err != nil {
					t.Errorf("the lock was not held to the end of its work: %v", err)
				}
				left = time.Now()
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
		waited := make(chan error)
		go func() {
			_, err := lk.Acquire(t.Context(), "plain")
			waited <- err
		}()
		got := make(chan time.Time)
		go func() {
			l, err := next.Acquire(t.Context(), "work")
			if err != nil {
				t.Error(err)
			} else {
				_ = l.Release(t.Context())
			}
			got <- time.Now()
		}()
		pass(time.Second)
		began := time.Now()
		over := make(chan error)
		go func() { over <- lk.Shutdown(t.Context()) }()
		synctest.Wait()
		if err := <-waited; !errors.Is(err, ErrClosed) {
			t.Errorf("the call that waited: %v", err)
		}
		if _, err := lk.TryAcquire(t.Context(), "new"); !errors.Is(err, ErrClosed) {
			t.Errorf("a call after Shutdown: %v", err)
		}
		if err := <-over; err != nil {
			t.Error(err)
		}
		if !told.Equal(began) {
			t.Errorf("the work was told after %v", told.Sub(began))
		}
		if gap := (<-got).Sub(left); gap > 50*time.Millisecond {
			t.Errorf("the next process has the lock %v after the work has ended", gap)
		}
		for _, name := range []string{"plain", "renewed", "new"} {
			acquired(t, next, name)
		}
		if err := plain.Release(t.Context()); !errors.Is(err, ErrClosed) { // nobody has extended it, and Shutdown has not released it
			t.Error(err)
		}
		for _, l := range []*Lock{renewed, joined} {
			if err := l.Release(t.Context()); err != nil {
				t.Errorf("a release after Shutdown has made it: %v", err)
			}
		}
		if err := lk.Shutdown(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("a second Shutdown: %v", err)
		}
	})
}

// TestShutdownThatEndsBeforeTheWork: no lock is released while a function of Do still runs, which may have acquired it.
func TestShutdownThatEndsBeforeTheWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, lk, _ := aFleet(t, 3, Options{})
		next, _ := f.open(Options{})
		over := make(chan struct{})
		ended := make(chan error)
		go func() {
			ended <- lk.Do(t.Context(), "work", func(context.Context, *Lock) error { <-over; return nil })
		}()
		pass(time.Second)
		acquired(t, lk, "other")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := lk.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 function of Do") {
			t.Errorf("Shutdown: %v", err)
		}
		if _, err := next.TryAcquire(t.Context(), "work"); !errors.Is(err, ErrHeld) {
			t.Errorf("the lock whose work goes on: %v", err)
		}
		if _, err := next.TryAcquire(t.Context(), "other"); !errors.Is(err, ErrHeld) {
			t.Errorf("a lock under which the function may work: %v", err)
		}
		close(over)
		if err := <-ended; !errors.Is(err, ErrLost) {
			t.Errorf("Do: %v", err)
		}
	})
}

// TestLocksAcquiredDuringShutdownAreGivenBack: whatever step an attempt is at.
func TestLocksAcquiredDuringShutdownAreGivenBack(t *testing.T) {
	for at := time.Duration(0); at < 3*time.Millisecond; at += 50 * time.Microsecond {
		bubble(t, func(t *testing.T) {
			f, lk, _ := aFleet(t, 3, Options{})
			next, _ := f.open(Options{})
			got := make(chan *Lock)
			go func() {
				l, err := lk.Acquire(t.Context(), "a")
				if err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
				got <- l
			}()
			time.Sleep(at)
			if err := lk.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			<-got
			acquired(t, next, "a")
		})
	}
}

// TestShutdownReleasesNoLockThatIsInUse: under a lock that joined another one, and in another process that shares it.
func TestShutdownReleasesNoLockThatIsInUse(t *testing.T) {
	for name, acquire := range map[string]func(f *fleet, lk *Locker, over chan struct{}) (inUse string){
		"Do has joined a lock of Acquire": func(f *fleet, lk *Locker, over chan struct{}) string {
			l := acquired(f.T, lk, "a", AutoRenew())
			go func() {
				_ = lk.Do(l.Context(f.Context()), "a", func(context.Context, *Lock) error { <-over; return nil }, Reentrant())
			}()
			return "a"
		},
		"a function of Do has acquired a lock": func(f *fleet, lk *Locker, over chan struct{}) string {
			go func() {
				_ = lk.Do(f.Context(), "a", func(context.Context, *Lock) error { acquired(f.T, lk, "b"); <-over; return nil })
			}()
			return "b"
		},
		"another process has attached a lock that is attached during Shutdown": func(f *fleet, lk *Locker, over chan struct{}) string {
			other, _ := f.open(Options{})
			h, err := acquired(f.T, other, "a").Detach()
			if err == nil {
				_, err = other.Attach(f.Context(), h, AutoRenew())
			}
			if err != nil {
				f.Error(err)
			}
			go func() { _ = lk.Do(f.Context(), "b", func(context.Context, *Lock) error { <-over; return nil }) }()
			time.AfterFunc(1500*time.Millisecond, func() {
				if _, err := lk.Attach(context.Background(), h); !errors.Is(err, ErrClosed) {
					f.Errorf("attached: %v", err)
				}
			})
			return "a"
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f, lk, _ := aFleet(t, 3, Options{})
				next, _ := f.open(Options{})
				over := make(chan struct{})
				inUse := acquire(f, lk, over)
				pass(time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := lk.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Shutdown: %v", err)
				}
				if _, err := next.TryAcquire(t.Context(), inUse); !errors.Is(err, ErrHeld) {
					t.Errorf("another process asks for the lock: %v", err)
				}
				close(over)
			})
		})
	}
}

// TestShutdownReleasesAHandleThatOutlivesDo: a handle that joined Do's lock, and was not released with it.
func TestShutdownReleasesAHandleThatOutlivesDo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, lk, _ := aFleet(t, 3, Options{})
		next, _ := f.open(Options{})
		err := lk.Do(t.Context(), "a", func(ctx context.Context, _ *Lock) error {
			_, err := lk.Acquire(ctx, "a", Reentrant(), AutoRenew())
			return err
		})
		if err := errors.Join(err, lk.Shutdown(t.Context())); err != nil {
			t.Fatal(err)
		}
		acquired(t, next, "a")
	})
}

// TestShutdownIsNotPutOffByLoops: Do in a loop, as for an election, gets ErrClosed, and Shutdown does not wait for it.
func TestShutdownIsNotPutOffByLoops(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, lk, _ := aFleet(t, 3, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range 4 {
			go func() {
				for ctx.Err() == nil {
					if err := lk.Do(ctx, fmt.Sprint(i), func(context.Context, *Lock) error { pause(10 * time.Millisecond); return nil }); err != nil {
						pause(time.Millisecond)
					}
				}
			}()
		}
		pass(time.Second)
		began := time.Now()
		if err := lk.Shutdown(t.Context()); err != nil || time.Since(began) > 50*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		cancel()
		pass(time.Second)
	})
}

// TestDroppedLocksDoNotAddUp: what Shutdown has to release is noted, and locks whose holders have dropped them are not kept
// for much longer than they live: neither one by one nor after many at once.
func TestDroppedLocksDoNotAddUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, lk, _ := aFleet(t, 3, Options{TTL: time.Second})
		for i := range 1000 {
			acquired(t, lk, fmt.Sprint(i))
			if i >= 500 {
				time.Sleep(100 * time.Millisecond)
			}
		}
		if n := len(lk.locks.locks); n > 64 {
			t.Errorf("%d locks are noted, of which 10 live", n)
		}
	})
}
