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

// errRetired is why a retired lane refuses a request.
var errRetired = errors.New("it is no member of the set any more")

// A Lane is an ordered queue of requests to one Redis server, and the one connection over which they go. What is in the
// queue leaves in one write, up to maxBatch requests. So no call needs a goroutine of its own, a busy lane makes few large
// writes, and requests about one key arrive as they were submitted: a release never overtakes its acquire.
//
// A lane blocks no caller: callers wait for their round (one step of a lock at all nodes), not for a node. If the node is
// down, or has owed a reply for longer than NodeTimeout, the lane answers at once ("no vote") until the node replies again.
// Then it keeps only releases: at most one for each claim (one attempt at one lock) whose acquire went out. Nothing goes out
// while the node is down, and the lane drops a release when its token should be gone (Claim.gone). So what a lane keeps is
// bounded by what was in flight or held within two TTLs, however long the node is away, and however often it comes and goes.
type Lane struct {
	Index int    // how many lanes the set had made before it: the given nodes come first, in their order
	Name  string // of the node, in errors

	clock   Clock
	host    sim.Host
	node    Node
	srv     Server
	timeout time.Duration // Config.NodeTimeout

	ctx      context.Context // bounds Connect and Refresh; Force ends it
	cancel   context.CancelFunc
	drain    chan struct{} // closed by Close: send what is left, then end
	tried    chan<- int    // gets Index when the first attempt to connect has ended; nil: it has got it, or nobody asks
	ended    atomic.Bool   // all answers are delivered, and no request is taken any more
	running  sync.WaitGroup
	wake     chan struct{} // wakes the writer; see nudge
	answered chan struct{} // closed when the reader has ended

	rests int // counts the writer's waits, for sim.Host.Woke; only the writer uses it

	mu              sync.Mutex // protects what follows, and this lane's place in each claim (Places)
	queue           []*Request
	back            int                                        // how many requests at the head of the queue go before all new ones: those that are sent again, and pending releases
	owed            []*flight                                  // the batches that were written and whose replies are not delivered, in order
	flying          int                                        // the number of requests in owed, and of those that are just being written
	spares          []*flight                                  // for reuse
	lastReply       time.Time                                  // when the replies to the latest answered batch had been delivered
	written         sync.Cond                                  // wakes the reader: something is owed, or the lane is ending
	pendingReleases map[string][]pendingRelease                // by key: the releases that no reply has settled, which are sent again
	retry           time.Time                                  // when pendingReleases are sent again, while the connection stands
	idle, stalled   bool                                       // the writer waits in await: idle, for requests; stalled, for replies
	writerWaits     time.Time                                  // since when the server has owed an answer to Connect, Join or Refresh; zero: it owes none
	broken          error                                      // why the connection cannot be used any more; nil: it can
	down            *Failure                                   // why nothing is sent to the node; nil: it can be reached
	since           time.Time                                  // since when the node is down
	draining        bool                                       // Close was called
	ending          bool                                       // the writer has ended
	again           bool                                       // the writer is to join the node again (Server.Join)
	retired         bool                                       // Retire was called: only releases and leaves are taken
	listeners       map[*context.CancelFunc]context.CancelFunc // end the subscriptions
}

// A pendingRelease is a release that no reply has settled. The lane drops it at until (Claim.gone).
type pendingRelease struct {
	claim *Claim
	until time.Time
}

// New makes the lane to srv, with this Index and Name, and begins to connect; node judges the replies. When its first
// attempt to connect ends, well or not, the lane sends index to tried, if not nil. End it by Retire and then Close.
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

// Submit queues q. It returns true if the lane can answer without the node: the answer is then in q.Reply, and q.To is not
// called. Otherwise the lane calls q.To.Deliver later, once. Submit does no I/O and calls no Recipient, so the caller may
// hold a mutex. Callers submit the steps of one claim in the order in which they are to happen.
func (n *Lane) Submit(q *Request, now time.Time) (answered bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if answer, ok := n.admit(q, now); !ok {
		q.Reply = answer
		return true
	}
	if q.Op == wire.Release && q.Claim.KeepPlace {
		n.queue = slices.Insert(n.queue, n.back, q) // before the waiter's next attempt, which has another token
	} else {
		n.queue = append(n.queue, q)
	}
	if n.idle || n.draining {
		n.nudge()
	}
	return false
}

