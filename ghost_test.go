package redlock

import (
	"testing"
	"time"

	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestReleaseOfALateKeyThatComesLate: a node sets the key when the time is up, and is told to drop it. That release is on
// its way for so long that the connection is given up. Over the next one the node drops the key. Then the first release
// arrives: if the node had been given the key again, and had confirmed an extension, there could be two holders.
func TestReleaseOfALateKeyThatComesLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const timeout = 50 * time.Millisecond
		ms, hung, ghost := newModels(3), make(chan struct{}), make(chan struct{})
		releases := 0
		lk := ms.over(t, &Options{NodeTimeout: timeout}, func(c *modelConn) {
			c.gate(func(q *arena.Call) chan struct{} {
				switch {
				case c.model != ms[2]:
				case q.Op == wire.Plain:
					return hung
				case q.Op == wire.Release:
					if releases++; releases == 1 {
						return ghost
					}
				}
				return nil
			})
		})
		rival := ms.locker(t, &Options{NodeTimeout: timeout})
		l := acquired(t, lk, "a")
		pass(4 * timeout)
		close(hung)
		pass(patience(timeout) + time.Second)
		if releases != 2 || ms[2].holder("a") != "" {
			t.Fatalf("%d releases, the node has %q", releases, ms[2].holder("a"))
		}
		for range 2 { // the node gets the token again, and the others confirm
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(time.Millisecond)
		}
		pass(4 * time.Second)
		ms[1].kill()
		err := l.Extend(t.Context())
		close(ghost)
		pass(time.Millisecond)
		ms[1].revive()
		for time.Until(l.Until()) > 0 {
			if _, err := rival.TryAcquire(t.Context(), "a"); err == nil {
				t.Fatalf("there are two holders, for another %v", time.Until(l.Until()))
			}
			pass(timeout)
		}
		wantQuorumError(t, err, ErrNoQuorum)
	})
}

// TestAcquireThatComesLateToAnEmptiedNode: an acquire by plain commands is on its way for so long that the connection is
// given up, and its node loses its data before it carries it out. What the node forgets is a grant to a rival, which is
// waiting for another vote: the key that is there now must not count for an extension, as if it had been there all along.
func TestAcquireThatComesLateToAnEmptiedNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		ms, ghost, rivals, never := newModels(3), make(chan struct{}), make(chan struct{}), make(chan struct{})
		defer close(never)
		away := false
		lk := ms.over(t, &Options{NodeTimeout: timeout}, func(c *modelConn) {
			c.gate(func(q *arena.Call) chan struct{} {
				switch {
				case c.model == ms[2] && q.Op == wire.Plain && q.Keys[0] == "a":
					return ghost
				case c.model == ms[1] && away:
					return never
				}
				return nil
			})
		})
		rival := ms.over(t, &Options{NodeTimeout: timeout}, func(c *modelConn) {
			c.gate(func(q *arena.Call) chan struct{} {
				if c.model == ms[1] && q.Op == wire.Plain {
					return rivals
				}
				return nil
			})
		})
		l := acquired(t, lk, "a")
		pass(9800 * time.Millisecond) // 98 ms before its validity ends
		got := make(chan error, 1)
		go func() {
			_, err := rival.TryAcquire(t.Context(), "a")
			got <- err
		}()
		pass(time.Millisecond)
		if holder := ms[2].holder("a"); holder == "" || holder == l.Token() {
			t.Fatalf("the rival has not been granted the node: %q", holder)
		}
		ms[2].Flush()
		close(ghost)
		pass(time.Millisecond)
		if ms[2].holder("a") != l.Token() {
			t.Fatal("the acquire has not come")
		}
		for _, name := range []string{"b", "c"} { // the client meets the node again, and tells it the set's description
			_, _ = lk.TryAcquire(t.Context(), name)
			pass(time.Millisecond)
		}
		away = true
		extended := make(chan error, 1)
		go func() { extended <- l.Extend(t.Context()) }()
		pass(time.Until(l.Until()) + 150*time.Millisecond) // node 1 has dropped the key
		close(rivals)
		if err := <-got; err != nil {
			t.Fatalf("the rival has not got the lock: %v", err)
		}
		if left := time.Until(l.Until()); left > 0 {
			t.Errorf("there are two holders, for another %v", left)
		}
		wantQuorumError(t, <-extended, ErrLost)
	})
}
