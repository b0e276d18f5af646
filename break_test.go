package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
)

// broken breaks a lock by what Inspect says.
func broken(t *testing.T, lk *Locker, name string) {
	t.Helper()
	s := inspected(t, lk, name)
	token := s.Token
	for _, h := range s.Holders {
		token = h.Token
	}
	if err := lk.Break(t.Context(), name, token); err != nil {
		t.Fatal(err)
	}
}

// TestBreak: a lock of any kind is free when it is broken, with all its keys. Its holder is told by the
// next renewal, and the next lock has a larger fence.
func TestBreak(t *testing.T) {
	for row, tt := range []struct {
		name    string
		lock    string
		options []AcquireOption
		rivals  [][]AcquireOption // that could not have it before; each of "a"
	}{
		{"exclusive", "a", nil, [][]AcquireOption{nil, {Shared()}}},
		{"shared", "a", []AcquireOption{Shared()}, [][]AcquireOption{nil}},
		{"a slot", "a", []AcquireOption{Slots(1)}, [][]AcquireOption{nil, {Slots(1)}}},
		{"one slot of many", "a", []AcquireOption{Slots(MaxSlots)}, [][]AcquireOption{nil}},
		{"in folders", "a/b/c", nil, [][]AcquireOption{nil, {Shared()}}},
		{"a slot in a folder", "a/b", []AcquireOption{Slots(5)}, [][]AcquireOption{nil}},
		{"shared in a folder", "a/b", []AcquireOption{Shared()}, [][]AcquireOption{nil}},
	} {
		if !need.Sample(row+1, 6) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			fences(t, func(f *fenced) {
				opts := Options{Prefix: "app:", Separator: "/"}
				holder, other := f.locker(&opts), f.locker(&opts)
				l := acquired(f.T, holder, tt.lock, append(tt.options, TTL(6*time.Second), AutoRenew())...)
				ctx := l.Context(f.Context())
				pass(time.Second)
				for _, options := range tt.rivals {
					refused(f.T, other, "a", options...)
				}
				broken(f.T, other, tt.lock)
				for _, options := range tt.rivals {
					next := acquired(f.T, other, "a", options...)
					if next.Fence() < l.Fence() || len(options) == 0 && next.Fence() == l.Fence() {
						f.Errorf("the next lock's fence is %d, and that of the broken one %d", next.Fence(), l.Fence())
					}
					if err := next.Release(f.Context()); err != nil {
						f.Error(err)
					}
				}
				if ctx.Err() != nil {
					f.Errorf("the holder was told before its next renewal: %v", context.Cause(ctx))
				}
				pass(1100 * time.Millisecond) // a third of the TTL after the acquisition
				if why := context.Cause(ctx); !errors.Is(why, ErrLost) {
					f.Errorf("the renewal ended the holder's context with %v", why)
				}
				pass(time.Second)
				if keys := f.locks(); len(keys) > 0 {
					f.Errorf("left are %q", keys)
				}
			})
		})
	}
}

// locks has the keys on the nodes that no lock should leave.
func (f *fenced) locks() (keys []string) {
	for i := range f.Len() {
		for _, key := range f.Keys(i) {
			if !script.Lasting(key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// TestBreakComparesTheToken: no other token is deleted, whichever node has it.
func TestBreakComparesTheToken(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(nil)
		was := acquired(f.T, lk, "a")
		if err := was.Release(f.Context()); err != nil {
			f.Fatal(err)
		}
		l := acquired(f.T, lk, "a")
		e := wantQuorumError(f.T, lk.Break(f.Context(), "a", was.Token()), ErrLost)
		if e.Op != "break" || e.Held != 5 || len(e.Nodes()) != 5 {
			f.Errorf("%+v", e)
		}
		wantQuorumError(f.T, lk.Break(f.Context(), "b", was.Token()), ErrLost)
		if err := l.Extend(f.Context()); err != nil {
			f.Errorf("another token was broken: %v", err)
		}

		// One of several readers, and no other.
		one, two := acquired(f.T, lk, "r", Shared()), acquired(f.T, lk, "r", Shared())
		if err := lk.Break(f.Context(), "r", one.Token()); err != nil {
			f.Fatal(err)
		}
		wantQuorumError(f.T, one.Extend(f.Context()), ErrLost)
		if err := two.Extend(f.Context()); err != nil {
			f.Errorf("another reader was broken: %v", err)
		}
	})
}

// TestBreakTakesFewRounds: of nodes that answer in another order each time, a lock is broken in few rounds, of
// which each takes as long as an answer at most.
func TestBreakTakesFewRounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 5)
		const slowest = 41 * time.Millisecond // twice a quarter of a millisecond, and 20 ms on both ways
		for _, n := range f.nodes {
			n.Delay(time.Millisecond, 20*time.Millisecond)
		}
		lk := f.client(&Options{}, 0)
		pass(time.Second)
		for range 50 {
			l, err := lk.TryAcquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			began := time.Now()
			if err := lk.Break(t.Context(), "a", l.Token()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 5*slowest { // the first one finds the token, and a look waits for the one before at each node
				t.Errorf("it took %v", took)
			}
			_ = l.Release(t.Context())
			pass(time.Second)
		}
	})
}

