package lane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// errRetired is why a lane takes a request no more.
var errRetired = errors.New("it is no member of the set any more")

// A Lane is the way to one Redis server: an ordered queue of requests, and one connection. What is in the queue leaves in
// one write, up to maxBatch requests. So there is no goroutine for each call, a busy lane makes few large writes, and the
// requests about one key arrive in the order in which they were submitted: a release never overtakes its acquire.
//
// A lane blocks no caller. Callers wait for their round, not for a node. For a node that has been silent for its timeout,
// or cannot be reached, the lane answers at once ("no vote") until the node replies again. Only releases are then kept:
// at most one for each claim of which an acquire went out. Nothing goes out while the node is down, and a release is
// dropped when its token should be gone (Claim.gone). So what a lane keeps is bounded by what was in flight and held
// within two TTLs, however long the node is away, and also if it comes and goes.
type Lane struct {
	Index int    // how many were made before it: the nodes that were given come first, in their order
	Name  string // of the node, in errors

	clock   Clock
	host    sim.Host
	node    Node
	srv     Server
	timeout time.Duration // silence after which nothing more is queued, but for releases

	ctx      context.Context // ends Connect and Refresh, when the lane is forced to close
	cancel   context.CancelFunc
	drain    chan struct{} // closed: send what is left, then end
	tried    chan<- int    // gets the index when the first connect has ended
	ended    atomic.Bool   // it has delivered all answers, and takes no requests any more
	running  sync.WaitGroup
	wake     chan struct{} // wakes the writer; see nudge
	answered chan struct{} // closed: the reader has ended

	rests int // how often the writer has waited; only it looks at that

	mu              sync.Mutex // protects what follows, and this node's part of each claim
	queue           []*Request
	back            int                         // so many of its first requests go before all that come: those that are sent again, and owed releases
	owed            []*flight                   // what has been written and not been answered, in order
	flying          int                         // the requests of these, and of what is just being written
	spares          []*flight                   // to be used again
	lastReply       time.Time                   // when the replies were delivered that came last
	written         sync.Cond                   // there is something owed, or the lane is ending
	pendingReleases map[string][]pendingRelease // by key, the releases that no reply has settled, which are sent again
	retry           time.Time                   // when they are, if the connection stands
	idle, stalled   bool                        // the writer waits for requests; or for replies
	writerWaits     time.Time                   // since when the server has owed the writer an answer; zero: it owes none
	broken          error                       // why the connection cannot be used any more
	down            *Failure                    // why nothing is sent now; nil: the node can be reached
	since           time.Time                   // since when it is down
	draining        bool
	ending          bool                                       // the writer has ended
	again           bool                                       // it is to be joined again
	retired         bool                                       // its node is no member any more, or the Locker ends: it takes releases and leaves only
	listeners       map[*context.CancelFunc]context.CancelFunc // end the subscriptions
}

// A pendingRelease is a release that no reply has settled. It is dropped at that time (Claim.gone).
type pendingRelease struct {
	claim *Claim
	until time.Time
}

// New makes a lane, and begins to connect. It sends its index to tried when its first attempt has ended; nil: nobody wants
// to know. Retire and Close end it.
func New(index int, name string, srv Server, node Node, cfg *Config, tried chan<- int) *Lane {
	n := &Lane{
		Index: index, Name: name, clock: cfg.Clock, host: cfg.Host, node: node, srv: srv, timeout: cfg.NodeTimeout,
		drain: make(chan struct{}), tried: tried, wake: make(chan struct{}, 1), answered: make(chan struct{}),
		pendingReleases: make(map[string][]pendingRelease),
		listeners:       make(map[*context.CancelFunc]context.CancelFunc),
	}
	n.written.L = &n.mu
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.running.Go(n.write)
	n.running.Go(func() {
		defer close(n.answered)
		n.read()
	})
	return n
}

// Submit puts a request into the lane. It reports true if the lane has the answer at once, as the
// request's reply: then the recipient is not told. Submit does no I/O and calls no Recipient, so it
// may be called under a mutex. Steps of one claim must be submitted in the order in which they
// are to happen.
func (n *Lane) Submit(q *Request, now time.Time) (answered bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if answer, ok := n.admit(q, now); !ok {
		q.Reply = answer
		return true
	}
	if q.Op == wire.Release && q.Claim.KeepPlace {
		n.queue = slices.Insert(n.queue, n.back, q) // before the next attempt, which has another token
	} else {
		n.queue = append(n.queue, q)
	}
	if n.idle || n.draining {
		n.nudge()
	}
	return false
}

