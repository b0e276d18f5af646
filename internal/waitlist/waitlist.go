// Package waitlist keeps the waiters of this process, and what each node has told them. It knows requests and lanes (a
// lane is the client's ordered queue of requests to one node), and neither locks nor rounds: the caller makes the
// attempts, and passes the nodes' answers to the waiter.
//
// A waiter is in the queue of every node that has refused its attempt, from the instant of the refusal on. Its ticket
// is the same at all nodes: the time at which it came. No node grants the lock to another client while a waiter with a
// lower ticket is in its queue (wire.Queue.Admits). When an attempt fails, so many nodes have refused it that each
// quorum contains one of them; and where it was granted, the waiter gives the grant back for a place in the queue
// (yield.lua). So no later client can overtake.
//
// A release calls the first waiter of each node's queue, and no other. A waiter tries again when the nodes that may
// grant to it make a quorum: those that had granted and got the grant back, and those that have since said that they
// are free. It does not rely on messages alone: a waiter counts in a queue from one heartbeat to the next, and each
// heartbeat is an attempt like the first. That attempt keeps the place, it finds out what no message has told (a
// message was lost, a key expired, the waiter before it is dead), and it gets the lock if it is free.
//
// A message decides nothing: it leads to an attempt, and the keys on the nodes decide. So it needs no proof of origin.
//
// A ticket is as good as what the client knows of the nodes' clocks. A client that has just begun, or has heard from
// the nodes only through a stall, knows little: its ticket would be by its own clock, or off by half the stall, and it
// would keep that ticket, behind all that come in that time or before all that came. So its first attempt is made
// without a place in the queues (Ready). The answers tell the time, and the next attempt enters.
//
// The tickets end split votes. Waiters that split the votes have all refused each other's nodes, so each is in the
// queue where it was not granted. When all have given back, the waiter with the lowest ticket is the first at all nodes
// but those that had granted to it, and those are free to it as well.
package waitlist

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

const (
	minHeartbeat = 100 * time.Millisecond
	maxHeartbeat = wire.MaxLease * time.Millisecond / 3

	// Linger is how long subscriptions are kept after the last waiter.
	Linger = 5 * time.Second
)

// Heartbeat returns the longest time between two attempts of a waiter for a lock with this TTL: a third of Lease.
func Heartbeat(ttl time.Duration) time.Duration { return min(max(ttl/10, minHeartbeat), maxHeartbeat) }

// Lease returns for how long a waiter for a lock with this TTL counts in a node's queue after an attempt.
func Lease(ttl time.Duration) time.Duration { return 3 * Heartbeat(ttl) }

// A Config says what a List works with. All fields are set.
type Config struct {
	Lanes       *set.Set      // the nodes, and how many make a quorum
	NodeTimeout time.Duration // how long a request to leave a queue may wait in a lane
	Clock       lane.Clock
	Host        sim.Host // tokens and jitter
}

// A List has the waiting calls of a Locker. Calls that want the same lock, of the same kind, are in one local queue.
// The first of them is the active waiter: it alone makes attempts.
type List struct {
	cfg     Config
	process string // names this process; its waiters are named PROCESS.N

	mu         sync.Mutex // protects what follows, and Waiter.listens
	count      int        // how many waiters were made
	queues     map[string]*localQueue
	active     map[string]*Waiter  // by name, the waiters that receive messages
	listeners  int                 // how many waiters need the subscriptions, since they were refused
	subscribed map[*lane.Lane]bool // the nodes to which there are subscriptions
	ctx        context.Context     // of the subscriptions
	cancel     context.CancelFunc  // ends the subscriptions; nil: there are none
	idle       *time.Timer         // the timer that will end the subscriptions; nil: a waiter needs them, or there are none
	closed     bool
	running    sync.WaitGroup // the goroutines of the subscriptions
}

// A localQueue has the waiters of this process for one lock, the active one first.
type localQueue struct {
	waiters []*Waiter
	last    error // why the last attempt failed; nil: none has
}

func New(cfg Config) *List {
	return &List{cfg: cfg, subscribed: make(map[*lane.Lane]bool), queues: make(map[string]*localQueue), active: make(map[string]*Waiter)}
}

// A Want says for what a call waits.
type Want struct {
	Queue string // names the local queue: calls that want the same lock have the same one

	Key   string   // of the lock's name
	Keys  []string // all keys of the lock
	Modes string   // a letter for each of Keys: wire.Mode
	TTL   time.Duration
	Slots int64 // how many slots the semaphore has; 0: the lock has none

	Began time.Time // when the call came; zero: now

	// Contender is set for a call that tries once, and waits only until a split vote is settled. It makes its own
	// attempts, and receives no messages.
	Contender *wire.Contender
	Lease     time.Duration // for how long a contender counts in a queue after an attempt
}

