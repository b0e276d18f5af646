// Package queue is the order in which those who wait for a lock get it, as one node
// sees it: what internal/script/queue.lua does, for the models of nodes and for
// whoever reads a queue.
package queue

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// An Entry is a waiter.
type Entry struct {
	Waiter   string
	Ticket   int64  // when it came, in microseconds
	Deadline int64  // it counts until then, in milliseconds of the node's time
	Owner    string // what it is called
}

// MaxLease is the longest that an entry can count for, in milliseconds. One that
// would count for longer is from before the node's clock was set back.
const MaxLease = 3000

func (e *Entry) String() string {
	return fmt.Sprintf("%s %d %s", e.Waiter, e.Deadline, e.Owner)
}

// Parse reads a member of the sorted set and its score.
func Parse(member, score string) (e Entry, ok bool) {
	part := strings.SplitN(member, " ", 3)
	ticket, err := strconv.ParseFloat(score, 64)
	if len(part) != 3 || err != nil {
		return Entry{}, false
	}
	deadline, err := strconv.ParseInt(part[1], 10, 64)
	return Entry{part[0], int64(ticket), deadline, part[2]}, err == nil
}

// rest is for how many milliseconds yet the entry counts, at a time in microseconds; 0:
// it does not.
func (e *Entry) rest(now int64) int64 {
	rest := e.Deadline - now/1000 // rounded up, as what is over of a millisecond is cut off
	if rest < 0 || rest > MaxLease {
		return 0
	}
	return rest
}

// Lives reports whether the entry counts.
func (e *Entry) Lives(now int64) bool { return e.rest(now) > 0 }

// before is the order of tickets: the earlier one, or of the same instant the waiter
// whose name comes first.
func before(ticket int64, waiter string, than *Entry) bool {
	return cmp.Or(cmp.Compare(ticket, than.Ticket), cmp.Compare(waiter, than.Waiter)) < 0
}

// A Queue has the lowest ticket first.
type Queue []Entry

// First gives the first who is alive, and for how many milliseconds yet; nil: nobody.
// The dead before it are dropped.
func (q *Queue) First(now int64) (e *Entry, rest int64) {
	for len(*q) > 0 {
		if rest := (*q)[0].rest(now); rest > 0 {
			return &(*q)[0], rest
		}
		*q = (*q)[1:]
	}
	return nil, 0
}

// Admits is the rule: whether a lock that is free may be given to somebody now, and if
// not, for whom it is. A ticket of 0 is that of one who does not wait, -1 that of one
// whose lock it is in any case.
func (q *Queue) Admits(now, ticket int64, waiter string) (other *Entry, rest int64) {
	if ticket < 0 {
		return nil, 0
	}
	first, rest := q.First(now)
	if first == nil || first.Waiter == waiter || ticket > 0 && before(ticket, waiter, first) {
		return nil, 0
	}
	return first, rest
}

// Enter has a waiter in the queue until its new deadline.
func (q *Queue) Enter(e Entry) {
	q.Leave(e.Waiter, e.Ticket)
	i, _ := slices.BinarySearchFunc(*q, e, func(a, b Entry) int {
		if before(a.Ticket, a.Waiter, &b) {
			return -1
		}
		return 1
	})
	*q = slices.Insert(*q, i, e)
}

// Leave takes a waiter out, and reports whether it was there.
func (q *Queue) Leave(waiter string, ticket int64) bool {
	i := slices.IndexFunc(*q, func(e Entry) bool { return e.Waiter == waiter && e.Ticket == ticket })
	if i >= 0 {
		*q = slices.Delete(*q, i, i+1)
	}
	return i >= 0
}

// Owner is what a process is called unless it has another name: its host and its
// number.
func Owner() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// Process is the process that a waiter is of.
func Process(waiter string) string { return waiter[:strings.LastIndexByte(waiter, '.')] }
