package wire

import (
	"cmp"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A QueueEntry is one waiter in the queue of a key, as a node stores it.
type QueueEntry struct {
	Waiter   string
	Ticket   int64 // when the waiter came, in microseconds
	Deadline int64 // until when the entry counts, in milliseconds of the node's time
	Mode     Mode
	Identity string // the Signature of the token of its last attempt
}

// By is the identity of the waiter; zero: the entry has none.
func (e *QueueEntry) By() Identity {
	who, _ := Identify(e.Identity)
	return who
}

// MaxLease is the longest time, in milliseconds, for which an entry can count. An entry that
// would count for longer is from before the node's clock was set back.
const MaxLease = 3000

// QueueWindow is the number of living waiters that a node looks at. A waiter with as many before
// it is refused, in whatever modes they wait. Otherwise n waiting readers would cost a node n²
// looks.
const QueueWindow = 100

func (e *QueueEntry) String() string {
	return fmt.Sprintf("%s %d %c %s", e.Waiter, e.Deadline, e.Mode, e.Identity)
}

// ParseQueueEntry reads a member of the sorted set and its score.
func ParseQueueEntry(member, score string) (e QueueEntry, ok bool) {
	part := strings.SplitN(member, " ", 4)
	ticket, err := strconv.ParseFloat(score, 64)
	if len(part) != 4 || len(part[2]) != 1 || err != nil {
		return QueueEntry{}, false
	}
	deadline, err := strconv.ParseInt(part[1], 10, 64)
	return QueueEntry{part[0], int64(ticket), deadline, part[2][0], part[3]}, err == nil
}

// rest is for how many more milliseconds the entry counts at a time in microseconds; 0: it no
// longer counts.
func (e *QueueEntry) rest(now int64) int64 {
	rest := e.Deadline - now/1000 // rounded up, since the division cuts off part of a millisecond
	if rest < 0 || rest > MaxLease {
		return 0
	}
	return rest
}

// Lives reports whether the entry counts.
func (e *QueueEntry) Lives(now int64) bool { return e.rest(now) > 0 }

// before is the order of a queue: the lower ticket first, and of equal tickets the waiter whose
// name comes first.
func before(ticket int64, waiter string, than *QueueEntry) bool {
	return cmp.Or(cmp.Compare(ticket, than.Ticket), cmp.Compare(waiter, than.Waiter)) < 0
}

// A Queue is the queue of one key as one node sees it, with the lowest ticket first. It does what
// internal/script/queue.lua does, for the models of nodes and for readers of a queue.
type Queue []QueueEntry

// Alive iterates over the living waiters in their order, with the rest of each lease in
// milliseconds, and drops the dead ones that it comes across.
func (q *Queue) Alive(now int64) iter.Seq2[*QueueEntry, int64] {
	return func(yield func(*QueueEntry, int64) bool) {
		for i := 0; i < len(*q); {
			if rest := (*q)[i].rest(now); rest == 0 {
				*q = slices.Delete(*q, i, i+1)
			} else if e := (*q)[i]; !yield(&e, rest) {
				return
			} else {
				i++
			}
		}
	}
}

// Admits is the rule of the queue. It decides whether a waiter may have a key now that it could
// hold in this mode. If not, it gives the waiter that goes first, and the rest of that one's lease
// in milliseconds. Ticket 0: the client does not wait. Ticket -1: the client has the lock in any
// case.
func (q *Queue) Admits(now, ticket int64, waiter string, mode Mode) (other *QueueEntry, rest int64) {
	if ticket < 0 {
		return nil, 0
	}
	var first *QueueEntry
	var left int64
	count := 0
	for e, rest := range q.Alive(now) {
		switch {
		case e.Waiter == waiter, ticket > 0 && before(ticket, waiter, e):
			return nil, 0
		case MustQueueBehind(mode, e.Mode):
			return e, rest
		}
		if count++; count == 1 {
			first, left = e, rest
		}
		if count == QueueWindow {
			return first, left
		}
	}
	return nil, 0
}

// Next gives the waiters whose turn it may be when a key is no longer held, or waited for, in one
// mode: each had to wait because of that mode, and can hold the key together with all before it.
func (q *Queue) Next(now int64, mode Mode) (all []*QueueEntry) {
	var earlier []Mode
	count := 0
	for e := range q.Alive(now) {
		turn := MustQueueBehind(e.Mode, mode)
		for _, w := range earlier {
			turn = turn && !MustQueueBehind(e.Mode, w)
		}
		if turn {
			all = append(all, e)
		}
		if count++; e.Mode == ModeX || e.Mode == ModeSlots || count == QueueWindow {
			break // no waiter can share the key with this one; or those that get it call the rest (Follows)
		}
		if !slices.Contains(earlier, e.Mode) {
			earlier = append(earlier, e.Mode)
		}
	}
	return all
}

// Follows gives the waiter that comes into the window when one before it gets the key in this
// mode; nil: there is none, or the two cannot share the key.
func (q *Queue) Follows(now int64, mode Mode) *QueueEntry {
	if len(*q) < QueueWindow {
		return nil
	}
	e := &(*q)[QueueWindow-1]
	if !e.Lives(now) || MustQueueBehind(e.Mode, mode) {
		return nil
	}
	return e
}

// Enter puts a waiter in the queue until its new deadline.
func (q *Queue) Enter(e QueueEntry) {
	q.Leave(e.Waiter, e.Ticket)
	i, _ := slices.BinarySearchFunc(*q, e, func(a, b QueueEntry) int {
		if before(a.Ticket, a.Waiter, &b) {
			return -1
		}
		return 1
	})
	*q = slices.Insert(*q, i, e)
}

// Leave takes a waiter out, and reports whether it was there.
func (q *Queue) Leave(waiter string, ticket int64) bool {
	i := slices.IndexFunc(*q, func(e QueueEntry) bool { return e.Waiter == waiter && e.Ticket == ticket })
	if i >= 0 {
		*q = slices.Delete(*q, i, i+1)
	}
	return i >= 0
}

// DefaultOwner is the label of a process that was given no other: its host and process id.
func DefaultOwner() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// ProcessOf gives the name of the process that a waiter belongs to.
func ProcessOf(waiter string) string { return waiter[:strings.LastIndexByte(waiter, '.')] }
