package wire_test

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/quorumlock/redlock/internal/wire"
)

// all are the modes in which a waiter can wait for a key.
var all = []Mode{ModeX, ModeS, ModeSlots, ModeIX, ModeIS}

func held(e QueueEntry, w Mode) QueueEntry {
	e.Mode = w
	return e
}

// firstInTheWay gives the waiter that must go first, found by a look at every waiter.
func firstInTheWay(q Queue, e QueueEntry) *QueueEntry {
	for _, other := range q {
		if other.Waiter == e.Waiter {
			return nil
		}
		earlier := other.Ticket < e.Ticket || other.Ticket == e.Ticket && other.Waiter < e.Waiter
		if earlier && other.Deadline > now/1000 && MustQueueBehind(e.Mode, other.Mode) {
			return &other
		}
	}
	return nil
}

// TestAdmitsTogether: a later client is admitted at once if it can hold the key together with all
// earlier waiters.
func TestAdmitsTogether(t *testing.T) {
	for _, tt := range []struct {
		what  string
		queue string // the modes of the waiters, in their order; in capitals: dead
		mode  Mode
		kept  int // the waiter for which the key is reserved; -1: none
	}{
		{"a reader behind readers", "sss", 's', -1},
		{"a reader behind a writer", "sxs", 's', 1},
		{"a reader behind a dead writer", "sXs", 's', -1},
		{"a writer behind a reader", "s", 'x', 0},
		{"a slot behind a slot", "l", 'l', 0},
		{"a slot behind a reader", "sl", 'l', 0},
		{"a reader behind a slot", "rl", 's', 1},
		{"something below, behind something below", "wrw", 'w', -1},
		{"something below, behind the folder", "wsw", 'w', 1},
		{"something to be read below, behind a reader of the folder", "srs", 'r', -1},
		{"something to be read below, behind a slot of the folder", "rl", 'r', 1},
		{"the folder, behind something below", "w", 'x', 0},
		{"a reader of the folder, behind something to be read below", "rr", 's', -1},
		{"a reader of the folder, behind something below", "rw", 's', 1},
	} {
		var q Queue
		for i, w := range tt.queue {
			e := held(entry(fmt.Sprint("p.", i), int64(i+1), 100), Mode(w))
			if w < 'a' {
				e = held(entry(fmt.Sprint("p.", i), int64(i+1), 0), Mode(w+'a'-'A'))
			}
			q.Enter(e)
		}
		for _, ticket := range []int64{0, 100} {
			other, _ := q.Admits(now, ticket, "q.1", tt.mode)
			want := ""
			if tt.kept >= 0 {
				want = fmt.Sprint("p.", tt.kept)
			}
			if got := name(other); got != want {
				t.Errorf("%s, with ticket %d: reserved for %q, want %q", tt.what, ticket, got, want)
			}
		}
		if other, _ := q.Admits(now, -1, "q.1", tt.mode); other != nil {
			t.Errorf("%s: a lock that the client has in any case is reserved for %v", tt.what, other)
		}
	}
}

func name(e *QueueEntry) string {
	if e == nil {
		return ""
	}
	return e.Waiter
}

// TestViewsThatDisagree goes through everything that three nodes can know about three waiters. Two
// of these came at the same instant. Each may have reached each node or not, or be dead there, and
// each may want the key in any mode.
func TestViewsThatDisagree(t *testing.T) {
	const nodes, quorum, states = 3, 2, 27 // of each waiter at a node: not there, there, dead
	views := 0
	for kinds := range 5 * 5 * 5 {
		waiters := []QueueEntry{
			held(entry("p.1", 5, 100), all[kinds%5]), held(entry("q.1", 6, 100), all[kinds/5%5]), held(entry("q.2", 6, 100), all[kinds/25]),
		}
		// The clients that ask: the waiters, and for each mode one that comes later, and one
		// that does not wait.
		asking := slices.Clone(waiters)
		for _, w := range all {
			asking = append(asking, held(entry("r.1", 7, 100), w), held(entry("", 0, 100), w))
		}
		var knows [states][3]int
		var grants [states][13]int
		for state := range states {
			var q Queue
			for w, e := range waiters {
				switch state / []int{1, 3, 9}[w] % 3 {
				case 1:
					knows[state][w] = 1
					q.Enter(e)
				case 2:
					e.Deadline = now / 1000
					q.Enter(e)
				}
			}
			for i, e := range asking {
				waits := slices.Clone(q)
				if other, _ := waits.Admits(now, e.Ticket, e.Waiter, e.Mode); other == nil {
					grants[state][i] = 1
				}
			}
			if grants[state][0] == 0 {
				t.Fatalf("%v in state %d: a node refuses the first waiter", waiters, state)
			}
		}
		for view := range states * states * states {
			a, b, c := view%states, view/states%states, view/states/states
			views++
			for w, e := range waiters {
				if knows[a][w]+knows[b][w]+knows[c][w] < quorum {
					continue
				}
				// No later client that cannot share the key with this waiter has a quorum.
				for i := w + 1; i < len(asking); i++ {
					if n := grants[a][i] + grants[b][i] + grants[c][i]; n >= quorum && MustQueueBehind(asking[i].Mode, e.Mode) {
						t.Fatalf("%v in view %d: %d nodes would grant to %v, and %s waits", waiters, view, n, &asking[i], e.Waiter)
					}
				}
			}
		}
	}
	if views != 125*27*27*27 {
		t.Error(views)
	}
}

// TestNext goes through all queues of up to four waiters, any of which may be dead. Woken are
// exactly the waiters that the ended lock kept out, and that no earlier waiter keeps out.
func TestNext(t *testing.T) {
	woken := 0
	for length := range 5 {
		n := 1
		for range length {
			n *= 2 * len(all)
		}
		for kinds := range n {
			var q Queue
			for i, rest := 0, kinds; i < length; i, rest = i+1, rest/(2*len(all)) {
				lives := int64(rest / len(all) % 2)
				q.Enter(held(entry(fmt.Sprint("p.", i), int64(i+1), 100*lives), all[rest%len(all)]))
			}
			for _, ended := range all {
				var want []string
				for i, e := range q {
					if e.Lives(now) && MustQueueBehind(e.Mode, ended) && firstInTheWay(q[:i], e) == nil {
						want = append(want, e.Waiter)
					}
				}
				var got []string
				waits := slices.Clone(q)
				for _, e := range waits.Next(now, ended) {
					got = append(got, e.Waiter)
				}
				woken += len(got)
				if !slices.Equal(got, want) {
					t.Fatalf("%c has ended: %q of %v are woken, want %q", ended, got, q, want)
				}
			}
		}
	}
	if woken == 0 {
		t.Error("no waiter was ever woken")
	}
}
