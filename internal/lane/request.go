package lane

import (
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// A Request is one step for one claim at one node.
type Request struct {
	Op       wire.Op
	Claim    *Claim
	Deadline time.Time // after it the answer is no longer wanted; zero: none. The lane sets that of a release
	Reply    wire.Reply
	To       Recipient // gets the request back once, with the reply filled in
	Ticket   int64     // acquire: the waiter's; 0: the client will not wait; Ours: the caller has the lock
	Args     []string  // choose, merge: of the script
	Said     any       // choose, merge: what it has replied

	Native  bool // extend, release: try it without the script, if the server can do that (wire.NativeAnswer)
	Open    bool // Native: the answer has left it open, and the script is to be sent
	Waited  bool // Native: released, and other clients may wait: they are to be called (wire.Wake)
	reloads int  // how often it was sent again to a server that did not know its script

	Shown string            // extend: the marker, read after the extension
	By    *wire.Description // by which it counts; nil: the nodes keep none

	// What the lane adds before the request is sent.
	Number int64  // acquire: the proposed fence
	Latest int64  // acquire, yield: the node's time, in microseconds, after which it refuses; plain: after which it has no vote
	Mark   string // acquire, inspect: the node's marker if it has not forgotten
}

// unknown reports whether the server did not know the script, or the marker: it was
// restarted, or lost its data, or only its scripts.
func (q *Request) unknown() bool {
	return q.Reply.Err != nil && (q.Reply.Err == wire.ErrForgot || q.Reply.Err == wire.ErrMoved || q.Reply.Err == wire.ErrNoScripts || redis.HasErrorPrefix(q.Reply.Err, "NOSCRIPT"))
}

// Ours is the ticket of a refill: the caller has the lock, and puts it on one more node.
const Ours = -1

// mayBePartial reports whether the node may have some of the claim's keys, and not all: the request extends or refills a
// lock of several keys that was sent there. Then neither that the lock is gone, nor that a refill is refused, says that
// nothing is left to release.
func (q *Request) mayBePartial(at presence) bool {
	return at == sent && len(q.Claim.Keys) > 1 && (q.Op == wire.Extend || q.Op == wire.Acquire && q.Ticket == Ours)
}

// Step is the script that the server runs for the request; or wire.Plain, which is none.
func (q *Request) Step() wire.Op {
	switch {
	case q.Op == wire.Release && q.Claim.KeepPlace:
		return wire.Yield
	case q.Op == wire.Release && q.Claim.Broken > 0:
		return wire.Break
	case q.Op == wire.Acquire && q.Claim.Plain && q.Ticket != Ours:
		return wire.Plain
	}
	return q.Op
}

// Counts reports whether a grant of it is a vote.
func (q *Request) Counts() bool {
	return q.Op == wire.Acquire || q.Op == wire.Extend || q.Op == wire.Raise
}

// Asks reports whether it is about no lock.
func (q *Request) Asks() bool {
	return q.Op == wire.Choose || q.Op == wire.Merge
}

// ReadPlain takes the answer to an acquire of plain commands.
func (q *Request) ReadPlain(p *wire.PlainAnswer) {
	q.Reply = p.Read(q.Claim.Token, q.Number, q.Latest, q.Mark)
}

// ReadNative takes the answer to an extension or a release without a script.
func (q *Request) ReadNative(a *wire.NativeAnswer) {
	switch {
	case q.Op == wire.Extend && a.Extended() > 0:
		q.Read(a.Extended(), nil)
	case q.Op == wire.Release && a.Done:
		q.Read(int64(1), nil)
		q.Waited = a.Waited()
	default:
		q.Open = true
	}
}

// Read takes the reply of the step's script.
func (q *Request) Read(value any, err error) {
	q.Reply = wire.Parse(q.Op, value, err)
	if q.Asks() {
		q.Said = value
		return
	}
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

// A Recipient receives the outcome of a request to a node. It must not block.
type Recipient interface{ Deliver(n *Lane, q *Request) }

// Nobody is the recipient of an answer that no caller waits for.
type Nobody struct{}

// Deliver drops the answer.
func (Nobody) Deliver(*Lane, *Request) {}

// A Claim is one attempt at one lock, as the nodes see it.
type Claim struct {
	Key   string // the key of the lock's name: requests about one key are sent in order
	Token string
	TTL   time.Duration

	// All keys, and a letter for the mode of each (wire.Mode). For a slot, its number and the
	// number of slots; 0: the lock is no slot.
	Keys        []string
	Modes       string
	Slot, Slots int64

	// For the scripts: the TTL in milliseconds; and the waiter, and its lease.
	Millis    int64
	Waiter    string
	Ticket    int64     // 0: the client does not wait
	KeepPlace bool      // the attempt has failed, but the waiter will ask again
	RetryBy   time.Time // by then
	Before    *Claim    // the attempt before, which has failed; nil: there was none. Only the goroutine that attempts reads and writes it
	Lease     int64

	Plain bool // it is acquired by plain commands: wire.Plain

	Broken int64 // a release is a break (wire.Break), and the node notes it for so many milliseconds; 0: it is none

	// The proposed fence, the same at all nodes, 0 for a shared lock (vote.Node); and
	// the fence that the lock got, which is set before the raise, if there is one.
	Proposal, Fence int64
	Ahead           time.Duration // by how much the fence may be ahead of the time

	// places has, for each node, whether the token may be there.
	places Places
}

// Span makes the claim absent from all nodes, of which there are n now. Without it, a claim can ask nodes, and take
// nothing and give nothing back.
func (c *Claim) Span(n int) { c.places = make(Places, max(n, 1)) }

// Places is how many places the claim has. Each notes for one node whether the token may be there. Those that no node uses yet
// are counted, and those of lanes that have ended.
func (c *Claim) Places() (n int) {
	c.places.each(func(*place) bool { n++; return false })
	return n
}

// Found records that the token is at a node, as another client has told. It may only be called
// before the claim is in any request.
func (c *Claim) Found(n *Lane) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.put(c, sent)
}

// ReadOnly gives a claim by which the key can be looked at, and nothing is taken or given back.
func (c *Claim) ReadOnly() *Claim { return &Claim{Key: c.Key, Keys: c.Keys[:1]} }

// Joined gives a copy that is in no request of its own.
func (c *Claim) Joined() Claim { return *c }

// A presence says whether a node may have a claim's token.
type presence uint8

const (
	absent    presence = iota // never sent there, refused, or given back
	queued                    // the acquire was accepted, and was never written
	inFlight                  // the acquire went out
	sent                      // the acquire was answered, or got lost: the token is there, or may be
	releasing                 // a release is in the lane, or owed
)

// gone is the time after which a release that is asked for now is not sent any more: two TTLs. A node that hung may carry
// out an acquire by the script within its deadline, and an extension while the token is there, which then stays for a last
// TTL. An acquire of plain commands has no deadline at the node. One that is carried out later still, at a node that hung
// or whose connection was given up, leaves the token there for a TTL if the release had not been written behind it, and
// is no vote.
func (c *Claim) gone(now time.Time) time.Time { return now.Add(2 * c.TTL) }

// Places has what is known of a claim at each node: one place for each lane that has something to
// note. There is no limit to the nodes that become members while a lock is held or waited for, so a lane takes a
// place when it needs one: a free one, that of a lane that has ended, or a new one. So there are no more places than
// lanes that live at the same time, or there were nodes when the places were made.
//
// A place belongs to one lane, and a lane leads to one node as long as it lives. Only a goroutine that has the mutex
// of that lane reads or writes the place. So nothing that is known of one node ever counts for, or against, another
// one: a lane that takes over a place finds its owner by the pointer, and put overwrites what the owner noted. The
// lane before has ended (Lane.ended): none of its goroutines run, its answers have been delivered, and it looks at no
// place any more (admit).
//
// A copy of the slice has the same places.
type Places []place

type place struct {
	lane atomic.Pointer[Lane] // whose place it is; nil: nobody's yet
	at   presence
	next atomic.Pointer[place] // of the last one of the slice: those that were made later
}

// each calls f for all places until it reports true.
func (ps Places) each(f func(*place) bool) *place {
	for i := range ps {
		if f(&ps[i]) {
			return &ps[i]
		}
	}
	if len(ps) == 0 {
		return nil
	}
	for p := ps[len(ps)-1].next.Load(); p != nil; p = p.next.Load() {
		if f(p) {
			return p
		}
	}
	return nil
}

// find gives the place of a lane; nil: it has none. Under the lane's mutex.
func (ps Places) find(n *Lane) *place {
	return ps.each(func(p *place) bool { return p.lane.Load() == n })
}

// take gives the place of a lane, which may still have what another lane noted there: put overwrites it. Under the
// lane's mutex.
func (ps Places) take(n *Lane) *place {
	if p := ps.find(n); p != nil {
		return p
	}
	p := ps.each(func(p *place) bool {
		before := p.lane.Load()
		return (before == nil || before.ended.Load()) && p.lane.CompareAndSwap(before, n)
	})
	if p != nil {
		return p
	}
	p = new(place)
	p.lane.Store(n)
	for last := &ps[len(ps)-1]; !last.next.CompareAndSwap(nil, p); {
		last = last.next.Load()
	}
	return p
}

// at is whether the node may have the token. Under the mutex.
func (n *Lane) at(c *Claim) presence {
	if p := c.places.find(n); p != nil {
		return p.at
	}
	return absent
}

// put records that. Under the mutex.
func (n *Lane) put(c *Claim, at presence) {
	if n.at(c) != at {
		c.places.take(n).at = at
	}
}