// TestBreakOfSeveralNames: broken at one of its names, the lock is not extended at the others.
func TestBreakOfSeveralNames(t *testing.T) {
	fences(t, func(f *fenced) {
		lk, other := f.locker(nil), f.locker(nil)
		l := acquired(f.T, lk, "a", Also("b"))
		broken(f.T, other, "b")
		next := acquired(f.T, other, "b")
		refused(f.T, other, "a")
		wantQuorumError(f.T, l.Extend(f.Context()), ErrLost)
		pass(10 * time.Second)
		if after := acquired(f.T, other, "a"); after.Fence() <= l.Fence() || next.Fence() <= l.Fence() {
			f.Errorf("fences %d and %d after %d", next.Fence(), after.Fence(), l.Fence())
		}
	})
}

// TestBreakRefuses: what is no token of this very lock breaks nothing.
func TestBreakRefuses(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(&Options{Separator: "/"})
		l := acquired(f.T, lk, "a/b")
		for name, token := range map[string]string{"a": l.Token(), "": "t", "a/b": ""} {
			if err := lk.Break(f.Context(), name, token); err == nil || errors.Is(err, ErrLost) {
				f.Errorf("%q, %q: %v", name, token, err)
			}
		}
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		if err := lk.Break(ctx, "a/b", l.Token()); !errors.Is(err, context.Canceled) {
			f.Errorf("canceled: %v", err)
		}
		if err := l.Extend(f.Context()); err != nil {
			f.Error(err)
		}
	})
}

// TestBreakCalls: the first waiter has the lock as soon as it is broken, as after a release.
func TestBreakCalls(t *testing.T) {
	fences(t, func(f *fenced) {
		holder, waiter, other := f.locker(nil), f.locker(nil), f.locker(nil)
		l := acquired(f.T, holder, "a")
		got := make(chan *Lock, 1)
		go func() {
			next, err := waiter.Acquire(f.Context(), "a")
			if err != nil {
				f.Error(err)
			}
			got <- next
		}()
		pass(time.Second)
		broken(f.T, other, "a")
		synctest.Wait()
		select {
		case next := <-got:
			if next.Fence() <= l.Fence() {
				f.Errorf("the waiter's fence is %d, and that of the broken lock %d", next.Fence(), l.Fence())
			}
		default:
			f.Error("the waiter does not have it")
		}
		wantQuorumError(f.T, l.Extend(f.Context()), ErrLost)
	})
}

// TestLateWriterIsRefused: the holder is stopped, its lock broken, and the next holder writes. What the first
// one writes then, believing in its lock, is refused.
func TestLateWriterIsRefused(t *testing.T) {
	fences(t, func(f *fenced) {
		lk, other := f.locker(nil), f.locker(nil)
		highest := int64(0)
		write := func(l *Lock) bool {
			ok := l.Fence() >= highest
			highest = max(highest, l.Fence())
			return ok
		}
		l := acquired(f.T, lk, "a")
		ctx := l.Context(f.Context())
		if !write(l) {
			f.Error("the first write was refused")
		}
		broken(f.T, other, "a")
		if !write(l) {
			f.Error("nobody has written since: nothing refuses the broken holder")
		}
		next := acquired(f.T, other, "a")
		if !write(next) {
			f.Error("the next holder's write was refused")
		}
		if ctx.Err() != nil || write(l) {
			f.Errorf("the broken holder believes in its lock (%v), and its write was accepted", ctx.Err())
		}
	})
}