// admit decides whether q has to go to the server, and gives the answer if not. Under the mutex.
func (n *Lane) admit(q *Request, now time.Time) (answer wire.Reply, ok bool) {
	if n.retired && (n.ending || q.Op != wire.Release && q.Op != wire.Leave) {
		return wire.Reply{Status: wire.Unfit, Err: errRetired}, false
	}
	if why, old := n.node.Refuses(q, now); why != nil {
		if old {
			n.rejoins()
		}
		return wire.Reply{Status: wire.Unfit, Err: why}, false
	}
	at := n.at(q.Claim)
	switch {
	case q.Op != wire.Release:
	case q.Claim.KeepPlace && (at == queued || at == inFlight):
		// The acquire stays: the waiter must get a place in the queue there. If the node grants
		// the lock all the same, it is given back when the grant arrives (Lock.releaseLateGrant).
	case at == inFlight, at == sent:
		n.put(q.Claim, releasing)
		q.Deadline = q.Claim.gone(now)
		return wire.Reply{}, true
	case at == queued:
		at = absent // take drops the acquire: it was never sent, and there is nothing to release
		n.put(q.Claim, at)
		if q.Claim.Waiter != "" { // but an earlier attempt may have left the waiter in the queue there. The release counts the answer as its own
			q.Op, q.Deadline = wire.Leave, now.Add(n.timeout)
		}
	}
	switch silent := n.owing(now); {
	// Also for the release of a token that is not there: it counts as a node that could grant the lock again, and one
	// that is away could not.
	case n.down != nil:
		return wire.Reply{Status: n.down.Status, Err: n.down.Err}, false
	case silent > n.timeout:
		return wire.Reply{Status: wire.Timeout, Err: fmt.Errorf("silent for %v", printable.Duration(silent))}, false
	case at == releasing && q.Counts(), at == inFlight && q.Op == wire.Acquire:
		// What it asks for would be undone by the release, which the node may carry out later; or is asked for already.
		return wire.Reply{Status: wire.Expired}, false
	case q.Op == wire.Acquire:
		if b := q.Claim.Before; b != nil && n.at(b) == queued {
			// The attempt before has not left: take drops it. Otherwise both would be granted where the key is shared, and
			// giving back the first one would put the waiter in the queue, although it has the lock.
			n.put(b, absent)
		}
		if !q.mayBePartial(at) {
			n.put(q.Claim, queued)
		}
		return wire.Reply{}, true
	case q.Op == wire.Inspect || q.Op == wire.Leave || q.Asks():
		return wire.Reply{}, true
	case q.Op == wire.Release || at == absent:
		return wire.Reply{Status: wire.Expired}, false
	}
	return wire.Reply{}, true
}

// answer delivers a reply to a request.
func (n *Lane) answer(q *Request, r wire.Reply) {
	q.Reply = r
	q.To.Deliver(n, q)
}

// late reports whether the request's answer is no longer wanted. It records that the token of a late release is absent.
// Under the mutex.
func (n *Lane) late(q *Request, now time.Time) bool {
	if q.Deadline.IsZero() || !now.After(q.Deadline) {
		return false
	}
	if q.Op == wire.Release {
		n.put(q.Claim, absent)
	}
	return true
}

// owing is for how long the server has owed an answer. Under the mutex.
func (n *Lane) owing(now time.Time) time.Duration {
	switch {
	case !n.writerWaits.IsZero():
		return now.Sub(n.writerWaits)
	case len(n.owed) == 0 || n.owed[0].answered:
		return 0
	case n.lastReply.After(n.owed[0].sent):
		return now.Sub(n.lastReply)
	}
	return now.Sub(n.owed[0].sent)
}

// up lets requests in again, owed releases first.
func (n *Lane) up() {
	n.mu.Lock()
	was, down := n.down, n.clock.Now().Sub(n.since)
	n.down = nil
	n.requeuePending()
	n.mu.Unlock()
	if was != nil {
		n.node.Up(down)
	}
}

// requeuePending puts the owed releases at the head of the queue. Under the mutex.
func (n *Lane) requeuePending() {
	if len(n.pendingReleases) == 0 {
		return
	}
	var queue []*Request
	now := n.clock.Now()
	for _, key := range slices.Sorted(maps.Keys(n.pendingReleases)) { // in an order that a simulation can repeat
		queue = n.appendPending(queue, key, now)
	}
	n.queue, n.back = append(queue, n.queue...), n.back+len(queue)
}

