package lane

import (
	"errors"
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

const (
	// maxBatch bounds the requests of one write, and maxOwed those that were taken from the queue and not answered. Pending
	// releases for the same keys may come on top of both.
	maxBatch = 512
	maxOwed  = 4 * maxBatch

	maxSpares = 4 // flights that are kept for reuse

	// Bounds of the pause between two attempts to connect to a node that is down. It doubles each time.
	minProbe = 50 * time.Millisecond
	maxProbe = time.Second
)

// A lane has one connection and two goroutines. The writer makes the connection, and sends all that is queued in one write.
// It does not wait for replies before it writes again, so a request to a far node takes one round trip, whatever was sent
// before it. The reader takes the replies, which come in the order of the requests, has them judged, and delivers them.
//
// When a reply does not come, or cannot be read, the reader answers everything that was written, and the writer makes a new
// connection. Before the writer joins the node again or replaces the connection, it waits until no reply is owed. So no
// reply is taken for the reply to another request.

// A flight is a batch of requests that leaves in one write, and what was known of the node then.
type flight struct {
	batch    []*Request
	first    bool // no reply was owed when the batch was taken from the queue
	sent     time.Time
	answered bool   // its replies have arrived, and are being delivered
	before   Before // what Node.Bind returned for it
}

// What the writer does next (todo).
const (
	send            = iota // take what is queued, and write it
	rejoin                 // call Server.Join
	reconnect              // make a new connection
	end                    // return
	waitForReplies         // to what was written, before anything else
	waitForRequests        // nothing is queued
)

// write is the writer's goroutine: it connects to the node, as often as needed, and sends batches until the lane ends.
func (n *Lane) write() {
	defer n.finish()
	for n.connect() {
		for {
			f, do := n.next()
			var err error
			switch do {
			case send:
				n.send(f)
				continue
			case rejoin:
				err = n.srv.Join()
				if n.returned(); err == nil {
					continue
				}
			case reconnect:
				err = n.broken
			case end:
				return
			}
			if wire.Classify(err) != wire.Unreachable { // whether a node with a lost connection is down, connect finds out
				n.fail(err)
			}
			break
		}
	}
}

// send binds the batch of f (Node.Bind) and writes it to the server. Once f is in n.owed, its requests belong to the reader,
// which answers them at once if the connection has failed. So send puts f into n.owed also after an error.
func (n *Lane) send(f *flight) {
	var err error
	if f.first {
		if err = n.srv.Refresh(n.ctx); err != nil {
			n.setBroken(err)
		}
	}
	f.sent = n.clock.Now()
	f.before = n.node.Bind(f.batch, f.sent)
	n.srv.Encode(f.batch)
	n.mu.Lock()
	n.writerWaits = time.Time{}
	n.owed = append(n.owed, f) // before it is written: replies may come before all of it has left
	n.written.Signal()
	n.mu.Unlock()
	if err != nil {
		return
	}
	if err = n.srv.Send(); err != nil {
		n.setBroken(err)
	}
}

// read is the reader's goroutine: it receives and delivers replies until the writer has ended and no reply is owed.
func (n *Lane) read() {
	for {
		n.mu.Lock()
		for len(n.owed) == 0 && !n.ending {
			n.written.Wait()
		}
		if len(n.owed) == 0 {
			n.mu.Unlock()
			return
		}
		f, err := n.owed[0], n.broken
		ago := n.owing(n.clock.Now())
		n.mu.Unlock()
		rest := f.batch
		if err == nil {
			if rest, err = n.srv.Receive(f.batch, ago); err != nil {
				err = n.setBroken(err)
			}
		}
		for _, q := range rest {
			q.Read(nil, err)
		}
		n.node.Judge(f.batch, f.sent, f.before)
		n.settle(f)
	}
}

// setBroken records err as the reason why the connection has failed, unless one is on record, and returns the reason on
// record. A recorded net.ErrClosed counts as none: it only says that this process has closed the connection. It takes n.mu.
func (n *Lane) setBroken(err error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.broken == nil || errors.Is(n.broken, net.ErrClosed) {
		n.broken = err
	}
	return n.broken
}

// finish runs when the writer ends: it waits for the reader, answers the requests still queued, and closes the connection.
func (n *Lane) finish() {
	n.mu.Lock()
	n.ending = true
	rest := n.queue
	n.queue = nil
	n.written.Signal()
	n.mu.Unlock()
	<-n.answered
	for _, q := range rest { // those that came when nothing was sent any more
		n.answer(q, wire.Reply{Status: wire.Unfit, Err: errRetired})
	}
	n.Force()
	n.ended.Store(true)
}

// connect tries to connect to the node until it succeeds. It returns false if Close is called before that.
func (n *Lane) connect() bool {
	for pause := minProbe; ; pause = min(2*pause, maxProbe) {
		n.mu.Lock()
		n.broken, n.again = nil, false
		if n.down == nil {
			n.writerWaits = n.clock.Now()
		}
		n.mu.Unlock()
		err := n.srv.Connect(n.ctx)
		n.returned()
		if err != nil {
			n.fail(err)
		} else {
			n.up()
		}
		if n.tried != nil {
			n.tried <- n.Index
			n.tried = nil
		}
		if err == nil {
			return true
		}
		// Jitter: a hundred processes are not to reconnect all at once.
		timer := time.NewTimer(Jittered(pause, n.host.Jitter()))
		select {
		case <-timer.C:
		case <-n.drain:
		}
		timer.Stop()
		n.host.Woke(sim.Conn, n.Name, n.rests)
		select {
		case <-n.drain:
			return false // no caller waits, and the TTL is the backstop
		default:
		}
	}
}

// returned notes that the writer's call of Connect or Join has returned, so that owing counts it no longer. It takes n.mu.
func (n *Lane) returned() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writerWaits = time.Time{}
}

