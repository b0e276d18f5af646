package lane

import (
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// A Request is one step (acquire, extend, release …) of one claim at one node.
type Request struct {
	Op       wire.Op
	Claim    *Claim
	Deadline time.Time // after it nobody wants the answer; zero: none. The lane sets that of a release
	Reply    wire.Reply
	To       Recipient // gets the request back once, with Reply set, unless Submit has answered it
	Ticket   int64     // acquire: the waiter's rank in the node's queue; 0: the client will not wait; Ours: a refill
	Args     []string  // choose, merge: the script's arguments
	Said     any       // choose, merge: the script's reply

	Native  bool // extend, release: try first a command without a script, if the server has one (wire.NativeAnswer)
	Open    bool // the answer to that command settles nothing: the script must follow
	Waited  bool // that command has released the lock, and other clients may wait: they are to be called (wire.Wake)
	reloads int  // how often it was sent again to a server that did not know its script

	Shown string            // extend: the node's marker (a key that shows that it lost no data), read after the extension
	By    *wire.Description // the description of the set under which the client counts the answer; nil: the nodes keep none

	// Node.Bind sets these before the request is sent.
	Number int64  // acquire: the proposed fence
	Latest int64  // microseconds of the node's clock. Later, an acquire is refused (0: never), a plain one is no vote, a yield enters no queue
	Mark   string // acquire, inspect: the marker that the client knows, which the node still has if it lost no data
}

// unknown reports whether q's reply shows that the server lacks a script, or has another marker than the client knows (the
// key that shows that no data was lost).
func (q *Request) unknown() bool {
	return q.Reply.Err != nil && (q.Reply.Err == wire.ErrForgot || q.Reply.Err == wire.ErrMoved || q.Reply.Err == wire.ErrNoScripts || redis.HasErrorPrefix(q.Reply.Err, "NOSCRIPT"))
}

// Ours is the Ticket of a refill: the client has the lock, and puts its token on one more node.
const Ours = -1

// mayBePartial reports whether the node may have only some of the claim's keys: the lock has several, its token was sent
// there (at says so), and q extends it, or refills it (sets it again on a node that lost it). Then neither an answer that
// the lock is gone, nor the refusal of a refill, shows that nothing is left to release.
func (q *Request) mayBePartial(at presence) bool {
	return at == sent && len(q.Claim.Keys) > 1 && (q.Op == wire.Extend || q.Op == wire.Acquire && q.Ticket == Ours)
}

// Step returns what the server is to do for q: q.Op, or the variant (wire.Yield, Break, Plain) that q's claim asks for.
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

// Counts reports whether a grant of q can be a vote for a lock: q is an acquire, an extension or a raise (of the fence).
func (q *Request) Counts() bool {
	return q.Op == wire.Acquire || q.Op == wire.Extend || q.Op == wire.Raise
}

// Asks reports whether q is about the set of nodes, and about no lock: its reply goes to q.Said.
func (q *Request) Asks() bool {
	return q.Op == wire.Choose || q.Op == wire.Merge
}

// ReadPlain sets q.Reply from p, the node's answer to an acquire by plain commands, without a script.
func (q *Request) ReadPlain(p *wire.PlainAnswer) {
	q.Reply = p.Read(q.Claim.Token, q.Number, q.Latest, q.Mark)
}

// ReadNative takes a, the node's answer to an extension or a release without a script. If a settles the step, it sets
// q.Reply, and q.Waited if waiters must be called. If not, it sets only q.Open: the script must follow.
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

// Read sets q.Reply from value, the reply to q's script, or from err if not nil. If q.Asks, it also sets q.Said to value.
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
		q.Reply.Mark = q.Mark // the script grants only if the node has this marker
	case q.Reply.Status == wire.Late && q.Reply.Mark != q.Mark && q.Mark != "":
		q.Reply.Status, q.Reply.Err = wire.Quarantined, wire.ErrForgot
	}
}

// A Recipient gets each request back from its lane n, with q.Reply set. Deliver must not block.
type Recipient interface{ Deliver(n *Lane, q *Request) }

// Nobody is the Recipient of an answer that no caller waits for.
type Nobody struct{}

func (Nobody) Deliver(*Lane, *Request) {}

