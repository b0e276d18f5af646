package lane

import (
	"fmt"
	"runtime"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

const (
	// maxBatch bounds a pipeline, and with it the buffers on both sides.
	maxBatch = 512

	// The pauses between two attempts to reach a node that is down.
	minProbe = 50 * time.Millisecond
	maxProbe = time.Second

	// A link with a round trip from farLink on gets farConns conns. Measured
	// over 20 ms with 16 callers, a lock took 40 ms with one conn (the round trip
	// of the pipeline that had just left, and then its own), and 22 ms with eight.
	farLink  = time.Millisecond
	farConns = 8
)

// A conn is one connection of a lane and the goroutine that works it: it takes
// what is in the lane's queue, sends it as one pipeline, reads the replies and
// tells those who asked. The first conn stands for the node: when it cannot
// connect, the node is down. The others only help out.
//
// Conns keep the order of a key by never being under way with the same one at
// the same time: take leaves in the queue what another conn has the key of,
// and that conn looks into the queue again when it has its replies.
type conn struct {
	lane  *Lane
	srv   Server
	first bool
	name  string
	wake  chan struct{}

	// Guarded by the node's mutex.
	idle bool      // waits for wake
	busy time.Time // since when the server has owed it an answer; zero: it does not
	load int       // requests under way

	// The node's breaks when it connected. One that is behind has a connection to a
	// server that has gone since, perhaps, and makes a new one before it is used.
	breaks int

	// The goroutine's own, kept between batches.
	batch, dropped []*Request
	rests          int // how often it has waited for work
}

func (n *Lane) addConn(srv Server) {
	s := &conn{
		lane: n, srv: srv, first: len(n.conns) == 0, wake: make(chan struct{}, 1),
		name: fmt.Sprintf("%s#%d", n.Name, len(n.conns)),
	}
	n.conns = append(n.conns, s)
	n.running.Go(s.run)
}

// grow adds a conn to a lane that has fewer than a far link gets, when all are under way and
// this request could leave with another. Not while one connects. Under the mutex.
//
// A link whose round trips differ a lot is as a rule not far: the computer is busy. Connections,
// over each of which the server is asked what it is and given the scripts, are what it can do
// with least, and with eight times as many at once it does nothing else: they take longer than
// a lane waits, and are made again. So such a lane gets them one at a time, for what is there
// to be sent.
func (n *Lane) grow(q *Request) {
	if n.inFlight == nil || len(n.conns) == farConns || n.draining || n.inFlight[q.Claim.Key] > 0 {
		return
	}
	for _, s := range n.conns {
		if s.load == 0 {
			return
		}
	}
	n.addConn(n.conns[0].srv.Fork())
}

// nudge wakes an idle conn. Under the node's mutex.
func (s *conn) nudge() {
	s.idle = false
	s.wake <- struct{}{}
}

func (s *conn) run() {
	for s.join() {
		for {
			batch, ok := s.next()
			if !ok {
				return
			}
			if batch == nil {
				break
			}
			err := carryOut(s.srv, s.lane.node, batch)
			s.settle(batch)
			if err == nil {
				continue
			}
			s.reconnectAll()
			if wire.Classify(err) != wire.Unreachable { // else it is worth a look: join finds out
				s.failed(err)
			}
			break
		}
	}
}

// reconnectAll has all conns look after their connections: a server that was restarted
// has closed them all.
func (s *conn) reconnectAll() {
	n := s.lane
	n.mu.Lock()
	defer n.mu.Unlock()
	n.breaks++
	for _, other := range n.conns {
		if other.idle {
			other.nudge()
		}
	}
}

// join connects, as often as it takes, and reports false when the lane is to
// end instead.
func (s *conn) join() bool {
	n := s.lane
	for pause := minProbe; ; pause = min(2*pause, maxProbe) {
		n.mu.Lock()
		s.breaks = n.breaks
		if s.first && n.down == nil {
			s.busy = n.clock.Now() // another one owes nobody anything until it is connected
		}
		n.mu.Unlock()
		rtt, err := s.srv.Connect(n.ctx)
		n.mu.Lock()
		s.busy = time.Time{}
		if err == nil && rtt >= farLink && s.first && n.inFlight == nil && !n.draining {
			n.inFlight = make(map[string]int) // nothing is under way
			if u, ok := s.srv.(interface{ Unsteady() bool }); !ok || !u.Unsteady() {
				for range farConns - 1 {
					n.addConn(s.srv.Fork())
				}
			}
		}
		n.mu.Unlock()
		if err != nil {
			s.failed(err)
		} else if s.first {
			n.up()
		}
		if s.first && n.tried != nil {
			n.tried <- n.Index
			n.tried = nil
		}
		if err == nil {
			return true
		}
		// Jitter, so that a hundred processes do not all knock at once.
		timer := time.NewTimer(Jittered(pause, n.host.Jitter()))
		select {
		case <-timer.C:
		case <-n.drain:
		}
		timer.Stop()
		n.host.Woke(sim.Conn, s.name, s.rests)
		select {
		case <-n.drain:
			return false // nobody to tell, and the TTL is the net
		default:
		}
	}
}

// failed deals with a connection that could not be made, or is of no use. Where
// it is another conn's, its requests have their answer, and the first finds out
// by itself whether the node is down.
func (s *conn) failed(err error) {
	if s.first {
		s.lane.fail(err)
	}
}

// next waits for requests and takes a batch of them; nil when the conn should
// connect again first. It reports false when the lane is closed and has nothing
// left for this conn to send.
func (s *conn) next() (batch []*Request, ok bool) {
	n := s.lane
	for {
		n.mu.Lock()
		if s.breaks != n.breaks && !n.draining {
			n.mu.Unlock()
			return nil, true
		}
		if len(n.pendingReleases) > 0 && !n.clock.Now().Before(n.retry) {
			n.requeuePending()
		}
		s.take()
		if len(s.batch)+len(s.dropped) > 0 {
			n.mu.Unlock()
			for i, q := range s.dropped {
				s.dropped[i] = nil
				n.answer(q, wire.Reply{Status: wire.Timeout})
			}
			s.dropped = s.dropped[:0]
			if len(s.batch) > 0 {
				return s.batch, true
			}
			continue
		}
		if n.draining {
			n.mu.Unlock()
			return nil, false
		}
		s.idle = true
		s.rests++
		var retry <-chan time.Time
		if s.first && len(n.pendingReleases) > 0 {
			retry = time.After(Left(n.retry, n.clock.Now()))
		}
		n.mu.Unlock()
		select {
		case <-s.wake:
			// Whoever woke us is one of several, more often than not: let the
			// others in before the pipeline leaves.
			runtime.Gosched()
			n.host.Woke(sim.Conn, s.name, s.rests)
			continue
		case <-retry:
		case <-n.drain:
		}
		n.host.Woke(sim.Conn, s.name, s.rests)
		n.mu.Lock()
		if !s.idle { // woken as well: take the token back
			<-s.wake
		}
		s.idle = false
		n.mu.Unlock()
	}
}

// take moves up to maxBatch requests from the queue to the batch, and those on
// the way that nobody wants any more to dropped. Under the node's mutex.
func (s *conn) take() {
	n := s.lane
	clear(s.batch)
	s.batch = s.batch[:0]
	if len(n.queue) == 0 {
		return
	}
	now, rest := n.clock.Now(), n.queue[:0]
	for _, q := range n.queue {
		at := &q.Claim.at[n.Index]
		switch {
		case len(s.batch) >= maxBatch || s.elsewhere(q.Claim.Key):
			rest = append(rest, q)
		case n.late(q, now) || q.Op == wire.Acquire && *at != queued: // a release has cancelled it
			s.dropped = append(s.dropped, q)
		default:
			if q.Op == wire.Acquire {
				*at = inFlight
				if q.Claim.Reached != nil && q.Ticket != Ours { // who fills up a node is in no queue there
					q.Claim.Reached[n.Index] = true
				}
			}
			// What is owed for the name goes first, or an earlier claim of ours
			// would be in the way of this one.
			s.batch = append(n.appendPending(s.batch, q.Claim.Key, now), q)
		}
	}
	clear(n.queue[len(rest):])
	n.queue = rest
	if n.inFlight != nil {
		for _, q := range s.batch {
			n.inFlight[q.Claim.Key]++
		}
	}
	if s.load = len(s.batch); s.load > 0 {
		s.busy = now
	}
}

// elsewhere reports whether another conn is under way with this key. What this
// one takes now is counted only afterwards, so it may take several of one key.
func (s *conn) elsewhere(key string) bool { return s.lane.inFlight[key] > 0 }

// settle notes where the tokens of a batch are now, then tells those who asked.
func (s *conn) settle(batch []*Request) {
	n := s.lane
	n.mu.Lock()
	s.busy, s.load = time.Time{}, 0
	for _, q := range batch {
		if n.inFlight != nil {
			if n.inFlight[q.Claim.Key]--; n.inFlight[q.Claim.Key] == 0 {
				delete(n.inFlight, q.Claim.Key)
			}
		}
		switch at := &q.Claim.at[n.Index]; {
		case n.releases(q) && !q.Reply.Status.SettlesRelease():
			if len(n.pendingReleases) == 0 {
				n.retry = n.clock.Now().Add(maxProbe / 4)
			}
			n.pendingReleases[q.Claim.Key] = append(n.pendingReleases[q.Claim.Key], pendingRelease{q.Claim, q.Deadline})
			if first := n.conns[0]; first.idle {
				first.nudge() // it is the one to try again
			}
		case n.releases(q):
			*at = absent
		case (*at == inFlight || *at == sent) && q.Reply.MeansAbsent(q.Op):
			*at = q.Claim.elsewhere // a release that came in the meantime is in the queue, and has its mark
		case *at == inFlight && q.Op == wire.Acquire,
			// It was handed over there since, or may have been, and has a whole TTL now: a
			// release is to hand it on there, too.
			*at == due && q.Op == wire.Extend && !q.Reply.MeansAbsent(wire.Extend):
			*at = sent
		}
	}
	n.mu.Unlock()
	for _, q := range batch {
		q.To.Deliver(n.Index, q)
	}
}