// TestBreakWithoutQuorum: as long as a majority cannot be told, the holder keeps the lock; and when it can,
// the nodes are told without another call.
func TestBreakWithoutQuorum(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		var down atomic.Int32
		lk := ms.locker(t, nil)
		other := ms.over(t, nil, func(c *modelConn) execs { return &cutOff{c, &down} })
		l := acquired(t, lk, "a")
		down.Store(3)
		e := wantQuorumError(t, other.Break(t.Context(), "a", l.Token()), ErrNoQuorum)
		if e.Op != "break" || e.Failed != 3 {
			t.Errorf("%+v", e)
		}
		if err := l.Extend(t.Context()); err != nil {
			t.Errorf("two of five nodes have dropped it, and it is lost: %v", err)
		}
		down.Store(0)
		pass(time.Second)
		wantQuorumError(t, l.Extend(t.Context()), ErrLost)
	})
}

// cutOff are the connections of one client, which the first few nodes do not answer.
type cutOff struct {
	*modelConn
	down *atomic.Int32
}

func (c *cutOff) Exec(batch []*lane.Request) error {
	if c.name < fmt.Sprintf("node%d", c.down.Load()) {
		for _, q := range batch {
			q.Reply = wire.Reply{Status: wire.Unreachable, Err: errCut}
		}
		return errCut
	}
	return c.modelConn.Exec(batch)
}

// late makes the connections of one client whose releases come late to some nodes.
func late(c *modelConn, gates map[string]chan struct{}) execs {
	return &gated{c, func(q *lane.Request) chan struct{} {
		if q.Op == wire.Release {
			return gates[c.name]
		}
		return nil
	}}
}

// TestBrokenTokenIsPutBack: nodes drop the token one after another, and in between the holder's extensions put it back.
// They are not confirmed by a node that has noted that the token is broken, though it has the token.
func TestBrokenTokenIsPutBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		soon, never := make(chan struct{}), make(chan struct{})
		open := sync.OnceFunc(func() { close(soon) })
		defer open() // a test that fails would wait for Break otherwise, which waits for the nodes
		defer close(never)
		gates := map[string]chan struct{}{"node1": soon, "node2": soon, "node3": never, "node4": never}
		other := ms.over(t, nil, func(c *modelConn) execs { return late(c, gates) })
		l := acquired(t, lk, "a")
		ended := make(chan error, 1)
		go func() { ended <- other.Break(t.Context(), "a", l.Token()) }()
		synctest.Wait()
		for range 2 {
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := ms.held("a", l.Token()); n != 5 {
				t.Fatalf("held on %d nodes after an extension", n)
			}
		}
		open()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		wantQuorumError(t, l.Extend(t.Context()), ErrLost)
	})
}

// TestBrokenTokenComesLate: the acquisition's request to a node is under way when the node is told that the token is
// broken. It arrives, and the node confirms no extension all the same.
func TestBrokenTokenComesLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, &Options{NodeTimeout: 500 * time.Millisecond})
		never := make(chan struct{})
		defer close(never)
		gates := map[string]chan struct{}{"node1": never, "node2": never}
		other := ms.over(t, &Options{NodeTimeout: 500 * time.Millisecond}, func(c *modelConn) execs { return late(c, gates) })
		ms[3].slow(400 * time.Millisecond)
		ms[4].slow(400 * time.Millisecond)
		l := acquired(t, lk, "a")
		ms[3].slow(0) // of what is under way, the answer
		ms[4].slow(0)
		if n := ms.held("a", l.Token()); n != 3 {
			t.Fatalf("held on %d nodes", n)
		}
		if err := other.Break(t.Context(), "a", l.Token()); err != nil {
			t.Fatal(err)
		}
		pass(400 * time.Millisecond)
		if n := ms.held("a", l.Token()); n != 4 {
			t.Fatalf("held on %d nodes: it has not come late", n)
		}
		wantQuorumError(t, l.Extend(t.Context()), ErrLost)
	})
}

