package lane

import (
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// A Request is one step for one claim at one node.
type Request struct {
	Op       wire.Op
	Claim    *Claim
	Deadline time.Time // nobody wants the answer after it; zero: send it whenever possible. That of a release is the lane's
	Reply    wire.Reply
	To       Recipient // told once, with the reply filled in
	Ticket   int64     // acquire: the waiter's; 0: nobody will wait; Ours: the caller has the lock
	Next     int64     // release: the number proposed for the next holder; 0: the lock is not handed over

	// What the lane adds before the request is sent.
	Number int64  // acquire: the one that is proposed
	Latest int64  // acquire, yield: after this time of the node's, in microseconds, it is refused
	Mark   string // acquire, inspect: what the node's marker is if it has not forgotten
}

// Ours is the ticket of a lock that is to be at one more node.
const Ours = -1

// Step is what the server is asked to do.
func (q *Request) Step() wire.Op {
	if q.Op == wire.Release && q.Claim.KeepPlace {
		return wire.Yield
	}
	return q.Op
}

// Read takes the reply of the step's script.
func (q *Request) Read(value any, err error) {
	q.Reply = wire.Parse(q.Op, value, err)
	if q.Reply.Fence == wire.AsProposed {
		q.Reply.Fence = q.Number
	}
	switch {
	case q.Op != wire.Acquire:
	case q.Reply.Status == wire.Granted:
		q.Reply.Mark = q.Mark // or it would not have granted
	case q.Reply.Status == wire.Late && q.Reply.Mark != q.Mark && q.Mark != "":
		q.Reply.Status, q.Reply.Err = wire.Quarantined, wire.ErrForgot
	}
}

// A Recipient is told what became of a request to a node. It must not block.
type Recipient interface{ Deliver(node int, q *Request) }

// Nobody wants the answer: the caller has been told that there was none.
type Nobody struct{}

// Deliver drops it.
func (Nobody) Deliver(int, *Request) {}

// A Claim is one attempt at one lock, as the nodes see it.
type Claim struct {
	Key   string // of the lock's name: requests about one key are sent in order
	Token string
	TTL   time.Duration

	// All keys, and a letter for the mode of each (wire.Mode). Of a slot, which one it is
	// of how many; 0: it is none.
	Keys        []string
	Modes       string
	Slot, Slots int64

	// For the scripts: the TTL in milliseconds; and the waiter, and its lease.
	Millis    int64
	Waiter    string
	Ticket    int64     // 0: nobody waits
	KeepPlace bool      // the attempt has failed, but the waiter will ask again
	RetryBy   time.Time // by then
	Lease     int64
	Try       int64 // the attempt for which the waiter can be handed the lock; 0: it cannot

	// The number that is proposed for the lock, the same at all nodes, 0 if it is only read
	// under the lock (incarnation.floor); and the one that it came to be: set before the
	// raise, if there is one.
	Proposal, Fence int64
	Ahead           time.Duration // by how much it may be ahead of the time

	// at says where the token may be, node by node. Each element belongs to its node's lane
	// and is guarded by the lane's mutex.
	at []presence

	// elsewhere is the presence of a claim of which a node says that it does not have the
	// token: absent; or due, if the waiter was handed the lock by other nodes.
	elsewhere presence

	// Reached are the nodes that may have the waiter in their queues; nil: nobody waits.
	Reached Reached
}

// Reached says, node by node, whether an acquire of a waiter's has ever gone out. Where none
// has, no queue has the waiter in it, and nothing is handed over. All claims of a waiter share
// it. Each element is guarded by its lane's mutex.
type Reached []bool

// Span has the claim be at none of n nodes, as yet.
func (c *Claim) Span(n int) { c.at = make([]presence, n) }

// Found notes that the token is at a node, by the word of another client. Only before the claim
// is in any request.
func (c *Claim) Found(node int) { c.at[node] = sent }

// HandedOver notes at which nodes the waiter has been handed the lock. At the others the token
// may appear at any moment. Only before the claim is in any request.
func (c *Claim) HandedOver(there func(node int) bool) {
	c.elsewhere = due
	for i := range c.at {
		if c.at[i] = due; there(i) {
			c.at[i] = sent
		}
	}
}

// Joined gives a copy that is in no request of its own.
func (c *Claim) Joined() Claim { return *c }

// A presence says whether a node may have a claim's token.
type presence uint8

const (
	absent    presence = iota // never sent there, refused, or given back
	due                       // another's release may hand the lock over there, if the waiter was in the queue
	queued                    // the acquire waits in the lane, or was dropped there
	inFlight                  // the acquire went out
	sent                      // and was answered, or has got lost: the token is there, or may be
	releasing                 // a release is in the lane, or owed
	dequeuing                 // it was due, or queued, when it was released: a leave is in the lane, or owed
)

// mayWait reports whether a node may have the waiter in its queue, or have handed the lock
// over since. Under the lane's mutex.
func (c *Claim) mayWait(i int) bool { return c.Reached != nil && c.Reached[i] }

// gone is by when no node has a token any more that is released now, whatever got lost.
// An acquire or extension that left before may be carried out after the release was sent, by
// a node that hung; the acquire only within its own deadline, and the extension only
// while the token stands, which then stands for a last TTL. A waiter's lease counts as a TTL
// does, and is the longer of the two where the TTL is very short.
func (c *Claim) gone(now time.Time) time.Time {
	return now.Add(2 * max(c.TTL, wire.Milliseconds(c.Lease)))
}