// next waits until the writer has something to do: send (f is the batch to send), or rejoin, reconnect or end (f is nil).
func (n *Lane) next() (f *flight, do int) {
	for {
		n.mu.Lock()
		do = n.todo()
		var dropped []*Request
		switch do {
		case send:
			f, dropped = n.take()
		case rejoin:
			n.again, n.writerWaits = false, n.clock.Now()
		case end:
			n.ending = true
		case waitForReplies, waitForRequests:
			n.await(do) // unlocks n.mu
			continue
		}
		n.mu.Unlock()
		for _, q := range dropped {
			n.answer(q, wire.Reply{Status: wire.Timeout})
		}
		if do != send || f != nil {
			return f, do
		}
	}
}

// todo returns what the writer does next: send, rejoin … First, it queues pending releases when due. Caller holds n.mu.
func (n *Lane) todo() int {
	if len(n.pendingReleases) > 0 && n.broken == nil && !n.clock.Now().Before(n.retry) {
		n.requeuePending()
	}
	do := end
	switch {
	case n.broken != nil:
		do = reconnect
	case n.again && (!n.draining || len(n.queue) > 0):
		do = rejoin
	case n.flying >= maxOwed, len(n.queue) > 0 && len(n.owed) > 0 && n.srv.Outdated():
		return waitForReplies
	case len(n.queue) > 0:
		return send
	case !n.draining:
		return waitForRequests
	}
	if len(n.owed) > 0 {
		return waitForReplies
	}
	return do
}

// await blocks the writer until there are requests or replies (do is waitForRequests or waitForReplies). When it waits for
// requests, it also returns when pending releases are due, or Close is called. Caller holds n.mu; await unlocks it.
func (n *Lane) await(do int) {
	n.idle, n.stalled = do == waitForRequests, do == waitForReplies
	n.rests++
	var retry <-chan time.Time
	var drain <-chan struct{}
	if n.idle {
		drain = n.drain
		if len(n.pendingReleases) > 0 {
			retry = time.After(Left(n.retry, n.clock.Now()))
		}
	}
	n.mu.Unlock()
	select {
	case <-n.wake:
		// As a rule several requests come at once: let the other goroutines submit theirs before the write.
		runtime.Gosched()
		n.host.Woke(sim.Conn, n.Name, n.rests)
		return
	case <-retry:
	case <-drain:
	}
	n.host.Woke(sim.Conn, n.Name, n.rests)
	n.mu.Lock()
	if !n.idle { // nudge has woken the writer as well: consume that
		<-n.wake
	}
	n.idle = false
	n.mu.Unlock()
}

// nudge wakes the writer if it waits in await. Caller holds n.mu.
func (n *Lane) nudge() {
	if n.idle || n.stalled {
		n.idle, n.stalled = false, false
		n.wake <- struct{}{}
	}
}