// TestBreakByTwoOperators: a node has noted that the token is broken, loses its data, and is told by another operator. When
// the first one looks for the note, it does not count as one that has had it all the time.
func TestBreakByTwoOperators(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		l := acquired(t, ms.locker(t, nil), "a", TTL(2*time.Second))
		never, others, look, second := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		defer close(never)
		operator := func(gates map[string]chan struct{}) chan error {
			lk := ms.over(t, nil, func(c *modelConn) execs {
				return &gated{c, func(q *lane.Request) chan struct{} {
					switch {
					case q.Step() == wire.Break:
						return gates[c.name]
					case q.Claim.Key == script.Broken+l.Token():
						return gates["look at "+c.name]
					}
					return nil
				}}
			})
			ended := make(chan error, 1)
			go func() { ended <- lk.Break(t.Context(), "a", l.Token()) }()
			return ended
		}
		first := operator(map[string]chan struct{}{"node0": others, "node2": others, "node3": never, "node4": never, "look at node1": look})
		operator(map[string]chan struct{}{"node0": never, "node1": second, "node2": never, "node3": never, "node4": never})
		synctest.Wait()
		extends := func() {
			t.Helper()
			for range 2 { // the node that has lost the token is given it again, and counts
				if err := l.Extend(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		}
		loses := func(m *model) {
			m.forget()
			mark, _ := wire.ParseMarker(m.mark)
			mark.Born++
			m.mark = mark.String()
		}
		loses(ms[1])
		extends()
		close(others)
		synctest.Wait()
		loses(ms[0])
		extends()
		close(second)
		synctest.Wait()
		close(look)
		wantQuorumError(t, <-first, ErrNoQuorum)
	})
}

// TestBreakAtFullNodes: if nodes cannot note that the token is broken, the error says why, after one round.
func TestBreakAtFullNodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms, tells := newModels(3), new(atomic.Int32)
		l := acquired(t, ms.locker(t, nil), "a")
		operator := ms.over(t, nil, func(c *modelConn) execs { return &full{c, tells} })
		e := wantQuorumError(t, operator.Break(t.Context(), "a", l.Token()), ErrNoQuorum)
		if text := e.Error(); !strings.Contains(text, "node0: out of memory: OOM") || !strings.Contains(text, "node1: out of memory: OOM") {
			t.Error(text)
		}
		if n := tells.Load(); n != 2 {
			t.Errorf("they were told %d times", n)
		}
	})
}

// full are the connections of one client to nodes that cannot note that a token is broken, but for the last one.
type full struct {
	*modelConn
	tells *atomic.Int32
}

func (c *full) Exec(batch []*lane.Request) error {
	err := c.modelConn.Exec(batch)
	for _, q := range batch {
		if q.Step() == wire.Break && c.name != "node2" {
			c.tells.Add(1)
			q.Reply = wire.Reply{Status: wire.OutOfMemory, Err: errors.New("OOM command not allowed")}
		}
	}
	return err
}

// TestBreakClosed: a closed Locker breaks nothing.
func TestBreakClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lk := newModels(3).locker(t, nil)
		lk.Close()
		if err := lk.Break(t.Context(), "a", "t"); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// TestBreakLooksForTheNote: nodes that lose their data when they have noted that the token is broken are told again, and
// if they lose it each time, Break says so.
func TestBreakLooksForTheNote(t *testing.T) {
	for _, tt := range []struct {
		name   string
		times  int    // that each of the nodes 0 and 1 loses it
		reason string // why Break fails
	}{
		{"once", 1, ""},
		{"each time", maxRounds, "no quorum: 0 votes, 2 of 3 needed (node0: gone; node1: gone)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(3)
				l := acquired(t, ms.locker(t, nil), "a")
				note := script.Broken + l.Token()
				looks := make([]int, 2)
				for i := range looks {
					ms[i].spy = func(q *lane.Request) {
						if q.Claim.Key == note {
							if looks[i]++; looks[i] <= tt.times {
								delete(ms[i].keys, note)
							}
						}
					}
				}
				ms[2].delay = time.Millisecond // the others decide
				err := ms.locker(t, nil).Break(t.Context(), "a", l.Token())
				switch {
				case tt.reason != "":
					if e := wantQuorumError(t, err, ErrNoQuorum); !strings.Contains(e.Error(), tt.reason) {
						t.Error(e)
					}
				case err != nil || looks[0] != 2 || looks[1] != 2:
					t.Errorf("after %d looks: %v", looks, err)
				}
			})
		})
	}
}