// appendPending appends the releases that are owed for a key to a queue, and forgets them. Under
// the mutex.
func (n *Lane) appendPending(queue []*Request, key string, now time.Time) []*Request {
	if len(n.pendingReleases) == 0 {
		return queue
	}
	n.dropExpired(key, now)
	for _, d := range n.pendingReleases[key] {
		queue = append(queue, &Request{Op: wire.Release, Claim: d.claim, Deadline: d.until, To: Nobody{}})
	}
	delete(n.pendingReleases, key)
	return queue
}

// dropExpired drops the releases owed for a key whose tokens are gone by now. Under the mutex.
func (n *Lane) dropExpired(key string, now time.Time) {
	rest := slices.DeleteFunc(n.pendingReleases[key], func(d pendingRelease) bool {
		over := now.After(d.until)
		if over {
			n.put(d.claim, absent)
		}
		return over
	})
	if len(rest) == 0 {
		delete(n.pendingReleases, key)
		return
	}
	n.pendingReleases[key] = rest
}

// fail takes the node out of the votes, and answers every request that waits for it. Releases
// stay, as long as there may be something to release. It is called again each time the node
// could not be reached.
func (n *Lane) fail(err error) {
	status, now := wire.Classify(err), n.clock.Now()
	n.mu.Lock()
	news := n.down == nil && !n.draining
	if n.down == nil {
		n.since = now
	}
	n.down = &Failure{status, err}
	var dropped []*Request
	down, releases := n.down, n.queue[:0]
	for _, q := range n.queue {
		if q.Op == wire.Release && !n.late(q, now) {
			releases = append(releases, q)
		} else {
			dropped = append(dropped, q)
		}
	}
	clear(n.queue[len(releases):])
	n.queue, n.back = releases, 0
	for key := range n.pendingReleases {
		n.dropExpired(key, now)
	}
	n.mu.Unlock()
	for _, q := range dropped {
		n.answer(q, wire.Reply{Status: status, Err: err})
	}
	if news {
		n.node.Down(down)
	}
}

// Close makes the lane send what it has, and end; Retire has come before. A lane that has nothing to send ends at once.
// After Force nothing waits for the server any more. Until the lane has ended it still takes releases: a reply that is
// still to come may be a grant that nobody wants any more.
func (n *Lane) Close() {
	n.mu.Lock()
	n.draining = true
	listeners := slices.Collect(maps.Values(n.listeners))
	work := len(n.queue) + len(n.pendingReleases) + n.flying
	n.mu.Unlock()
	for _, cancel := range listeners {
		cancel()
	}
	close(n.drain)
	if work == 0 {
		n.Force()
	}
}

// Force ends the calls to the server that are under way, and lets no later one succeed.
func (n *Lane) Force() {
	n.cancel()
	n.srv.Interrupt()
}

// Wait waits until the lane has ended, and its connection is closed.
func (n *Lane) Wait() {
	n.running.Wait()
	n.Force()
}

// Retire makes the lane take nothing more but releases and leaves. It reports false if that was so already; otherwise Close
// must follow.
func (n *Lane) Retire() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.retired {
		return false
	}
	n.retired = true
	if srv, ok := n.srv.(interface{ Retire() }); ok {
		srv.Retire() // the server may become a member again, over another lane
	}
	return true
}

// Retired reports whether the lane has ended, or is about to.
func (n *Lane) Retired() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.retired
}

// Rejoin makes the writer join the node again, as soon as no reply is owed. A node that is not
// connected is joined in any case.
func (n *Lane) Rejoin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rejoins()
}

// rejoins does that under the mutex.
func (n *Lane) rejoins() {
	n.again = true
	if n.idle {
		n.nudge()
	}
}

// Subscribe subscribes to a channel of the node; see Server.Subscribe. The subscription ends with the lane, too.
func (n *Lane) Subscribe(ctx context.Context, channel string, ready func(), onMessage func(message string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.mu.Lock()
	if n.draining {
		n.mu.Unlock()
		return errRetired
	}
	n.listeners[&cancel] = cancel
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.listeners, &cancel)
	}()
	return n.srv.Subscribe(ctx, channel, ready, onMessage)
}

// Ended reports whether the lane has ended: all its answers have been delivered, and there will be no more.
func (n *Lane) Ended() bool { return n.ended.Load() }

// Weigh is how many requests the lane keeps: those that have not left yet, and the releases that it owes.
func (n *Lane) Weigh() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := len(n.queue)
	for _, owed := range n.pendingReleases {
		all += len(owed)
	}
	return all
}

// Away gives the reason why nothing is sent to the node now; nil: the node can be reached.
func (n *Lane) Away() *Failure {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down
}