// Enter puts a call at the end of the local queue (this process's calls for the same lock), and does not wait: the call may
// make attempts if the Waiter's Turn is nil, else when that is closed. want must not change. The caller must call Leave.
func (l *List) Enter(want *Want) *Waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enter(want, l.count+1)
}

// Replace moves w's call to the local queue for want, as it turns out to want something else. There it comes before the
// calls that came later than it did, but never before the first one, which makes attempts. Use the result instead of w,
// which has left, and wait for the result's Turn.
func (l *List) Replace(w *Waiter, want *Want) *Waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.enter(want, w.order)
	l.leave(w)
	return next
}

// enter makes a waiter, and puts it into its local queue by order, its number among the calls of this process, but
// behind the active one. Caller holds l.mu.
func (l *List) enter(want *Want, order int) *Waiter {
	if l.count++; l.count == 1 {
		l.process = l.cfg.Host.Token()
	}
	view := l.cfg.Lanes.View()
	w := &Waiter{
		list: l, want: want, order: order, name: l.process + "." + strconv.Itoa(l.count), arrived: l.cfg.Clock.Now(),
		wake: make(chan struct{}, 1), view: view, nodes: make([]nodeState, len(view.Lanes)), done: true,
	}
	if c := want.Contender; c != nil {
		w.name, w.ticket = c.Waiter(), c.Ticket
	}
	if !want.Began.IsZero() {
		w.arrived = want.Began
	}
	q := l.queues[want.Queue]
	if q == nil {
		q = new(localQueue)
		l.queues[want.Queue] = q
	} else {
		w.turn = make(chan struct{})
		if ticket, good := l.cfg.Lanes.Ticket(w.arrived); good {
			w.early = ticket
		}
	}
	at := len(q.waiters)
	for at > 1 && q.waiters[at-1].order > order {
		at--
	}
	q.waiters = slices.Insert(q.waiters, at, w)
	return w
}

// Leave removes a waiter from its local queue (the waiters of this process for the lock), not from those of the nodes.
// If it was the active one, which alone makes attempts, the next one becomes that.
func (l *List) Leave(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(w)
}

// leave removes a waiter from its local queue, as Leave does. Caller holds l.mu.
func (l *List) leave(w *Waiter) {
	q := l.queues[w.want.Queue]
	i := slices.Index(q.waiters, w)
	q.waiters = slices.Delete(q.waiters, i, i+1)
	switch {
	case len(q.waiters) == 0:
		delete(l.queues, w.want.Queue)
	case i == 0:
		close(q.waiters[0].turn)
	}
	delete(l.active, w.name)
	if w.listens {
		if l.listeners--; l.listeners == 0 && l.cancel != nil {
			l.idle = time.AfterFunc(Linger, l.stopIdle)
		}
	}
}

// Failed records why an attempt of w, the first in its local queue, failed. Last returns that to the calls behind w.
func (l *List) Failed(w *Waiter, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queues[w.want.Queue].last = why
}

// Last returns why the last attempt in a waiter's local queue failed; nil: none has.
func (l *List) Last(w *Waiter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queues[w.want.Queue].last
}

// Close ends the subscriptions to nodes' messages, and waits for their goroutines. No subscription begins afterwards.
func (l *List) Close() {
	l.mu.Lock()
	l.closed = true
	if l.idle != nil {
		l.idle.Stop()
		l.idle = nil
	}
	cancel := l.cancel
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	l.running.Wait()
}

// listen subscribes to the messages of each member, at least until w leaves. After Close it does nothing.
func (l *List) listen(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if !w.listens {
		w.listens = true
		l.listeners++
		if l.idle != nil {
			l.idle.Stop()
			l.idle = nil
		}
	}
	if l.cancel == nil {
		l.ctx, l.cancel = context.WithCancel(context.Background())
		clear(l.subscribed)
	}
	for _, n := range l.cfg.Lanes.View().Lanes {
		if !l.subscribed[n] && !n.Retired() {
			l.subscribed[n] = true
			s, ctx := &subscription{list: l, node: n}, l.ctx
			l.running.Go(func() { s.run(ctx, script.WakeChannel+l.process) })
		}
	}
}

// stopIdle ends the subscriptions to the nodes' messages, unless a waiter needs them again. The idle timer calls it.
func (l *List) stopIdle() {
	l.mu.Lock()
	if l.idle == nil {
		l.mu.Unlock()
		return
	}
	cancel := l.cancel
	l.cancel, l.idle = nil, nil
	l.mu.Unlock()
	cancel()
}
