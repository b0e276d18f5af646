package reach

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
)

// What comes before tell makes one line, what comes after it one each.
func TestQuarantines(t *testing.T) {
	const isNew, wasNew, wasOlder = "it is new", "it was new, 3ms ago", "it was new, 1.5s ago"
	found := func(node, why string, d time.Duration) func(*Quarantines) {
		return func(q *Quarantines) { q.found(node, d, errors.New(why)) }
	}
	tell := func(q *Quarantines) { q.Tell(", so what", " (and then)") }
	for _, c := range []struct {
		name   string
		nodes  int
		events []func(*Quarantines)
		want   string
		waits  time.Duration
	}{
		{"none", 3, []func(*Quarantines){tell}, "", 0},
		{"all, for the same reason", 3,
			[]func(*Quarantines){found("b", isNew, 10*time.Second), found("a", isNew, 10*time.Second), found("c", isNew, 10*time.Second), tell, tell},
			"3 nodes have no vote for 10s, so what: each is new (and then)", 10 * time.Second},
		{"all, for the same reason at other times", 3,
			[]func(*Quarantines){found("b", wasNew, 10*time.Second), found("a", wasOlder, 8*time.Second), found("c", wasNew, 9*time.Second), tell},
			"3 nodes have no vote for up to 10s, so what: each was new, not long ago (and then)", 9 * time.Second},
		{"two, for different reasons", 5,
			[]func(*Quarantines){found("b", isNew, 10*time.Second), found("a", "it was restarted", 10*time.Second), tell},
			"2 of 5 nodes (a, b) have no vote for 10s, so what: each is new, was restarted, or has lost its data (and then)", 0},
		{"one of many", 3, []func(*Quarantines){found("b", wasNew, 2*time.Second), tell},
			"node b has no vote for 2s, so what: it was new, 3ms ago (and then)", 0},
		{"the only one", 1, []func(*Quarantines){found("a", isNew, 2*time.Second), tell},
			"node a has no vote for 2s, so what: it is new (and then)", 2 * time.Second},
		{"an even number", 2, []func(*Quarantines){found("a", isNew, 2*time.Second), tell},
			"node a has no vote for 2s, so what: it is new (and then)", 2 * time.Second},
		{"later ones", 3, []func(*Quarantines){tell, found("a", isNew, 3*time.Second), found("b", isNew, 4*time.Second), tell},
			"node a has no vote for 3s: it is new\nnode b has no vote for 4s: it is new", 3 * time.Second},
		{"the same one again", 3, []func(*Quarantines){found("a", isNew, 3*time.Second), found("a", "its clock was set", 4*time.Second), tell},
			"node a has no vote for 4s, so what: its clock was set (and then)", 0},
		{"one that is over", 1, []func(*Quarantines){found("a", isNew, time.Second), func(*Quarantines) { time.Sleep(time.Second) }, tell}, "", 0},
		{"one that is nearly over", 1, []func(*Quarantines){found("a", isNew, 20*time.Millisecond), tell},
			"node a has no vote for 100ms, so what: it is new (and then)", 20 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said []string
				set := redlock.Members{Nodes: make([]string, c.nodes), Quorum: c.nodes/2 + 1}
				q := &Quarantines{set: func() redlock.Members { return set }, say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
				for _, event := range c.events {
					event(q)
				}
				if got := strings.Join(said, "\n"); got != c.want {
					t.Errorf("said\n%s\nnot\n%s", got, c.want)
				}
				if got := q.Wait(); got != c.waits {
					t.Errorf("waits %v, not %v", got, c.waits)
				}
			})
		})
	}
}