// take moves up to maxBatch requests from the queue to f, the batch to send; f is nil if nothing is to be sent. dropped has
// the requests whose answer nobody wants any more: take removes them, too, and the caller answers them. Caller holds n.mu.
func (n *Lane) take() (f *flight, dropped []*Request) {
	if len(n.queue) == 0 {
		return nil, nil
	}
	now, rest, back := n.clock.Now(), n.queue[:0], 0
	room := min(maxBatch, maxOwed-n.flying)
	if last := len(n.spares) - 1; last >= 0 {
		f, n.spares = n.spares[last], n.spares[:last]
	} else {
		f = new(flight)
	}
	for i, q := range n.queue {
		at := n.at(q.Claim)
		switch {
		case len(f.batch) >= room:
			if rest = append(rest, q); i < n.back {
				back++
			}
		case n.late(q, now), q.Op == wire.Acquire && at != queued && !q.mayBePartial(at): // the deadline is over, or the acquire was released
			dropped = append(dropped, q)
		default:
			if q.Op == wire.Acquire && at == queued {
				n.put(q.Claim, inFlight)
			}
			// Pending releases for the key go first, or an earlier token of this client would be in the way of this one.
			f.batch = append(n.appendPending(f.batch, q.Claim.Key, now), q)
		}
	}
	clear(n.queue[len(rest):])
	n.queue, n.back = rest, back
	if len(f.batch) == 0 {
		n.spares = append(n.spares, f)
		return nil, dropped
	}
	if f.first = len(n.owed) == 0; f.first {
		n.writerWaits = now
	}
	n.flying += len(f.batch)
	return f, dropped
}

// settle notes by the judged replies to f's requests which tokens the node has now, then delivers the replies. The flight f
// stays in n.owed until then, so the lane does not end before: a recipient may release what was granted. The time that
// recipients take does not count as silence of the node.
func (n *Lane) settle(f *flight) {
	n.mu.Lock()
	f.answered = true
	for i, q := range f.batch {
		if more := n.reopen(q); more != nil {
			n.queue = slices.Insert(n.queue, n.back, more)
			n.back++
			if more == q {
				f.batch[i] = nil
				continue
			}
		}
		n.place(q)
	}
	if n.idle && (n.again || n.back > 0 || n.broken != nil) {
		n.nudge()
	}
	n.mu.Unlock()
	for _, q := range f.batch {
		if q != nil {
			q.To.Deliver(n, q)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owed, n.flying, n.lastReply = slices.Delete(n.owed, 0, 1), n.flying-len(f.batch), n.clock.Now()
	if n.stalled {
		n.nudge()
	}
	clear(f.batch)
	f.batch, f.answered = f.batch[:0], false
	if len(n.spares) < maxSpares {
		n.spares = append(n.spares, f)
	}
}

// place notes in q.Claim's place for this lane, by q.Reply, whether the node has the token. A release is sent again later
// (pendingReleases) if the reply does not prove that the token is gone (SettlesRelease). Caller holds n.mu.
func (n *Lane) place(q *Request) {
	switch at := n.at(q.Claim); {
	case q.Op == wire.Release && !q.Reply.Status.SettlesRelease():
		if len(n.pendingReleases) == 0 {
			n.retry = n.clock.Now().Add(maxProbe / 4)
			if n.idle {
				n.nudge() // to wait for n.retry
			}
		}
		n.pendingReleases[q.Claim.Key] = append(n.pendingReleases[q.Claim.Key], pendingRelease{q.Claim, q.Deadline})
	case q.Op == wire.Release:
		n.put(q.Claim, absent)
	case at != sent && (at != inFlight || q.Op != wire.Acquire), q.mayBePartial(at):
		// The reply changes nothing: a release was submitted since; or an acquire that is not answered yet was written
		// behind q; or some of the keys may be there.
	case q.Reply.MeansAbsent(q.Op):
		n.put(q.Claim, absent)
	default:
		n.put(q.Claim, sent)
	}
}

// maxReloads bounds how often a request is sent again to a server that does not know the scripts: another client may flush
// them in between, but does not do that all the time.
const maxReloads = 5

// reopen returns the request that must leave because of q's reply, before all that is queued: q itself, which then counts as
// not answered (q.Open, or see below); or a Wake, which calls the waiters (q.Waited); nil: none. Caller holds n.mu.
//
// A server that does not know a script, or has another marker than q says (the key that shows that no data was lost), has
// not carried q out, so q is sent again when the node has been joined again. An extension may have been carried out, but
// does not count under the node's new description of the set, so it is sent, too. What was written behind q may have been
// carried out: another client may have loaded the scripts in between. So an acquire is not sent again if its release was
// submitted since. An acquire of plain commands never is: it needs no script and has been carried out. A second SET could
// say OK after another client has had the lock in between, with the fence stored before that (NO_RESEND in docs/model).
func (n *Lane) reopen(q *Request) *Request {
	switch {
	case q.Open:
		q.Open, q.Native = false, false
		return q
	case q.Waited:
		return &Request{Op: wire.Wake, Claim: q.Claim, To: Nobody{}}
	case !q.unknown():
		return nil
	}
	n.again = true
	if q.Step() == wire.Plain || q.reloads == maxReloads {
		return nil
	}
	if at := n.at(q.Claim); q.Op == wire.Acquire && !q.mayBePartial(at) {
		if at != inFlight {
			return nil
		}
		n.put(q.Claim, queued)
	}
	q.reloads++
	return q
}
