package redlock

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A release hands the lock to the first of those who wait, in the same step: each node
// puts his token in the place of the old one and tells him so (release_usual.lua). Who has
// heard that from a quorum of nodes has the lock, one trip after its release, and nobody
// asks again. It is a vote like any other, only that the reply comes later than the
// question, which was the attempt that was refused:
//
//   - The token is of that attempt (Lock.try): no request that is still under way for an
//     earlier one can take it away, and what is handed over for an earlier one is not
//     counted. The next attempt takes over what was handed to the one before it
//     (acquire.lua), which counts for nothing from then on.
//   - Token and message have a nonce that the attempt left in the node's queue, its own token.
//     So a message is true that has it: whoever may publish, and cannot read the queue, does
//     not know it, nor does one who has heard the messages for other attempts.
//   - It counts if it was heard over a subscription that stood when the attempt was sent. A
//     virtual machine that was copied goes on twice, in the same attempt; but one of the two at
//     most has the connections that there were, and from their next attempts on they differ.
//   - A node had a vote when it refused, and still has one, going by its marker and its time
//     in the message (incarnation.vouches); and the script is for one server process.
//   - It keeps the token for as long as the waiter's lease counts there, which began after
//     the attempt was sent. So validity is what is left of that, as if the lease were the
//     TTL (see validFor).
//
// So the lock is valid for two heartbeats or so at first, and then extended like any other,
// to a full TTL: after a moment (wholeAfter), since who works for less than that has given
// it back by then. To hand it over for a TTL at once would have a waiter who is dead, or
// cut off, cost one.
//
// Who leaves without the lock, or with it, where a release may still be on its way to nodes
// that have him in their queue, has each of them take him out, or the lock back if it was
// handed to him: whichever comes first there (leave.lua).

const (
	// wholeAfter is how long a lock that was handed over goes without an extension. An
	// extension costs as much as the release that follows.
	wholeAfter = 10 * time.Millisecond

	// grace is how long a waiter who was handed some nodes waits for the others: a release
	// reaches them one after another. Then he asks, and whoever asks may lose.
	grace = 8 * time.Millisecond
)

// longest is that of a message that is read: two names of processes, some numbers and a
// marker are less than half of it. Anybody may publish anything.
const longest = 1024

// A node bends a number to within wire.Clamp of its time, unless its counter is further ahead. That
// goes by the clocks of other nodes with a vote; where they differ by more than farAhead from
// one that has a vote, the waiter has the lock with its next attempt.
const farAhead = time.Hour

// A handing is a node's word that it has handed the lock to a waiter.
type handing struct {
	waiter       string
	try          int64
	nonce        string
	number, time int64
	mark         string
}

// parseHanding reads what release_usual.lua sends. It refuses numbers that the script does not
// send: no time, and one that is far from the time.
func parseHanding(message string) (h handing, ok bool) {
	if len(message) > longest {
		return handing{}, false
	}
	part := strings.Split(message, " ")
	if len(part) != 6 {
		return handing{}, false
	}
	try, nonce, ok := wire.ParseAttempt(part[1])
	if !ok {
		return handing{}, false
	}
	numbers := [3]int64{}
	for i := range numbers {
		n, err := strconv.ParseInt(part[2+i], 10, 64)
		if err != nil || n < 0 || n >= wire.MaxFence {
			return handing{}, false
		}
		numbers[i] = n
	}
	number, seconds, micros := numbers[0], numbers[1], numbers[2]
	if seconds >= wire.MaxFence/1_000_000 || micros >= 1_000_000 {
		return handing{}, false
	}
	h = handing{part[0], try, nonce, number, seconds*1_000_000 + micros, part[5]}
	return h, number > 0 && number >= h.time-wire.Clamp.Microseconds() && number <= h.time+farAhead.Microseconds()
}

// parseCall reads what wake in queue.lua sends: who is called, and for which slot; 0: for none.
// What is no message of ours calls, too, if it begins with a name: to call is to have somebody
// ask, and whoever was handed the lock with a number that is refused has it by asking.
func parseCall(message string) (name string, slot int64) {
	if len(message) > longest {
		return "", 0
	}
	name, number, _ := strings.Cut(message, " ")
	slot, err := strconv.ParseInt(number, 10, 64)
	if err != nil || slot < 0 {
		slot = 0
	}
	return name, slot
}

// handable reports whether the lock can be handed over: it is one key, held alone, and a
// lease is no longer than the TTL.
func (a *acquisition) handable() bool {
	return a.modes == string(wire.ModeX) && leaseOf(a.ttl) <= a.ttl
}

// tried is the last attempt for which the waiter can be handed the lock; 0: he never can.
// Under the mutex.
func (w *waiter) tried() int64 {
	if !w.want.handable() {
		return 0
	}
	return w.try
}

// take takes in that a node has handed over the lock, heard over a subscription that began
// then.
func (w *waiter) take(n *lane.Lane, h handing, began time.Time) {
	w.mu.Lock()
	asked, current := w.asked, w.isFor(h)
	w.mu.Unlock()
	if !current {
		return
	}
	if began.After(asked) {
		w.hear(n.Index, 0) // the next attempt takes it over
		return
	}
	if !n.Vouches(h.mark, h.time, h.number, asked) {
		return
	}
	w.mu.Lock()
	news := w.isFor(h) && w.nodes[n.Index].handed == 0
	if news {
		w.nodes[n.Index].handed = h.number
		w.vouch(n.Index)
	}
	w.mu.Unlock()
	if news {
		w.call()
	}
}

