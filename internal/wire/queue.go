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
	Ticket   int64 // when the waiter came, in microseconds: its rank
	Deadline int64 // until when the entry counts, in milliseconds of the node's clock
	Mode     Mode
	Identity string // the Signature of the token of its last attempt
}

// By returns the identity of the waiter (its process, since when it waits); zero if the entry has none.
func (e *QueueEntry) By() Identity {
	who, _ := Identify(e.Identity)
	return who
}

// MaxLease is the longest time, in milliseconds, for which an entry can count. An entry that would count for longer
// dates from before the node's clock was set back.
const MaxLease = 3000

// QueueWindow is how many living waiters a node looks at. A waiter with as many before it is refused, whatever modes
// they wait for: otherwise n waiting readers would cost a node n² looks.
const QueueWindow = 100

func (e *QueueEntry) String() string {
	return fmt.Sprintf("%s %d %c %s", e.Waiter, e.Deadline, e.Mode, e.Identity)
}

// ParseQueueEntry reads a member of the queue's sorted set (String), and its score, the ticket; !ok: it is no waiter.
func ParseQueueEntry(member, score string) (e QueueEntry, ok bool) {
	part := strings.SplitN(member, " ", 4)
	ticket, err := strconv.ParseFloat(score, 64)
	if len(part) != 4 || len(part[2]) != 1 || err != nil {
		return QueueEntry{}, false
	}
	deadline, err := strconv.ParseInt(part[1], 10, 64)
	return QueueEntry{part[0], int64(ticket), deadline, part[2][0], part[3]}, err == nil
}

// rest returns for how many milliseconds the entry counts after now, the node's time in microseconds; 0: it has ended.
func (e *QueueEntry) rest(now int64) int64 {
	rest := e.Deadline - now/1000 // rounded up: the division cuts off part of a millisecond
	if rest < 0 || rest > MaxLease {
		return 0
	}
	return rest
}

// Lives reports whether the entry counts at now, the node's time in microseconds.
func (e *QueueEntry) Lives(now int64) bool { return e.rest(now) > 0 }

// before reports whether a waiter with this ticket and name goes before the entry than: the lower ticket goes first; of
// equal tickets, the name that sorts first.
func before(ticket int64, waiter string, than *QueueEntry) bool {
	return cmp.Or(cmp.Compare(ticket, than.Ticket), cmp.Compare(waiter, than.Waiter)) < 0
}

// A Queue is the queue of one key as one node sees it, the lowest ticket first. It does what internal/script/queue.lua
// does, for nodes in memory and for readers of a queue. In all methods, now is the node's time in microseconds.
type Queue []QueueEntry

// Alive iterates over the waiters that live at now, in their order: a copy of the entry, and the rest of its lease in
// milliseconds. It removes the entries of dead ones from the queue as it comes across them.
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

// Admits is the rule of the queue: may this client take a key that nobody holds in a conflicting mode? If so, other is nil.
// Otherwise other is the waiter that goes first, and rest what is left of its lease, in milliseconds. waiter is the client's
// name in the queue, and ticket its rank, also before it is in q; 0: it does not wait, so all waiters came earlier; -1: it
// has the lock already, so nobody goes first. With QueueWindow waiters before it, other is the first, if modes agree, too.
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

// Next returns copies of the entries of the waiters to call when a key is no longer held in this mode, or no longer
// waited for in it: each had to wait because of that mode, and can hold the key together with all waiters before it.
// The caller looks whether other holders are still in their way.
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
			break // no waiter behind can share the key with this one; or, at the window, those that get the key call the rest (Follows)
		}
		if !slices.Contains(earlier, e.Mode) {
			earlier = append(earlier, e.Mode)
		}
	}
	return all
}

// Follows is called when a waiter has got the key in this mode and left the queue: one more comes into the window of
// QueueWindow waiters at which a node looks. Follows returns its entry (in q, not to be changed), and the caller makes that
// waiter try again. Nil: there is none, or its mode does not allow it to share the key with the one that has got it.
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

// Enter puts a waiter into the queue. It removes the earlier entry of the same name and ticket, if there is one.
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

// Leave removes the entry of the waiter with this name and ticket, and reports whether there was one.
func (q *Queue) Leave(waiter string, ticket int64) bool {
	i := slices.IndexFunc(*q, func(e QueueEntry) bool { return e.Waiter == waiter && e.Ticket == ticket })
	if i >= 0 {
		*q = slices.Delete(*q, i, i+1)
	}
	return i >= 0
}

// DefaultOwner returns the label of a process that was given no other: its host and process id.
func DefaultOwner() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// ProcessOf returns the name of the process that a waiter belongs to: waiters are named PROCESS.N.
func ProcessOf(waiter string) string { return waiter[:strings.LastIndexByte(waiter, '.')] }
