package redlock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/queue"
	"github.com/quorumlock/redlock/internal/seam"
)

// A server is one Redis as the library sees it, and the seam at which a model of
// one can stand in: whatever is above it deals in requests and replies only.
type server interface {
	// addr names the node in errors.
	addr() string

	// connect makes a connection, checks that the node may vote, and says how long
	// a round trip takes. It is called before the first exec and again after each
	// failed one, and ends with ctx.
	connect(ctx context.Context) (rtt time.Duration, err error)

	// exec carries out the requests in their order and fills in each one's
	// reply. An error means that the connection failed: then the requests whose
	// outcome is Timeout or Unreachable may have been carried out, or may yet be.
	// It is bounded by the server's own patience, not by any request's deadline.
	exec(batch []*request) error

	// interrupt has a connect or exec under way return soon, and all later ones
	// fail. It may be called from any goroutine.
	interrupt()

	// hear listens to a channel, over a connection of its own, until that breaks or
	// ctx ends. It says when it has begun to, and what it hears. A server that hears
	// does nothing else.
	hear(ctx context.Context, channel string, ready func(), heard func(message string)) error

	// vouches reports whether a grant counts that the node tells of; see memory.
	vouches(mark string, micros, number int64, sent time.Time) bool

	// fork gives another connection to the same node, not connected yet.
	fork() server
}

// An op is one step of the protocol at one node.
type op uint8

const (
	opAcquire op = iota
	opRaise
	opExtend
	opRelease
	opLeave
	opYield // how a release goes out for one who waits on
	opInspect
)

func (o op) String() string { return seam.Op(o).String() }

// A request is one step for one claim at one node.
type request struct {
	op       op
	claim    *claim
	deadline time.Time // nobody wants the answer after it; zero: send it whenever possible. A release's is the lane's
	reply    reply
	to       voter // told once, with the reply filled in
	ticket   int64 // acquire: the waiter's; 0: nobody will wait; ours: the lock is
	next     int64 // release: the number proposed for whom the lock is handed to; 0: it is not to be

	// What the node's memory adds before it is sent.
	number int64  // acquire: the one that is proposed
	latest int64  // acquire, yield: after this time of the node's, in microseconds, it is refused
	mark   string // acquire, inspect: what the node's marker is if it has not forgotten
}

type reply struct {
	outcome Outcome
	holder  string        // Held, Stolen; inspect: whoever it is; Reserved: for whom
	ttl     time.Duration // Held, Stolen: the holder's; Reserved: the waiter's lease
	rest    time.Duration // Quarantined: how long yet
	fence   int64         // acquire: the grant's number; inspect: the last grant's
	time    int64         // the node's, in microseconds; 0: it did not say
	mark    string        // the node's marker, if it said
	slot    int64         // Held: another slot, which is free; 0: there is none
	queue   []queue.Entry // inspect: who waits
	holders []Holder      // inspect: who holds it another way than alone
	err     error
}

// ours is the ticket of a lock that is to be at one more node.
const ours = -1

// step is what the server is asked to do.
func (q *request) step() op {
	if q.op == opRelease && q.claim.patient {
		return opYield
	}
	return q.op
}

// A voter is told what became of a request. It must not block.
type voter interface{ vote(n *node, q *request) }

// A claim is one attempt at one lock, as the nodes see it.
type claim struct {
	key   string // of its name: what is said about it is said in order
	token string
	ttl   time.Duration

	// All its keys, and a letter for each of how to hold it (internal/ways). Of a slot,
	// which one it is of how many; 0: it is none.
	keys        []string
	ways        string
	slot, slots int64

	// For the scripts: the TTL in milliseconds; and who waits, and until when he counts
	// without another word.
	millis  int64
	waiter  string
	ticket  int64     // 0: nobody waits
	patient bool      // it has come to nothing, but whoever waits for it will ask again
	again   time.Time // by then
	lease   int64
	try     int64 // the attempt that he can be handed the lock for; 0: he cannot

	// The number that is proposed for the lock, the same at all nodes, 0 if it is only
	// read under the lock (memory.floor); and the one that it came to be: set before the
	// raise, if there is one.
	proposal, fence int64
	ahead           time.Duration // by how much it may be ahead of the time

	// at says where the token may be, node by node. Each element belongs to its
	// node's lane and is guarded by the lane's mutex.
	at []place

	// absent is the place of a claim of which a node says that it does not have the
	// token: nowhere; or due, if the waiter was handed the lock by other nodes.
	absent place

	// reached says, node by node, whether an acquire of the waiter's has ever gone out.
	// Where none has, no queue has the waiter in it, and nothing is handed over. All
	// claims of a waiter share it, and it is guarded as at is; nil: nobody waits.
	reached []bool
}

