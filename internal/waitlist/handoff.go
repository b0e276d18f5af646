package waitlist

import (
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// A release hands the lock to the first waiter in the same step: each node puts the waiter's token
// in the place of the old one and sends a message (handoff.lua). A waiter that gets the message
// from a quorum of nodes has the lock, one trip after its release, and no client asks again. The
// message is a vote like any other, except that the reply comes long after the request, which was
// the refused attempt:
//
//   - The token is of that attempt (Claim.Try): no request that is still under way for an earlier
//     one can take it away, and what is handed over for an earlier one is not counted. The next
//     attempt takes over what was handed to the one before it (acquire.lua), which counts for
//     nothing from then on.
//   - Token and message have a nonce, the attempt's own token, which the attempt left in the node's
//     queue. So a message with the nonce is genuine: a user that may publish, and cannot read the
//     queue, does not know it, nor does one that has received the messages for other attempts.
//   - It counts if it came over a subscription that stood when the attempt was sent. A virtual
//     machine that was copied goes on twice, in the same attempt; but one of the two at most has the
//     connections that there were, and from their next attempts on they differ.
//   - A node had a vote when it refused, and still has one, going by its marker and its time in the
//     message (lane.CanVote); and the script is for one server process.
//   - The node keeps the token for as long as the waiter's lease counts there, which began after the
//     attempt was sent. So validity is what is left of that, as if the lease were the TTL.
//
// So the lock is valid for about two heartbeats at first, and then extended like any other. Handing
// it over for a whole TTL would cost a TTL if the waiter is dead or cut off.
//
// A waiter leaves, with the lock or without, while a release may be under way to nodes that have it
// in their queue. Each of these nodes takes it out, or takes the lock back if it was handed over:
// whichever comes first there (leave.lua).

// maxMessage bounds the length of a message: two names of processes, some numbers and a marker are
// less than half of it. A longer one is ignored, since any client may publish anything.
const maxMessage = 1024

// maxAhead is how far a fence may be ahead of the time in its message. A node moves a fence to within
// wire.Clamp of its time, unless its counter is further ahead. The counter goes by the clocks of
// other nodes with a vote; if these differ by more than maxAhead from this node's, the waiter gets
// the lock with its next attempt.
const maxAhead = time.Hour

// A handoff is a node's message that it has handed the lock to a waiter.
type handoff struct {
	waiter       string
	try          int64
	nonce        string
	number, time int64
	mark         string
}

// parseHandoff reads what handoff.lua sends. It refuses numbers that the script does not
// send: no time, and one that is far from the time.
func parseHandoff(message string) (h handoff, ok bool) {
	if len(message) > maxMessage {
		return handoff{}, false
	}
	part := strings.Split(message, " ")
	if len(part) != 6 {
		return handoff{}, false
	}
	try, nonce, ok := wire.ParseAttempt(part[1])
	if !ok {
		return handoff{}, false
	}
	numbers := [3]int64{}
	for i := range numbers {
		n, err := strconv.ParseInt(part[2+i], 10, 64)
		if err != nil || n < 0 || n >= wire.MaxFence {
			return handoff{}, false
		}
		numbers[i] = n
	}
	number, seconds, micros := numbers[0], numbers[1], numbers[2]
	if seconds >= wire.MaxFence/1_000_000 || micros >= 1_000_000 {
		return handoff{}, false
	}
	h = handoff{part[0], try, nonce, number, seconds*1_000_000 + micros, part[5]}
	return h, number > 0 && number >= h.time-wire.Clamp.Microseconds() && number <= h.time+maxAhead.Microseconds()
}

// parseCall reads what wake in queue.lua sends: the waiter that is called, and the free slot; 0:
// none. A message of another form calls, too, if it begins with a name: a call only leads to an
// attempt, and a waiter whose handoff is refused for its number gets the lock by an attempt.
func parseCall(message string) (name string, slot int64) {
	if len(message) > maxMessage {
		return "", 0
	}
	name, number, _ := strings.Cut(message, " ")
	slot, err := strconv.ParseInt(number, 10, 64)
	if err != nil || slot < 0 {
		slot = 0
	}
	return name, slot
}

// handoffTry is the last attempt, if the lock can be handed over to it; 0: the lock cannot be. It can
// be if it is one key in exclusive mode, the lease is no longer than the TTL, and the waiter is no contender. Under the mutex.
func (w *Waiter) handoffTry() int64 {
	if w.want.Modes != string(wire.ModeX) || Lease(w.want.TTL) > w.want.TTL || w.want.Contender != nil {
		return 0
	}
	return w.try
}

// onHandoff takes in that a node has handed over the lock, by a message over a subscription that
// began at that time.
func (w *Waiter) onHandoff(n *lane.Lane, h handoff, began time.Time) {
	w.mu.Lock()
	asked, current, by := w.asked, w.isFor(h), w.view.Description
	w.mu.Unlock()
	if !current {
		return
	}
	if began.After(asked) {
		w.onFree(n, 0) // the next attempt takes it over
		return
	}
	if !n.CanVote(by, h.mark, h.time, h.number, asked) {
		return
	}
	w.mu.Lock()
	s := w.node(n)
	news := w.isFor(h) && s != nil && s.handed == 0
	if news {
		s.handed = h.number
	}
	lock, vote := w.lock, news && s.mine()
	w.mu.Unlock()
	if vote && lock != nil {
		lock.LateVote(n)
	}
	if news {
		w.signal()
	}
}

// isFor reports whether the lock was handed over for the last attempt. Under the mutex.
func (w *Waiter) isFor(h handoff) bool { return h.try == w.try && h.nonce == w.nonce }

// A Grant is a lock that a quorum of nodes has handed to a waiter.
type Grant struct {
	Token  string
	Fence  int64
	Stored bool      // by a quorum of nodes; otherwise it is yet to be raised
	Asked  time.Time // when the attempt left for which the waiter was handed the lock

	waiter *Waiter
	votes  []*lane.Lane
	try    int64
}

// Grant returns what the waiter was handed. It reports false if that is no quorum, or the nodes
// have been asked to take it back (Withdraw).
func (w *Waiter) Grant() (g Grant, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := 0
	for i, n := range w.view.Lanes {
		s := &w.nodes[i]
		if !s.mine() {
			continue
		}
		g.votes = append(g.votes, n)
		switch {
		case s.handed > g.Fence:
			g.Fence, same = s.handed, 1
		case s.handed == g.Fence:
			same++
		}
	}
	if len(g.votes) < w.view.Quorum || w.done {
		return Grant{}, false
	}
	g.Token, g.Stored, g.Asked = wire.HandoffToken(w.name, w.try, w.nonce), same >= w.view.Quorum, w.asked
	g.waiter, g.try = w, w.try
	return g, true
}

// Claim makes c, which has the grant's token, a claim of the waiter.
func (g *Grant) Claim(c *lane.Claim) {
	g.waiter.mark(c, g.try)
	c.HandedOver(g.votes)
}

// Votes gives the nodes that have handed the lock over. At the others the waiter may be in the
// queue, or be handed the lock at any moment.
func (g *Grant) Votes() []*lane.Lane { return g.votes }

// A Lock is what the caller has made of a Grant.
type Lock interface {
	// LateVote is called when one more node has handed the lock over.
	LateVote(n *lane.Lane)

	// Ended reports whether the lock has ended.
	Ended() bool
}

// Promote ends the waiting: the waiter was handed this lock, and the lock's release takes it out of
// the queues. More nodes may hand the lock over until Forget.
func (w *Waiter) Promote(l Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done, w.lock = true, l
}

// Resume is called when the lock has failed: the waiter receives messages again.
func (w *Waiter) Resume() {
	w.mu.Lock()
	w.lock = nil
	w.mu.Unlock()
	w.Activate()
}
