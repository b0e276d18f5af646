package waitlist

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Waiter is one call that waits for a lock. The goroutine of the call uses it; the lanes' goroutines call OnReply.
type Waiter struct {
	list    *List
	want    *Want
	order   int    // how many calls of the process had come with it: its rank in the local queue
	name    string // its name at the nodes
	arrived time.Time
	ticket  int64         // its rank at the nodes: when it came, by their clocks. The first Begin sets it; 0: it has been in no queue
	early   int64         // the same, as it was known when it came and was not the active one; 0: it was not known
	turn    chan struct{} // closed when it becomes the active one; nil: it was from the start
	wake    chan struct{} // gets a value when another attempt may succeed

	mu    sync.Mutex  // protects what follows
	view  *set.View   // the members of the set at the last attempt
	nodes []nodeState // one for each member of the view, in its order
	try   int64       // how many attempts it has made
	claim *lane.Claim // the last attempt, as the lanes know it
	slot  int64       // the free slot that a message has named; 0: none
	held  bool        // it has the lock
	done  bool        // it is in no queue, or has asked to be removed: before the first attempt, and after Withdraw

	listens bool // it counts in List.listeners; protected by list.mu
}

// A nodeState is what a waiter knows about its last attempt at a node. refused: the waiter is in the node's queue.
// granted: it is not. voteless: the node answered without a vote, and may have the waiter in its queue, by this attempt
// or by an earlier one. All three false: there is no answer yet. yields: the node has granted an earlier attempt since
// this one began, and puts the waiter into its queue when that grant is given back.
type nodeState struct {
	refused, granted, voteless, yields bool

	free bool // since the attempt began the node has said that the lock may be free
}

// Turn is closed when the waiter becomes the first of its local queue, and may try. Nil: it was from the start.
func (w *Waiter) Turn() <-chan struct{} { return w.turn }

// Name returns the waiter's name in the queues of the nodes.
func (w *Waiter) Name() string { return w.name }

// Secret returns the first part of the token of w's next attempt (the same until Begin), if w is a contender: a call that
// tries once, until a split vote is settled (Want.Contender). "": w is none: its tokens begin with a random part.
func (w *Waiter) Secret() string {
	if w.want.Contender == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.want.Contender.Secret(w.try + 1)
}

// Activate makes the nodes' messages for the waiter reach it. The active waiter calls it before its first attempt,
// since a node may call the waiter as soon as it has refused.
func (w *Waiter) Activate() {
	w.list.mu.Lock()
	defer w.list.mu.Unlock()
	w.list.active[w.name] = w
}

// Ready reports, before each attempt, whether the waiter may enter the nodes' queues: it has a ticket (its time of arrival
// by the nodes' clocks), or these are known well enough for one. false: make the attempt without a place in the queues.
//
// If the client's host was suspended since the waiter came, or its clock set, the time of arrival can no longer be told by
// the nodes' clocks. Then Ready sets the ticket that was known at arrival (early). Without that, the waiter counts as one
// that comes now, so that it is not in front of any that came earlier.
func (w *Waiter) Ready() bool {
	lanes := w.list.cfg.Lanes
	_, good := lanes.Ticket(w.arrived)
	if good || w.ticket > 0 {
		return true
	}
	if w.ticket = w.early; w.ticket > 0 {
		return true
	}
	now := w.list.cfg.Clock.Now()
	if _, good = lanes.Ticket(now); good {
		w.arrived = now
	}
	return good
}

// Listen subscribes to the nodes' messages, at least until the waiter leaves, and does not wait.
func (w *Waiter) Listen() { w.list.listen(w) }

// Begin prepares c, the claim of an attempt that is about to be sent: it puts the waiter's name, ticket and lease into
// c. It forgets messages and answers that came before: they are no news for this attempt.
func (w *Waiter) Begin(c *lane.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.wake:
	default:
	}
	w.done = false
	w.view = w.list.cfg.Lanes.View()
	w.nodes = slices.Grow(w.nodes[:0], len(w.view.Lanes))[:len(w.view.Lanes)]
	clear(w.nodes)
	if w.ticket == 0 {
		w.ticket, _ = w.list.cfg.Lanes.Ticket(w.arrived)
	}
	w.try++
	if w.claim != nil {
		w.claim.Before = nil // else each claim would keep all before it from the garbage collector
	}
	c.Before, w.claim = w.claim, c
	c.Waiter, c.Ticket, c.Lease = w.name, w.ticket, cmp.Or(w.want.Lease, Lease(w.want.TTL)).Milliseconds()
}

// OnReply takes a node's answer to the attempt of claim c. It notes what the last attempt got at the node; failures, and
// late answers to earlier attempts, change nothing of that. A waiter that no longer waits (done) would keep others waiting
// for a lease where it is still in a queue. So OnReply then removes it from the queue of a node that refuses; of a node that
// grants after the waiter has left without the lock, or grants an earlier attempt (a shared lock may be granted to both),
// since the grant is given back for a place in the queue; and of a node without a vote, which carries requests out like any
// other, and does not say what it has done.
func (w *Waiter) OnReply(n *lane.Lane, c *lane.Claim, status wire.Status) {
	granted, refused := status == wire.Granted, status == wire.Held || status == wire.Reserved
	voteless := status == wire.Quarantined || status == wire.Unfit || status == wire.Late
	if !granted && !refused && !voteless {
		return
	}
	w.mu.Lock()
	last := c == w.claim
	switch s := w.node(n); {
	case s == nil: // the node became a member after the attempt began; the next one counts it
	case last:
		s.granted, s.refused, s.voteless = granted, refused, voteless
	case granted:
		s.yields = true
	}
	late := w.done && (!granted || !w.held || !last)
	w.mu.Unlock()
	if late {
		w.dequeue(n)
	}
	w.signal()
}