// A place says whether a node may have a claim's token.
type place uint8

const (
	nowhere   place = iota // never sent there, refused, or given back
	due                    // another's release may hand the lock over there, if the waiter was in the queue
	queued                 // the acquire waits in the lane, or was dropped there
	asked                  // the acquire went out
	sent                   // and was answered, or has got lost: the token is there, or may be
	releasing              // a release is in the lane, or owed
	leaving                // it was due, or queued, when it was released: a leave is in the lane, or owed
)

// mayWait reports whether a node may have the waiter in its queue, or have handed the lock
// over since. Under the lane's mutex.
func (c *claim) mayWait(i int) bool { return c.reached != nil && c.reached[i] }

// gone is by when no node has a token any more that is released now, whatever got lost.
// An acquire or extension that left before may be carried out after the release was sent, by
// a node that hung; the acquire only within its own deadline, and the extension only
// while the token stands, which then stands for a last TTL. A waiter's lease counts as a TTL
// does, and is the longer of the two where the TTL is very short.
func (c *claim) gone(now time.Time) time.Time {
	return now.Add(2 * max(c.ttl, milliseconds(c.lease)))
}

// A node is one Redis server and its lane: an ordered queue that is carried to
// the server in pipelines, everything that came while the last one was under way
// in the next one. So there is no goroutine for each call, a busy lane sends few
// large writes, and what is said about one key arrives in the order in which it
// was said: a release never overtakes its acquire.
//
// A lane holds no caller. Callers wait for their round, not for a node; a node
// that has kept silent for its timeout, or cannot be reached, answers for itself
// at once ("no vote") until it speaks again. Only releases are then kept: one at
// the most for each claim of which an acquire went out, and one leave for each
// waiter of whom one did. Nothing goes out while the node is down, and a release is
// dropped when its token cannot stand any more (claim.gone). So what a lane keeps is
// bounded by what was in flight and held within two TTLs, however long the node is
// away, and also if it comes and goes.
//
// Over a near link the lane is one strand: one connection, and one goroutine that
// writes a pipeline and reads its replies. Over a far one that would make a
// request wait for the round trip before its own, so there are several, and a
// request leaves with the first that is free, unless another is carrying
// something about the same key. See strand.
type node struct {
	index   int
	name    string
	clock   Clock
	hooks   *Hooks
	host    seam.Host
	timeout time.Duration // silence after which nothing more is queued

	ctx     context.Context // ends connecting, when the lane is closed by force
	cancel  context.CancelFunc
	drain   chan struct{} // closed: send what is left, then end
	tried   chan<- *node  // gets the node when the first connect has ended
	running sync.WaitGroup

	mu       sync.Mutex
	queue    []*request
	owed     map[string][]debt // by key, the releases that had no answer, to be sent again
	retry    time.Time         // when to, if the connection stands
	strands  []*strand
	flying   map[string]int // by key, the requests under way; nil while there is one strand
	down     *NodeError     // why nothing is sent now; nil: the server is well
	since    time.Time      // since when it is down
	breaks   int            // connections that have broken while in use
	draining bool
}

// A debt is a release that is owed to a node, until the token is gone there in any case.
type debt struct {
	claim *claim
	until time.Time
}

