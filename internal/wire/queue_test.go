package wire_test

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/quorumlock/redlock/internal/wire"
)

const now = int64(1_800_000_000_000_500) // half a millisecond past a full one

// entry makes an entry that counts for some more milliseconds.
func entry(waiter string, ticket, rest int64) QueueEntry {
	return QueueEntry{Waiter: waiter, Ticket: ticket, Deadline: now/1000 + rest, Mode: ModeX, Identity: ".@a@@me" + waiter}
}

func TestAdmits(t *testing.T) {
	for _, tt := range []struct {
		what   string
		queue  []QueueEntry
		ticket int64
		waiter string
		kept   string // the waiter for which the key is reserved; "": it may be given
		rest   int64
	}{
		{"nobody waits", nil, 0, "", "", 0},
		{"nobody waits, and he would", nil, 5, "p.1", "", 0},
		{"a newcomer", []QueueEntry{entry("p.1", 5, 100)}, 0, "", "p.1", 100},
		{"a later ticket", []QueueEntry{entry("p.1", 5, 100)}, 6, "q.1", "p.1", 100},
		{"an earlier ticket", []QueueEntry{entry("p.1", 5, 100)}, 4, "q.1", "", 0},
		{"the first", []QueueEntry{entry("p.1", 5, 100), entry("q.1", 6, 100)}, 5, "p.1", "", 0},
		{"the second", []QueueEntry{entry("p.1", 5, 100), entry("q.1", 6, 90)}, 6, "q.1", "p.1", 100},
		{"the same ticket, and a later name", []QueueEntry{entry("p.1", 5, 100)}, 5, "q.1", "p.1", 100},
		{"the same ticket, and an earlier name", []QueueEntry{entry("p.1", 5, 100)}, 5, "o.1", "", 0},
		{"the same ticket, and a longer name", []QueueEntry{entry("p.1", 5, 100)}, 5, "p.10", "p.1", 100},
		{"the first is dead", []QueueEntry{entry("p.1", 5, 0), entry("q.1", 6, 90)}, 7, "r.1", "q.1", 90},
		{"the first has a moment", []QueueEntry{entry("p.1", 5, 1)}, 7, "r.1", "p.1", 1},
		{"all are dead", []QueueEntry{entry("p.1", 5, 0), entry("q.1", 6, -1)}, 0, "", "", 0},
		{"the longest lease", []QueueEntry{entry("p.1", 5, MaxLease)}, 0, "", "p.1", MaxLease},
		{"the clock was set back", []QueueEntry{entry("p.1", 5, MaxLease+1)}, 0, "", "", 0},
		{"a lock that is his anyway", []QueueEntry{entry("p.1", 5, 100)}, -1, "q.1", "", 0},
	} {
		var q Queue
		for _, e := range tt.queue {
			q.Enter(e)
		}
		kept := ""
		other, rest := q.Admits(now, tt.ticket, tt.waiter, ModeX)
		if other != nil {
			kept = other.Waiter
		}
		if kept != tt.kept || rest != tt.rest {
			t.Errorf("%s: reserved for %q, which has %d ms; want %q, %d", tt.what, kept, rest, tt.kept, tt.rest)
		}
	}
}

// FuzzQueue: after any steps a queue is in order and has each waiter once, and its members can be
// parsed.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 1, 9, 77, 130})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var q Queue
		in := make(map[string]bool) // the waiters that must be there: leases are another test's subject
		for i, b := range steps {
			ticket := int64(b>>2)%8 + 1
			e := held(entry(fmt.Sprint("p.", ticket%5, ".", ticket), ticket, 1+int64(i)%MaxLease), all[int(b)/32%len(all)])
			switch b % 4 {
			case 0:
				if q.Leave(e.Waiter, e.Ticket) != in[e.Waiter] {
					t.Errorf("step %d: Leave is wrong about whether %s was there", i, e.Waiter)
				}
				delete(in, e.Waiter)
			case 1:
				other, _ := q.Admits(now, ticket, e.Waiter, e.Mode)
				if first := firstInTheWay(q, e); (other == nil) != (first == nil) || other != nil && *other != *first {
					t.Errorf("step %d: %v is reserved for %v, not %v: %v", i, e, other, first, q)
				}
			default:
				q.Enter(e)
				in[e.Waiter] = true
			}
			if len(q) != len(in) || !slices.IsSortedFunc(q, func(a, b QueueEntry) int { return int(a.Ticket - b.Ticket) }) {
				t.Fatalf("step %d: %v, and there should be %v", i, q, in)
			}
			for _, e := range q {
				if again, ok := ParseQueueEntry(e.String(), fmt.Sprint(e.Ticket)); !ok || again != e {
					t.Errorf("%v is read as %v", e, again)
				}
			}
		}
	})
}