// A Claim is one attempt at one lock, as the nodes see it.
type Claim struct {
	Key   string // the key of the lock's name: requests about one key are sent in order
	Token string
	TTL   time.Duration

	// All keys, and a letter for the mode of each (wire.Mode). For a slot of a semaphore, its number and how many there are.
	Keys        []string
	Modes       string
	Slot, Slots int64

	// For the scripts: the TTL and the waiter's lease in milliseconds, and the waiter's name and rank in the queues.
	Millis    int64
	Waiter    string
	Ticket    int64 // 0: the client does not wait
	KeepPlace bool  // the attempt has failed, but the waiter will ask again, before RetryBy: a release keeps its place in the queue
	RetryBy   time.Time
	Before    *Claim // the waiter's attempt before, which failed; nil: none. Only the goroutine that attempts uses it
	Lease     int64

	Plain bool // acquired by plain commands: wire.Plain

	Broken int64 // a release is a break (wire.Break), which the node notes for so many milliseconds; 0: it is none

	// The proposed fence, the same at all nodes; 0 for a shared lock (vote.Node). And the fence that the lock got, which is
	// set before a raise (the second round, which stores it).
	Proposal, Fence int64
	Ahead           time.Duration // by how much the fence may be ahead of the nodes' clocks (see fence.go)

	// Whether the token may be there, for each node.
	places Places
}

// Span gives the claim n places, each to note of one node whether it may have the token (Places); as yet, none may. Call it
// once, before the first request. A claim without places can only ask nodes: it neither acquires nor releases.
func (c *Claim) Span(n int) { c.places = make(Places, max(n, 1)) }

// Places returns how many places (Span) the claim has. Those of no lane yet, and of lanes that have ended, count, too.
func (c *Claim) Places() (n int) {
	c.places.each(func(*place) bool { n++; return false })
	return n
}

// Found notes that n's node may have the token, acquired by another process. Call it before c's first request is submitted.
func (c *Claim) Found(n *Lane) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.put(c, sent)
}

// ReadOnly returns a new claim for the same key that can only look at it (Inspect), since it has neither token nor places.
func (c *Claim) ReadOnly() *Claim { return &Claim{Key: c.Key, Keys: c.Keys[:1]} }

// Joined returns a copy of the claim with the same places: what one notes of where the token is, the other sees.
func (c *Claim) Joined() Claim { return *c }

// A presence says whether a node may have a claim's token.
type presence uint8

const (
	absent    presence = iota // never sent there, refused, or released
	queued                    // the acquire is in the queue
	inFlight                  // the acquire was written
	sent                      // the acquire was answered, or got lost: the token is there, or may be
	releasing                 // a release is in the lane, or pending
)

// gone returns until when the lane sends a release again that is submitted at now: two TTLs. A node that hung may carry out
// an acquire by the script within its deadline, and an extension while the token is there, which then stays for a last TTL.
// An acquire of plain commands has no deadline at the node: a node that hung, or whose connection was given up, may carry it
// out after the two TTLs, with no release behind it. The token then stays for a TTL, and harms no lock, since it is no vote.
func (c *Claim) gone(now time.Time) time.Time { return now.Add(2 * c.TTL) }

// Places notes, for each node, whether a claim's token may be there: one place for each lane that has something to note. Any
// number of nodes may become members while a client holds or awaits a lock. So a lane takes a place when it needs one: a
// free one, that of a lane that has ended, or a new one. So there are no more places than lanes that live at the same time,
// or than nodes when Span made the places.
//
// A place belongs to one lane, and a lane leads to one node as long as it lives. Only a goroutine that has the mutex of that
// lane reads or writes what the place notes. So what is known of one node never counts for, or against, another one: a lane
// that takes over a place finds its owner by the pointer, and put overwrites what the earlier owner noted. The earlier owner
// has ended (Lane.ended): none of its goroutines run, its answers are delivered, and it looks at no place any more (admit).
//
// A copy of the slice has the same places.
type Places []place

type place struct {
	lane atomic.Pointer[Lane] // the owner; nil: none yet
	at   presence
	next atomic.Pointer[place] // of the last place of the slice: those that were made later
}

// each calls f with each place until f returns true, and returns that place; nil: f never returned true.
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

// find returns the place that belongs to lane n; nil: it has none. Caller holds n.mu.
func (ps Places) find(n *Lane) *place {
	return ps.each(func(p *place) bool { return p.lane.Load() == n })
}

// take returns the place that belongs to lane n. If it has none, it gets a free one (no lane's, or that of an ended one), or
// a new one. What an earlier owner noted is still there: the caller, put, overwrites it. Caller holds n.mu.
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

// at returns whether the lane's node may have c's token; absent if nothing is noted. Caller holds n.mu.
func (n *Lane) at(c *Claim) presence {
	if p := c.places.find(n); p != nil {
		return p.at
	}
	return absent
}

// put notes, in c's place for this lane, whether its node may have c's token (at). Caller holds n.mu.
func (n *Lane) put(c *Claim, at presence) {
	if n.at(c) != at {
		c.places.take(n).at = at
	}
}
