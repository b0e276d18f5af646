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
