package redlock

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	arena "github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/redistest/need"
	"github.com/quorumlock/redlock/internal/sim"
)

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
		var clients []lane.Client
		for _, n := range w.nodes {
			clients = append(clients, n.Client(host))
		}
		o := opts
		o.Clock = host
		lk, err := New(clients, &o)
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
	hour := need.Sized(time.Minute, 12*time.Minute, time.Hour)
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
					time.Sleep(time.Minute)
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

// TestNodeThatComesAndGoes: a node that can be reached, and never answers a request. What is
// owed to it is carried out each time, and owed again, for two TTLs at most.
func TestNodeThatComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, Options{TTL: time.Second})
		stop := w.contend(t, 20*time.Millisecond, func(i int) (string, []AcquireOption) { return fmt.Sprint(i), nil })
		time.Sleep(5 * time.Second)
		w.nodes[2].Lose(1 << 30)
		most := 0
		for i := range need.Sized(10, 20, 120) {
			time.Sleep(time.Second)
			if kept := w.kept(2); i < 4 {
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

// TestReleaseThatIsAlwaysRefused: a node that answers, and refuses every release, is asked for as long as the
// token can be there.
func TestReleaseThatIsAlwaysRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, &Options{TTL: time.Second})
		l := acquired(t, lk, "a")
		synctest.Wait()
		ms[0].set(func(m *model) { m.fails = errDenied })
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

// TestSlowNodeWithoutAQueue: at a node that answers, but not as fast as locks are acquired and
// given back elsewhere, there is nothing to tell of those whose acquire never went out.
func TestSlowNodeWithoutAQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		ms[0].slow(200 * time.Millisecond)
		for i := range need.Sized(10_000, 50_000, 200_000) {
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
		if left := ms.left(); len(left) > 0 {
			t.Errorf("left on the nodes: %v", left)
		}
	})
}
