package queue_test

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/quorumlock/redlock/internal/queue"
	"github.com/quorumlock/redlock/internal/ways"
)

const now = int64(1_800_000_000_000_500) // half a millisecond past a whole one

// entry is one that counts for some milliseconds yet.
func entry(waiter string, ticket, rest int64) Entry {
	return Entry{Waiter: waiter, Ticket: ticket, Deadline: now/1000 + rest, Way: ways.Alone, Owner: "me"}
}

func TestAdmits(t *testing.T) {
	for _, tt := range []struct {
		what   string
		queue  []Entry
		ticket int64
		waiter string
		kept   string // for whom it is kept; "": it may be given
		rest   int64
	}{
		{"nobody waits", nil, 0, "", "", 0},
		{"nobody waits, and he would", nil, 5, "p.1", "", 0},
		{"a newcomer", []Entry{entry("p.1", 5, 100)}, 0, "", "p.1", 100},
		{"a later ticket", []Entry{entry("p.1", 5, 100)}, 6, "q.1", "p.1", 100},
		{"an earlier ticket", []Entry{entry("p.1", 5, 100)}, 4, "q.1", "", 0},
		{"the first", []Entry{entry("p.1", 5, 100), entry("q.1", 6, 100)}, 5, "p.1", "", 0},
		{"the second", []Entry{entry("p.1", 5, 100), entry("q.1", 6, 90)}, 6, "q.1", "p.1", 100},
		{"the same ticket, and a later name", []Entry{entry("p.1", 5, 100)}, 5, "q.1", "p.1", 100},
		{"the same ticket, and an earlier name", []Entry{entry("p.1", 5, 100)}, 5, "o.1", "", 0},
		{"the same ticket, and a longer name", []Entry{entry("p.1", 5, 100)}, 5, "p.10", "p.1", 100},
		{"the first is dead", []Entry{entry("p.1", 5, 0), entry("q.1", 6, 90)}, 7, "r.1", "q.1", 90},
		{"the first has a moment", []Entry{entry("p.1", 5, 1)}, 7, "r.1", "p.1", 1},
		{"all are dead", []Entry{entry("p.1", 5, 0), entry("q.1", 6, -1)}, 0, "", "", 0},
		{"the longest lease", []Entry{entry("p.1", 5, MaxLease)}, 0, "", "p.1", MaxLease},
		{"the clock was set back", []Entry{entry("p.1", 5, MaxLease+1)}, 0, "", "", 0},
		{"a lock that is his anyway", []Entry{entry("p.1", 5, 100)}, -1, "q.1", "", 0},
	} {
		var q Queue
		for _, e := range tt.queue {
			q.Enter(e)
		}
		kept := ""
		other, rest := q.Admits(now, tt.ticket, tt.waiter, ways.Alone)
		if other != nil {
			kept = other.Waiter
		}
		if kept != tt.kept || rest != tt.rest {
			t.Errorf("%s: kept for %q, who has %d ms; want %q, %d", tt.what, kept, rest, tt.kept, tt.rest)
		}
	}
}

// TestViewsThatDisagree goes through all that three nodes can know of three waiters,
// of whom two have come at the same instant, and any of whom may have got through to
// any node, or have died there.
func TestViewsThatDisagree(t *testing.T) {
	waiters := []Entry{entry("p.1", 5, 100), entry("q.1", 6, 100), entry("q.2", 6, 100)}
	const nodes, quorum, states = 3, 2, 27 // of each waiter at a node: not there, there, dead
	views := 0
	for view := range states * states * states {
		var queues [nodes]Queue
		var known [3]int // at how many nodes each of them waits
		rest := view
		for n := range nodes {
			for w, e := range waiters {
				switch rest % 3 {
				case 1:
					known[w]++
					queues[n].Enter(e)
				case 2:
					e.Deadline = now / 1000
					queues[n].Enter(e)
				}
				rest /= 3
			}
		}
		views++
		grants := func(ticket int64, waiter string) (n int) {
			for _, q := range queues {
				if other, _ := q.Admits(now, ticket, waiter, ways.Alone); other == nil {
					n++
				}
			}
			return n
		}
		if grants(waiters[0].Ticket, waiters[0].Waiter) != nodes {
			t.Fatalf("view %d: a node refuses the one who came first", view)
		}
		for w, e := range waiters {
			if known[w] < quorum {
				continue
			}
			// Nobody who came later has a quorum.
			if n := grants(0, ""); n >= quorum {
				t.Fatalf("view %d: %d nodes would grant to a newcomer, and %s waits at %d", view, n, e.Waiter, known[w])
			}
			for _, later := range append(waiters[w+1:], entry("r.1", 7, 100)) {
				if n := grants(later.Ticket, later.Waiter); n >= quorum {
					t.Fatalf("view %d: %d nodes would grant to %s, and %s waits at %d", view, n, later.Waiter, e.Waiter, known[w])
				}
			}
		}
	}
	if views != 27*27*27 {
		t.Error(views)
	}
}

// FuzzQueue: whatever happens to it, a queue is in order and has each waiter once, and
// its members can be read again.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 1, 9, 77, 130})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var q Queue
		in := make(map[string]bool) // who must be there: what leases do is another test
		for i, b := range steps {
			ticket := int64(b>>2)%8 + 1
			e := entry(fmt.Sprint("p.", ticket%5, ".", ticket), ticket, 1+int64(i)%MaxLease)
			switch b % 4 {
			case 0:
				if q.Leave(e.Waiter, e.Ticket) != in[e.Waiter] {
					t.Errorf("step %d: whether %s was there", i, e.Waiter)
				}
				delete(in, e.Waiter)
			case 1:
				if other, _ := q.Admits(now, ticket, e.Waiter, ways.Alone); other == nil && len(q) > 0 && q[0].Waiter != e.Waiter && q[0].Ticket < ticket {
					t.Errorf("step %d: %s goes before %s", i, e.Waiter, q[0].Waiter)
				}
			default:
				q.Enter(e)
				in[e.Waiter] = true
			}
			if len(q) != len(in) || !slices.IsSortedFunc(q, func(a, b Entry) int { return int(a.Ticket - b.Ticket) }) {
				t.Fatalf("step %d: %v, and there should be %v", i, q, in)
			}
			for _, e := range q {
				if again, ok := Parse(e.String(), fmt.Sprint(e.Ticket)); !ok || again != e {
					t.Errorf("%v is read as %v", e, again)
				}
			}
		}
	})
}

func TestParse(t *testing.T) {
	for member, want := range map[string]bool{
		"p.1 17 x me": true, "p.1 17 s me and you": true, "p.1 17 x ": true,
		"p.1 17 x": false, "p.1 17": false, "p.1": false, "": false, "p.1 soon x me": false, "p.1 17 xs me": false,
	} {
		if _, ok := Parse(member, "1800000000000000"); ok != want {
			t.Errorf("%q: %v", member, ok)
		}
	}
	if e, ok := Parse("p.1 17 s me and you", "1.7953026825135e+15"); !ok || e.Owner != "me and you" || e.Way != 's' || e.Ticket != 1795302682513500 {
		t.Errorf("%+v", e)
	}
	if _, ok := Parse("p.1 17 x me", "early"); ok {
		t.Error("the score is no number")
	}
}

func TestProcess(t *testing.T) {
	if got := Process("c1.2.17"); got != "c1.2" {
		t.Error(got)
	}
}
