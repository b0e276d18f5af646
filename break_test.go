package redlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestBreakWithoutQuorum: as long as a majority cannot be told, the holder keeps the lock; and when it can,
// the nodes are told without another call.
func TestBreakWithoutQuorum(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		var away *arena.Host
		lk := ms.locker(t, nil)
		other := ms.over(t, nil, func(c *modelConn) { away = c.host })
		l := acquired(t, lk, "a")
		for _, m := range ms[:3] {
			away.Far(m.Name, time.Hour)
		}
		e := wantQuorumError(t, other.Break(t.Context(), "a", l.Token()), ErrNoQuorum)
		if e.Op != "break" || e.Failed != 3 {
			t.Errorf("%+v", e)
		}
		if err := l.Extend(t.Context()); err != nil {
			t.Errorf("two of five nodes have dropped it, and it is lost: %v", err)
		}
		for _, m := range ms[:3] {
			away.Far(m.Name, 0)
		}
		pass(4 * time.Second) // it has new connections to them
		wantQuorumError(t, l.Extend(t.Context()), ErrLost)
	})
}

// late makes the connections of one client whose releases come late to some nodes.
func late(c *modelConn, gates map[string]chan struct{}) {
	c.gate(func(q *arena.Call) chan struct{} {
		if q.Op == wire.Release || q.Op == wire.Break {
			return gates[c.model.Name]
		}
		return nil
	})
}

// TestBrokenTokenIsNotExtendedThoughItIsPutBack: nodes drop the token one after another, and in between the holder's extensions put it back.
// They are not confirmed by a node that has noted that the token is broken, though it has the token.
func TestBrokenTokenIsNotExtendedThoughItIsPutBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		soon, never := make(chan struct{}), make(chan struct{})
		open := sync.OnceFunc(func() { close(soon) })
		defer open() // a test that fails would wait for Break otherwise, which waits for the nodes
		defer close(never)
		gates := map[string]chan struct{}{"node1": soon, "node2": soon, "node3": never, "node4": never}
		other := ms.over(t, nil, func(c *modelConn) { late(c, gates) })
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

// TestBrokenTokenIsNotExtendedThoughItComesLate: the acquisition's request to a node is under way when the node is told that the token is
// broken. It arrives, and the node confirms no extension all the same.
func TestBrokenTokenIsNotExtendedThoughItComesLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, &Options{NodeTimeout: 500 * time.Millisecond})
		never := make(chan struct{})
		defer close(never)
		gates := map[string]chan struct{}{"node1": never, "node2": never}
		other := ms.over(t, &Options{NodeTimeout: 500 * time.Millisecond}, func(c *modelConn) { late(c, gates) })
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
			lk := ms.over(t, nil, func(c *modelConn) {
				c.gate(func(q *arena.Call) chan struct{} {
					switch {
					case q.Op == wire.Break:
						return gates[c.model.Name]
					case q.Keys[0] == script.Broken+l.Token():
						return gates["look at "+c.model.Name]
					}
					return nil
				})
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
			mark, _ := wire.ParseMarker(m.Marker())
			mark.Born++
			m.SetMarker(mark.String())
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
		if err := <-first; err != nil { // it has told node0 and node1 again
			t.Error(err)
		}
		wantQuorumError(t, l.Extend(t.Context()), ErrLost)
	})
}

// TestBreakFailsAfterOneRoundAtFullNodes: if nodes cannot note that the token is broken, the error says why, after one round.
func TestBreakFailsAfterOneRoundAtFullNodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms, tells := newModels(3), new(atomic.Int32)
		l := acquired(t, ms.locker(t, nil), "a")
		operator := ms.locker(t, nil)
		for _, m := range ms[:2] {
			m.Full(true)
			m.spy = func(c *arena.Call) {
				if c.Op == wire.Break {
					tells.Add(1)
				}
			}
		}
		e := wantQuorumError(t, operator.Break(t.Context(), "a", l.Token()), ErrNoQuorum)
		if text := e.Error(); !strings.Contains(text, "node0: out of memory: OOM") || !strings.Contains(text, "node1: out of memory: OOM") {
			t.Error(text)
		}
		if n := tells.Load(); n != 2 {
			t.Errorf("they were told %d times", n)
		}
	})
}

// TestClosedLockerBreaksNothing: a closed Locker breaks nothing.
func TestClosedLockerBreaksNothing(t *testing.T) {
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
				operator := ms.over(t, nil, func(c *modelConn) {
					i := slices.Index(ms, c.model)
					c.gate(func(q *arena.Call) chan struct{} {
						if q.Keys[0] != note || i == 2 {
							return nil
						}
						if looks[i]++; looks[i] > tt.times {
							return nil
						}
						gone := make(chan struct{})
						go func() { c.model.Delete(note); close(gone) }()
						return gone
					})
				})
				ms[2].slow(time.Millisecond) // the others decide
				err := operator.Break(t.Context(), "a", l.Token())
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

// TestCloseEndsBreak: Close does not wait for a Break that waits for nodes.
func TestCloseEndsBreak(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		l := acquired(t, ms.locker(t, &Options{TTL: 10 * time.Second}), "a")
		ms[4].forget() // it may never have had the token: Break waits for a NodeTimeout
		ms[3].forget()
		lk := ms.locker(t, &Options{TTL: 10 * time.Second})
		ms[2].hang()
		done := make(chan error, 1)
		go func() { done <- lk.Break(t.Context(), "a", l.Token()) }()
		time.Sleep(300 * time.Millisecond)
		begin := time.Now()
		lk.Close()
		if took := time.Since(begin); took > 2*lk.settings().NodeTimeout {
			t.Errorf("Close took %v", took)
		}
		if err := <-done; !errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
			t.Errorf("Break: %v", err)
		}
		ms[2].resume()
	})
}