// admit decides whether q goes to the server, and notes what that means for q's token (presence). If q does not go, ok is
// false, and answer is the reply to q. It may change q: set its deadline, or turn a release into a leave. Caller holds n.mu.
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
		// The acquire stays in the lane, since it is to put the waiter into the node's queue. If the node grants the lock
		// all the same, the grant is given back when it arrives (Lock.releaseLateGrant).
	case at == inFlight, at == sent:
		n.put(q.Claim, releasing)
		q.Deadline = q.Claim.gone(now)
		return wire.Reply{}, true
	case at == queued:
		at = absent // take drops the acquire: the node never got it, and has nothing to release
		n.put(q.Claim, at)
		if q.Claim.Waiter != "" { // an earlier attempt may have put the waiter into the node's queue: the answer to the leave counts as that to the release
			q.Op, q.Deadline = wire.Leave, now.Add(n.timeout)
		}
	}
	switch silent := n.owing(now); {
	// This also answers the release of a token that is not there. For a release each answer of a node counts as a yes: that
	// node could grant the lock again. A node that is away could not.
	case n.down != nil:
		return wire.Reply{Status: n.down.Status, Err: n.down.Err}, false
	case silent > n.timeout:
		return wire.Reply{Status: wire.Timeout, Err: fmt.Errorf("silent for %v", printable.Duration(silent))}, false
	case at == releasing && q.Counts(), at == inFlight && q.Op == wire.Acquire:
		// The node may carry out a release later, which would undo what q asks for; or the acquire is under way already.
		return wire.Reply{Status: wire.Expired}, false
	case q.Op == wire.Acquire:
		if b := q.Claim.Before; b != nil && n.at(b) == queued {
			// The waiter's attempt before this one has not left: take drops it. Otherwise a key that is held shared would be
			// granted to both, and giving back the first (Yield) would put the waiter, which has the lock, into the queue.
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

func (n *Lane) answer(q *Request, r wire.Reply) {
	q.Reply = r
	q.To.Deliver(n, q)
}

// late reports whether q's deadline is over at now, so that nobody wants the answer; false if q has none. If q is a release,
// late also notes its token as absent: its TTL is over (gone). Caller holds n.mu.
func (n *Lane) late(q *Request, now time.Time) bool {
	if q.Deadline.IsZero() || !now.After(q.Deadline) {
		return false
	}
	if q.Op == wire.Release {
		n.put(q.Claim, absent)
	}
	return true
}

// owing returns how long, at now, the server has owed an answer (0: it owes none): since the writer called Connect, Join or
// Refresh; else since the oldest unanswered batch left or, if later, the one before was answered. Caller holds n.mu.
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

// up marks the node as reachable after the writer has connected; pending releases go first. It calls Node.Up if n was down.
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

// requeuePending puts all pending releases (no reply has settled them) at the head of the queue. Caller holds n.mu.
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

// appendPending moves the releases of this key that no reply has settled (pending) to the end of queue, and returns it. It
// drops those that are too late at now. Caller holds n.mu.
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

// dropExpired drops each pending release of this key that is not to be sent again after now (Claim.gone). Caller holds n.mu.
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

// fail marks the node as down because of err, and answers all queued requests with err, except releases whose deadline is
// not over: these stay. It calls Node.Down if the node was up. The writer calls fail each time it could not reach the node.
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

// Close makes the lane send what it has, and then end; Retire must come first. It does not wait. A lane that has nothing to
// send ends at once. Until it has ended, it still takes releases: a late reply may be a grant that nobody wants.
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

// Force ends the calls to the server that are under way, and makes all later ones fail, so that a closed lane ends soon.
func (n *Lane) Force() {
	n.cancel()
	n.srv.Interrupt()
}

// Wait blocks until the lane has ended and its connection is closed. The caller has called Close before.
func (n *Lane) Wait() {
	n.running.Wait()
	n.Force()
}

// Retire makes the lane take nothing more but releases and leaves. It returns false if the lane was retired already;
// otherwise the caller must call Close.
func (n *Lane) Retire() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.retired {
		return false
	}
	n.retired = true
	if srv, ok := n.srv.(interface{ Retire() }); ok {
		srv.Retire() // the server may become a member again later, over another lane
	}
	return true
}

// Retired reports whether Retire was called.
func (n *Lane) Retired() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.retired
}

// Rejoin makes the writer ask the node again what it is, and load the scripts (Server.Join), as soon as no reply is owed.
func (n *Lane) Rejoin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rejoins()
}

// rejoins is Rejoin for a caller that holds n.mu.
func (n *Lane) rejoins() {
	n.again = true
	if n.idle {
		n.nudge()
	}
}

// Subscribe subscribes to a channel of the node and blocks until the connection breaks, ctx ends, or Close is called; it
// returns why it ended. It calls ready when the subscription stands, and onMessage with each message (Server.Subscribe).
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

// Ended reports whether the lane has delivered all its answers, and takes no requests any more.
func (n *Lane) Ended() bool { return n.ended.Load() }

// Unanswered reports whether the reply to an acquire of c by plain commands has yet to be delivered.
func (n *Lane) Unanswered(c *Claim) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	is := func(q *Request) bool { return q != nil && q.Claim == c && q.Step() == wire.Plain }
	return slices.ContainsFunc(n.queue, is) || slices.ContainsFunc(n.owed, func(f *flight) bool { return slices.ContainsFunc(f.batch, is) })
}

// Weigh returns how many requests wait in the lane (a use of memory): unsent ones, and releases that no reply has settled.
func (n *Lane) Weigh() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := len(n.queue)
	for _, owed := range n.pendingReleases {
		all += len(owed)
	}
	return all
}

// Away returns why nothing is sent to the node now; nil: it can be reached, or the lane has not tried yet.
func (n *Lane) Away() *Failure {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down
}