func TestParseQueueEntry(t *testing.T) {
	for member, want := range map[string]bool{
		"p.1 17 x .@a@@me": true, "p.1 17 s .@a@@me and you": true, "p.1 17 x ": true,
		"p.1 17 x": false, "p.1 17": false, "p.1": false, "": false, "p.1 soon x me": false, "p.1 17 xs me": false, "p.1 17 x0 me": false, "p.1 17  me": false,
	} {
		if _, ok := ParseQueueEntry(member, "1800000000000000"); ok != want {
			t.Errorf("%q: %v", member, ok)
		}
	}
	want := QueueEntry{Waiter: "p.1", Ticket: 1795302682513500, Deadline: 17, Mode: 'x', Identity: ".@a@@me"}
	if e, ok := ParseQueueEntry(want.String(), "1.7953026825135e+15"); !ok || e != want || e.By().Owner != "me" {
		t.Errorf("%+v", e)
	}
	if _, ok := ParseQueueEntry("p.1 17 x me", "early"); ok {
		t.Error("the score is no number")
	}
}

// TestWindow: a waiter with a hundred before it waits until one of them is admitted, which then
// calls it; and a release calls no more than a hundred.
func TestWindow(t *testing.T) {
	var q Queue
	for i := range int64(QueueWindow + 2) {
		q.Enter(held(entry(fmt.Sprint("p.", i), 10+i, 100), ModeS))
	}
	admits := func(i int64, want bool) {
		t.Helper()
		other, rest := q.Admits(now, 10+i, fmt.Sprint("p.", i), ModeS)
		if (other == nil) != want || other != nil && (*other != q[0] || rest != 100) {
			t.Errorf("%d is reserved for %v, which has %d", i, other, rest)
		}
	}
	admits(QueueWindow-1, true)
	admits(QueueWindow, false)
	if other, _ := q.Admits(now, 0, "", ModeS); other == nil || *other != q[0] {
		t.Errorf("for a client that does not wait, the key is reserved for %v", other)
	}
	if all := q.Next(now, ModeX); len(all) != QueueWindow || *all[QueueWindow-1] != q[QueueWindow-1] {
		t.Errorf("%d are called", len(all))
	}
	q.Leave("p.7", 17)
	admits(QueueWindow, true)
	admits(QueueWindow+1, false)
	if next := q.Follows(now, ModeS); next == nil || next.Waiter != fmt.Sprint("p.", QueueWindow) {
		t.Errorf("%v is called", next)
	}
	for _, mode := range []Mode{ModeX, ModeSlots, ModeIX} {
		if next := q.Follows(now, mode); next != nil {
			t.Errorf("%v is called although the key is held as %c", next, mode)
		}
	}
	q[QueueWindow-1].Deadline = now/1000 - 1
	if next := q.Follows(now, ModeS); next != nil {
		t.Errorf("%v is called although it is dead", next)
	}
	q[5].Deadline = now/1000 - 1 // so another one has moved up
	admits(QueueWindow+1, true)
	q.Leave("p.8", 18)
	if next := q.Follows(now, ModeS); next != nil {
		t.Errorf("%v is called although there is no hundredth waiter", next)
	}
}

func TestProcess(t *testing.T) {
	if got := ProcessOf("c1.2.17"); got != "c1.2" {
		t.Error(got)
	}
}
