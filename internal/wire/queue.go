// Package queue is the order in which those who wait for a lock get it, as one node
// sees it: what internal/script/queue.lua does, for the models of nodes and for
// whoever reads a queue.
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

// An QueueEntry is a waiter.
type QueueEntry struct {
	Waiter   string
	Ticket   int64 // when it came, in microseconds
	Deadline int64 // it counts until then, in milliseconds of the node's time
	Mode     Mode
	Try      int64  // the attempt that it can be handed the lock for; 0: it cannot
	Nonce    string // that attempt's: who knows it has seen the queue, or is the waiter
	Owner    string // what it is called
}

// MaxLease is the longest that an entry can count for, in milliseconds. One that
// would count for longer is from before the node's clock was set back.
const MaxLease = 3000

// QueueWindow is how many of those who are alive count: with so many before it, a waiter is not
// let in, whatever they wait for. Else n readers who wait would cost a node n² looks.
const QueueWindow = 100

func (e *QueueEntry) String() string {
	return fmt.Sprintf("%s %d %c0 +%d.%s %s", e.Waiter, e.Deadline, e.Mode, e.Try, e.Nonce, e.Owner)
}

// Parse reads a member of the sorted set and its score. That of a waiter of an older version
// has no nonce: it cannot be handed the lock.
func ParseQueueEntry(member, score string) (e QueueEntry, ok bool) {
	part := strings.SplitN(member, " ", 4)
	ticket, err := strconv.ParseFloat(score, 64)
	if len(part) != 4 || len(part[2]) < 2 || err != nil {
		return QueueEntry{}, false
	}
	deadline, err := strconv.ParseInt(part[1], 10, 64)
	_, err2 := strconv.ParseInt(part[2][1:], 10, 64)
	e = QueueEntry{Waiter: part[0], Ticket: int64(ticket), Deadline: deadline, Mode: part[2][0], Owner: part[3]}
	handed, owner, some := strings.Cut(part[3], " ")
	if attempt, is := strings.CutPrefix(handed, "+"); is && some {
		if try, nonce, ok := ParseAttempt(attempt); ok {
			e.Try, e.Nonce, e.Owner = try, nonce, owner
		}
	}
	return e, err == nil && err2 == nil
}

// ParseAttempt reads which attempt of a waiter's something is for, TRY.NONCE.
func ParseAttempt(text string) (try int64, nonce string, ok bool) {
	number, nonce, ok := strings.Cut(text, ".")
	try, err := strconv.ParseInt(number, 10, 64)
	return try, nonce, ok && err == nil && try >= 0 && nonce != ""
}

// Token is what the node has the lock held by when it is handed to the waiter.
func (e *QueueEntry) Token() string { return HandoffToken(e.Waiter, e.Try, e.Nonce) }

// Token is that of a lock that was handed to a waiter for an attempt.
func HandoffToken(waiter string, try int64, nonce string) string {
	return fmt.Sprintf("%s.%d.%s", waiter, try, nonce)
}

// HandedTo is the attempt for which a waiter was handed the lock that is held by this token.
func HandedTo(waiter, token string) (try int64, ok bool) {
	attempt, ok := strings.CutPrefix(token, waiter+".")
	if !ok {
		return 0, false
	}
	try, _, ok = ParseAttempt(attempt)
	return try, ok
}

// rest is for how many milliseconds yet the entry counts, at a time in microseconds; 0:
// it does not.
func (e *QueueEntry) rest(now int64) int64 {
	rest := e.Deadline - now/1000 // rounded up, as what is over of a millisecond is cut off
	if rest < 0 || rest > MaxLease {
		return 0
	}
	return rest
}

// Lives reports whether the entry counts.
func (e *QueueEntry) Lives(now int64) bool { return e.rest(now) > 0 }

// before is the order of tickets: the earlier one, or of the same instant the waiter
// whose name comes first.
func before(ticket int64, waiter string, than *QueueEntry) bool {
	return cmp.Or(cmp.Compare(ticket, than.Ticket), cmp.Compare(waiter, than.Waiter)) < 0
}

// A Queue has the lowest ticket first.
type Queue []QueueEntry

// Alive goes through those who are, in their order, and drops the dead that it comes
// across.
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

// Admits is the rule: whether a key that can be held in a mode may be given to somebody now,
// and if not, whom he has to let go first, and for how many milliseconds that one counts
// yet. A ticket of 0 is that of one who does not wait, -1 that of one whose lock it is in
// any case.
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

// Next gives those whose turn it may be when a key is not held, or waited for, in one mode any
// more: who could not hold it as long as it was, and can together with all before him.
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
			break // nobody can hold it together with him; or it is for those let in to call (Follows)
		}
		if !slices.Contains(earlier, e.Mode) {
			earlier = append(earlier, e.Mode)
		}
	}
	return all
}

// Follows gives the one that has come into the window, when one before it has been let in to
// hold the key in this mode; nil: none, or it cannot hold it, too.
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

// Enter has a waiter in the queue until its new deadline.
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

// Owner is what a process is called unless it has another name: its host and its
// number.
func DefaultOwner() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// Process is the process that a waiter is of.
func ProcessOf(waiter string) string { return waiter[:strings.LastIndexByte(waiter, '.')] }