// isFor reports whether the lock was handed over for the last attempt. Under the mutex.
func (w *waiter) isFor(h handing) bool { return h.try == w.try && h.nonce == w.nonce }

// vouch has a node count for the lock that the waiter has been handed meanwhile, if it hands
// it over, too. Under the mutex.
func (w *waiter) vouch(i int) {
	if w.has == nil || !w.nodes[i].mine() {
		return
	}
	w.has.mu.Lock()
	defer w.has.mu.Unlock()
	if w.has.rounds == 0 { // else an extension may have filled it up
		w.has.filled[i] = 0
	}
}

// accept makes a lock of what the waiter was handed. Nil: it is no quorum, or of no use any
// more, and the next attempt, or quit, sees to it.
func (w *waiter) accept(ctx context.Context, as string) *Lock {
	lk, a := w.hall.locker, w.want
	w.mu.Lock()
	votes, number, same := 0, int64(0), 0
	for _, s := range w.nodes {
		if !s.mine() {
			continue
		}
		votes++
		switch {
		case s.handed > number:
			number, same = s.handed, 1
		case s.handed == number:
			same++
		}
	}
	if votes < lk.opts.Quorum || w.done { // done: the nodes have been asked to take it back (quit)
		w.mu.Unlock()
		return nil
	}
	l := lk.newLock(a, 0, wire.HandoffToken(w.name, w.try, w.nonce))
	l.as, l.handed, l.claim.Fence = as, true, number
	l.claim.Waiter, l.claim.Ticket, l.claim.Lease, l.claim.Try = w.name, w.ticket, leaseOf(a.ttl).Milliseconds(), w.try
	asked := w.asked
	l.filled, l.claim.Reached = make([]int32, len(w.nodes)), w.reached
	l.claim.HandedOver(func(i int) bool { return w.nodes[i].mine() })
	for i, s := range w.nodes {
		if !s.mine() {
			// He may be in the queue there, or be handed the lock at any moment. That is like a
			// node that is filled up: it may have forgotten who else has the lock, or a higher
			// number (HAND_EXTENDED, HAND_RAISED in docs/model). See counts.
			l.filled[i] = 1
		}
	}
	w.mu.Unlock()
	now := lk.opts.Clock.Now()
	if same < lk.opts.Quorum && lk.raise(ctx, l, now, lk.nodeTimeout(a.ttl)) != nil {
		return nil
	}
	now = lk.opts.Clock.Now()
	lease := leaseOf(a.ttl)
	valid := lease - lk.opts.drift(lease)
	if elapsed(asked, now) > valid-beat(a.ttl) || ended(ctx) != nil || lk.isClosing() {
		return nil
	}
	w.mu.Lock()
	w.done, w.has = true, l // he leaves the queues with the lock's release
	w.mu.Unlock()
	l.since, l.until = now, asked.Add(valid)
	if a.maxHold != nil {
		if l.last = now.Add(*a.maxHold); l.last.Before(l.until) {
			l.until = l.last
		}
	}
	l.renewed = a.renewed
	l.course = w.course
	if !a.renewed {
		l.mu.Lock()
		l.whole = time.AfterFunc(wholeAfter, l.makeWhole)
		l.mu.Unlock()
		return l
	}
	// Whoever has it renewed has more to do than that, and may go by Until, as a command
	// does that is to be ended before its lock. Another trip is nothing to him; and if it
	// fails, it is tried again, like any renewal. But where MaxHold is about as short as a
	// trip, the lock would be over before he had it, and his place lost.
	if !l.spent() {
		_ = l.extend(ctx, nil)
		if l.why() != nil || ended(ctx) != nil || lk.isClosing() || left(l.Until(), lk.opts.Clock.Now()) <= 0 {
			if _, ok := l.end(errReleased); ok {
				l.giveBack()
			}
			w.waitOn()
			return nil
		}
	}
	l.makeWhole()
	return l
}

// waitOn is after a lock that the waiter was handed has come to nothing: its end has it heard
// no more (deafen), and the waiter is to hear of the next.
func (w *waiter) waitOn() {
	w.mu.Lock()
	w.has = nil
	w.mu.Unlock()
	w.hall.speaks(w)
}

// makeWhole has a lock that was handed over extended to its full TTL, and from then on if
// it is to be renewed.
func (l *Lock) makeWhole() {
	if !l.renewed {
		l.locker.opts.host.Woke(sim.Alarm, l.alias(), 1)
	}
	l.deafen()
	l.keep(!l.renewed)
}

// deafen has no more heard of nodes that hand the lock over.
func (l *Lock) deafen() {
	h := l.locker.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.voices, l.claim.Waiter)
}

// leavesFree draws whether the lock is free for a moment when it is released, and who waits
// is called. Else clients that are no redlock, which only take what they find free, would
// never have it while ours go on waiting for it. It is so with one lock of sixteen that were
// handed over; and with one of four while there are such clients, as their locks show.
func (l *Lock) leavesFree() bool {
	if !l.handed {
		return false
	}
	share := 1. / 16
	if l.locker.hall.hasMet(l.locker.opts.Clock.Now()) {
		share = 1. / 4
	}
	return l.locker.opts.host.Jitter() < share
}

// brief reports whether the lock was handed over, and has not been extended since.
func (l *Lock) brief() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handed && l.confirmed == 0
}
