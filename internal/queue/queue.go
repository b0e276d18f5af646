// Package queue is the order in which those who wait for a lock get it, as one node
// sees it: what internal/script/queue.lua does, for the models of nodes and for
// whoever reads a queue.
package queue

import (
	"cmp"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/redlock/internal/ways"
)

// An Entry is a waiter.
type Entry struct {
	Waiter   string
	Ticket   int64 // when it came, in microseconds
	Deadline int64 // it counts until then, in milliseconds of the node's time
	Way      ways.Way
	Try      int64  // the attempt that it can be handed the lock for; 0: it cannot
	Owner    string // what it is called
}

// MaxLease is the longest that an entry can count for, in milliseconds. One that
// would count for longer is from before the node's clock was set back.
const MaxLease = 3000

func (e *Entry) String() string {
	return fmt.Sprintf("%s %d %c%d %s", e.Waiter, e.Deadline, e.Way, e.Try, e.Owner)
}

// Parse reads a member of the sorted set and its score.
func Parse(member, score string) (e Entry, ok bool) {
	part := strings.SplitN(member, " ", 4)
	ticket, err := strconv.ParseFloat(score, 64)
	if len(part) != 4 || len(part[2]) < 2 || err != nil {
		return Entry{}, false
	}
	deadline, err := strconv.ParseInt(part[1], 10, 64)
	try, err2 := strconv.ParseInt(part[2][1:], 10, 64)
	return Entry{part[0], int64(ticket), deadline, part[2][0], try, part[3]}, err == nil && err2 == nil
}

// Token is what the node has the lock held by when it is handed to the waiter.
func (e *Entry) Token() string { return fmt.Sprintf("%s.%d", e.Waiter, e.Try) }

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

// Alive goes through those who are, in their order, and drops the dead that it comes
// across.
func (q *Queue) Alive(now int64) iter.Seq2[*Entry, int64] {
	return func(yield func(*Entry, int64) bool) {
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

// Admits is the rule: whether a key that can be held some way may be given to somebody now,
// and if not, whom he has to let go first, and for how many milliseconds that one counts
// yet. A ticket of 0 is that of one who does not wait, -1 that of one whose lock it is in
// any case.
func (q *Queue) Admits(now, ticket int64, waiter string, way ways.Way) (other *Entry, rest int64) {
	if ticket < 0 {
		return nil, 0
	}
	for e, rest := range q.Alive(now) {
		switch {
		case e.Waiter == waiter, ticket > 0 && before(ticket, waiter, e):
			return nil, 0
		case ways.Clash(way, e.Way):
			return e, rest
		}
	}
	return nil, 0
}

// Next gives those whose turn it may be when a key is not held, or waited for, one way any
// more: who could not hold it as long as it was, and can together with all before him.
func (q *Queue) Next(now int64, way ways.Way) (all []*Entry) {
	var earlier []ways.Way
	for e := range q.Alive(now) {
		turn := ways.Clash(e.Way, way)
		for _, w := range earlier {
			turn = turn && !ways.Clash(e.Way, w)
		}
		if turn {
			all = append(all, e)
		}
		if e.Way == ways.Alone || e.Way == ways.Slots {
			break // nobody can hold it together with him
		}
		if !slices.Contains(earlier, e.Way) {
			earlier = append(earlier, e.Way)
		}
	}
	return all
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