// onFree takes the message that the lock, or this slot of it (0: none is named), may be free at a node. Only the first one
// from a node since the attempt wakes the waiter: each time it is woken, Rest begins anew to wait for the other nodes'
// messages, and a flood must not put off the next attempt. The slot of a later message counts.
func (w *Waiter) onFree(n *lane.Lane, slot int64) {
	w.mu.Lock()
	s := w.node(n)
	if s == nil { // the node is no member for this waiter: others of the process have subscribed to it
		w.mu.Unlock()
		return
	}
	news := !s.free
	s.free = true
	if slot > 0 && slot <= w.want.Slots {
		w.slot = slot
	}
	w.mu.Unlock()
	if news {
		w.signal()
	}
}

// FreeSlot returns the free slot of a semaphore that a message has named since the last call; 0: none.
func (w *Waiter) FreeSlot() (slot int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slot, w.slot = w.slot, 0
	return slot
}

// signal wakes the waiter (Rest) if the nodes that may grant it the lock now are a quorum. It takes w.mu.
func (w *Waiter) signal() {
	if enough, _ := w.tally(); enough {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// tally reports whether the nodes that may grant now (they granted the last attempt, or have said since that the lock may be
// free) are enough for a quorum; and whether all nodes that refused it have said that. It takes w.mu.
func (w *Waiter) tally() (enough, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	free, refused := 0, 0
	for i := range w.nodes {
		switch s := &w.nodes[i]; {
		case s.granted, s.free:
			free++
		case s.refused:
			refused++
		}
	}
	return free >= w.view.Quorum, refused == 0
}

// node returns what the waiter knows of its last attempt at a node; nil: the node was no member then. A late message of
// a lane that was retired since never counts as another node's. Caller holds w.mu.
func (w *Waiter) node(n *lane.Lane) *nodeState {
	if i := w.view.At(n); i >= 0 {
		return &w.nodes[i]
	}
	return nil
}

// A Pause says how long a waiter rests after an attempt.
type Pause struct {
	Held    bool          // other clients have the lock; false: no message helps
	Longest time.Duration // the next attempt is due after it
	Hold    time.Duration // messages have no effect before it is over
	Round   time.Duration // how long the last attempt took
	Key     string        // identifies this pause for a simulator: the token of the last attempt
}

// Rest waits until the next attempt is due. called: messages say that a quorum of nodes may be free. Both false:
// p.Longest is over. stopped: ctx has ended, or closing was closed, and no attempt must follow.
func (w *Waiter) Rest(ctx context.Context, closing <-chan struct{}, p Pause) (called, stopped bool) {
	begin := time.Now()
	timer := time.NewTimer(p.Longest)
	defer timer.Stop()
	for over := false; !over; {
		switch enough, all := w.tally(); {
		case !p.Held:
		case enough && all && p.Hold == 0:
			return true, false
		case enough:
			// A release reaches the nodes one after another: the other nodes' messages are about to come, and they would
			// refuse an attempt that reaches them before the release.
			called = true
			timer.Reset(min(max(p.Round/2, p.Hold-time.Since(begin)), p.Longest))
		}
		select {
		case <-w.wake:
		case <-timer.C:
			over = true
		case <-ctx.Done():
		case <-closing:
		}
		// If several of these cases are ready, it must not matter which one select has taken: look at each again.
		w.list.cfg.Host.Woke(sim.Caller, p.Key, -1)
		select {
		case <-closing:
			return called, true
		default:
		}
		if ctx.Err() != nil {
			return called, true
		}
		select {
		case <-timer.C:
			over = true
		default:
		}
	}
	return called, false
}

// Withdraw removes the waiter from the nodes' queues, without waiting; a second call before the next attempt does nothing.
// If it has the lock (held), only at nodes that refused, have no vote, or yield (nodeState). Else at each, after the
// releases of its grants were submitted: giving back a grant puts the waiter into the queue. OnReply removes it where
// answers come later.
func (w *Waiter) Withdraw(held bool) {
	w.mu.Lock()
	if w.done {
		w.mu.Unlock()
		return
	}
	w.held, w.done = held, true
	var in []*lane.Lane
	for i, n := range w.view.Lanes {
		if s := &w.nodes[i]; s.refused || s.voteless || s.yields || !held {
			in = append(in, n)
		}
	}
	w.mu.Unlock()
	for _, n := range in {
		w.dequeue(n)
	}
}

// dequeue sends the request that removes the waiter from a node's queue. If the request does not reach the node within
// NodeTimeout, the waiter stays there until its lease ends.
func (w *Waiter) dequeue(n *lane.Lane) {
	cfg := &w.list.cfg
	now := cfg.Clock.Now()
	c := &lane.Claim{Key: w.want.Key, Keys: w.want.Keys, Modes: w.want.Modes, Waiter: w.name, Ticket: w.ticket}
	n.Submit(&lane.Request{Op: wire.Leave, Claim: c, Deadline: now.Add(cfg.NodeTimeout), To: lane.Nobody{}}, now)
}