func newNode(index int, srv server, opts *Options, tried chan<- *node) *node {
	n := &node{
		index: index, name: srv.addr(), clock: opts.Clock, hooks: opts.Hooks, host: opts.host, timeout: opts.NodeTimeout,
		drain: make(chan struct{}), tried: tried, owed: make(map[string][]debt),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.addStrand(srv)
	return n
}

// submit puts a request into the lane, or answers it at once. It never blocks.
// Steps of one claim are submitted in the order in which they shall happen.
func (n *node) submit(q *request, now time.Time) {
	n.mu.Lock()
	if answer, ok := n.admit(q, now); !ok {
		n.mu.Unlock()
		q.answer(n, answer)
		return
	}
	if q.op == opRelease && q.claim.patient {
		n.queue = slices.Insert(n.queue, 0, q) // before the next attempt, to which it is another's token
	} else {
		n.queue = append(n.queue, q)
	}
	if i := slices.IndexFunc(n.strands, func(s *strand) bool { return s.idle }); i >= 0 {
		n.strands[i].nudge()
	} else {
		n.grow(q)
	}
	n.mu.Unlock()
}

// admit decides, under the mutex, whether q has to go to the server, and has
// the answer if not.
func (n *node) admit(q *request, now time.Time) (answer reply, ok bool) {
	at := &q.claim.at[n.index]
	switch {
	case q.op != opRelease:
	case q.claim.patient && (*at == queued || *at == asked):
		// Whoever waits is to have a place there. What is granted to him all the same he
		// gives back when he hears of it (Lock.unwanted).
	case *at == asked, *at == sent:
		*at, q.deadline = releasing, q.claim.gone(now)
		return reply{}, true
	case *at == queued, *at == due:
		*at = nowhere // take drops the acquire: it never was sent, and there is nothing to release
		if q.claim.mayWait(n.index) {
			// But perhaps a place in the queue, of which the acquire would have made an end. If
			// the node hangs, it may have the release that hands the lock over, and an extension
			// of ours, yet to carry out: the token would stand for a TTL if the leave got lost.
			*at, q.op, q.deadline = leaving, opLeave, q.claim.gone(now)
			return reply{}, true
		}
	}
	switch silent := n.silent(now); {
	// Also to the release of what is not there: a lock is free again when a quorum
	// of nodes could grant it, and a node that is away could not.
	case n.down != nil:
		return reply{outcome: n.down.Outcome, err: n.down.Err}, false
	case silent > n.timeout:
		return reply{outcome: Timeout, err: fmt.Errorf("silent for %v", silent.Round(time.Millisecond))}, false
	case q.op == opAcquire:
		*at = queued
		return reply{}, true
	case q.op == opInspect || q.op == opLeave:
		return reply{}, true
	case q.op == opRelease || *at == nowhere || *at == leaving || *at == due && !q.claim.mayWait(n.index):
		return reply{outcome: Expired}, false
	}
	return reply{}, true
}

// releases reports whether this is a release, or the leave that became of one. Under the
// mutex.
func (n *node) releases(q *request) bool {
	return q.op == opRelease || q.op == opLeave && q.claim.at[n.index] == leaving
}

// late reports whether nobody wants the answer any more. A release that is late has nothing
// to release. Under the mutex.
func (n *node) late(q *request, now time.Time) bool {
	if q.deadline.IsZero() || !now.After(q.deadline) {
		return false
	}
	if n.releases(q) {
		q.claim.at[n.index] = nowhere
	}
	return true
}

// answer tells the one who asked.
func (q *request) answer(n *node, r reply) {
	q.reply = r
	q.to.vote(n, q)
}

// silent is for how long the server has owed us an answer. Under the mutex.
func (n *node) silent(now time.Time) (longest time.Duration) {
	for _, s := range n.strands {
		if !s.busy.IsZero() {
			longest = max(longest, now.Sub(s.busy))
		}
	}
	return longest
}

// up lets requests in again, owed releases first.
func (n *node) up() {
	n.mu.Lock()
	was, down := n.down, n.clock.Now().Sub(n.since)
	n.down = nil
	n.repay()
	n.mu.Unlock()
	if was != nil {
		n.hooks.nodeUp(n.name, down)
	}
}

// repay puts the owed releases at the head of the queue. Under the mutex.
func (n *node) repay() {
	if len(n.owed) == 0 {
		return
	}
	var queue []*request
	now := n.clock.Now()
	for _, key := range slices.Sorted(maps.Keys(n.owed)) { // in an order that a run can repeat
		queue = n.appendOwed(queue, key, now)
	}
	n.queue = append(queue, n.queue...)
}

// appendOwed appends the releases that are owed for a key, and owes them no
// longer. Under the mutex.
func (n *node) appendOwed(queue []*request, key string, now time.Time) []*request {
	if len(n.owed) == 0 {
		return queue
	}
	n.forgive(key, now)
	for _, d := range n.owed[key] {
		q := &request{op: opRelease, claim: d.claim, deadline: d.until, to: nobody{}}
		if d.claim.at[n.index] == leaving {
			q.op = opLeave
		}
		queue = append(queue, q)
	}
	delete(n.owed, key)
	return queue
}

// forgive drops the releases that are owed for a key of which the tokens are gone by now.
// Under the mutex.
func (n *node) forgive(key string, now time.Time) {
	rest := slices.DeleteFunc(n.owed[key], func(d debt) bool {
		over := now.After(d.until)
		if over {
			d.claim.at[n.index] = nowhere
		}
		return over
	})
	if len(rest) == 0 {
		delete(n.owed, key)
		return
	}
	n.owed[key] = rest
}

// nobody wants the answer: whoever asked has been told that there was none.
type nobody struct{}

func (nobody) vote(*node, *request) {}

// fail takes the node out of the votes and gives everybody who waits for it an
// answer now. Releases stay, as long as there may be something to release. It is called
// again each time the node could not be reached.
func (n *node) fail(err error) {
	outcome, now := classify(err), n.clock.Now()
	n.mu.Lock()
	news := n.down == nil && !n.draining
	if n.down == nil {
		n.since = now
	}
	n.down = &NodeError{Node: n.name, Outcome: outcome, Err: err}
	var dropped []*request
	down, releases := n.down, n.queue[:0]
	for _, q := range n.queue {
		if n.releases(q) && !n.late(q, now) {
			releases = append(releases, q)
		} else {
			dropped = append(dropped, q)
		}
	}
	clear(n.queue[len(releases):])
	n.queue = releases
	for key := range n.owed {
		n.forgive(key, now)
	}
	n.mu.Unlock()
	for _, q := range dropped {
		q.answer(n, reply{outcome: outcome, err: err})
	}
	if news {
		n.hooks.nodeDown(down)
	}
}

// settlesRelease reports whether after this answer the token is certainly not at
// the node.
func (o Outcome) settlesRelease() bool {
	return o == Granted || o == Expired || o == Stolen || o == Foreign
}

// meansAbsent reports whether this answer to an acquire or extend says that the
// token is not at the node. A lost answer does not, and neither does a server
// that refuses to extend, or a counter that is past the number.
//
// Nor does an error that a script has raised, since it may have written before: a user
// without one of the commands is told so when the script comes to it. Others come before the
// first write if they come at all: a server that loads its data, or runs another script, runs
// none; a replica that has lost its master refuses the first look, and one that takes no writes
// the first write; a full one does, too, and lets a script go on that has written.
func (r *reply) meansAbsent(step op) bool {
	switch r.outcome {
	case Held, Reserved, Stolen, Expired, Late:
		return step != opRaise
	case Foreign:
		return step != opRaise && !r.raised()
	case Denied:
		return step == opAcquire && !r.raised()
	case Loading, Busy, ReadOnly, OutOfMemory:
		return step == opAcquire
	}
	return false
}

// raised reports whether the error is one of a command within a script: all servers say so,
// each in words of its own (TestWhatScriptsRaise).
func (r *reply) raised() bool {
	return r.err != nil && strings.Contains(r.err.Error(), "script")
}

// close has the lane send what it has, take no more, and end; one that has nothing
// to send ends at once. After force none waits for the server any more. Nothing
// may be submitted afterwards.
func (n *node) close() {
	n.mu.Lock()
	n.draining = true
	work := len(n.queue) + len(n.owed)
	for _, s := range n.strands {
		work += s.load
	}
	n.mu.Unlock()
	close(n.drain)
	if work == 0 {
		n.force()
	}
}

func (n *node) force() {
	n.cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.strands {
		s.srv.interrupt()
	}
}

// ear gives a connection for a subscription.
func (n *node) ear() server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.strands[0].srv.fork()
}

// away says why nothing is sent to the node now; nil: it is well.
func (n *node) away() *NodeError {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down
}
