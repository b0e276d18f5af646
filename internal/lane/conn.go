package lane

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
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

	// A link with a round trip of farLink or more gets farConns conns. Measured over 20 ms with
	// 16 callers, a lock took 40 ms with one conn (the round trip of the pipeline that had just
	// left, and then its own), and 22 ms with eight.
	farLink  = time.Millisecond
	farConns = 8
	farPause = 30 * time.Second // after one that could not connect, before the next
)

// A conn is one connection of a lane, with the goroutine that serves it: the goroutine takes
// what is in the lane's queue, sends it as one pipeline, reads the replies and delivers them.
// The first conn stands for the node: when it cannot connect, the node is down. The others
// only add capacity, and end when they cannot connect.
//
// Conns keep the order of a key in that no two are under way with the same key: take leaves in
// the queue what has a key of another conn, and that conn looks into the queue again when it
// has its replies. A release for which nothing has to wait is left out of that (ordered).
type conn struct {
	lane  *Lane
	srv   Server
	first bool
	wake  chan struct{}

	number int // none of the lane's other conns has it
	name   string

	// Guarded by the lane's mutex.
	idle bool      // waits for wake
	busy time.Time // since when the server has owed it an answer; zero: it owes none
	load int       // requests under way

	// The lane's breaks when this conn connected. If it is behind, the connection may be to a
	// server process that is gone, and the conn makes a new one before it sends.
	breaks int

	// Used by the conn's goroutine only, and kept between batches.
	batch, dropped []*Request
	rests          int // how often it has waited for work
}

func (n *Lane) addConn(srv Server) {
	number := 0 // the first that no other conn has
	for slices.ContainsFunc(n.conns, func(other *conn) bool { return other.number == number }) {
		number++
	}
	s := &conn{
		lane: n, srv: srv, first: len(n.conns) == 0, wake: make(chan struct{}, 1),
		number: number, name: fmt.Sprintf("%s#%d", n.Name, number),
	}
	n.conns = append(n.conns, s)
	n.serving++
	n.running.Go(s.run)
}

// grow adds a conn to a lane on a far link that does not have all of its conns, if every conn
// is under way and another could send this request. It adds none while one connects. Under the
// mutex.
//
// A link whose round trips differ a lot is as a rule not far: the computer is busy. Over each
// new connection the server is asked what it is and given the scripts, which is the last thing
// that a busy computer needs. With eight new connections at once it does nothing else: they take
// longer than a lane waits, and are made again. So such a lane gets them one at a time, when
// there is something to send.
func (n *Lane) grow(q *Request) {
	if n.inFlight == nil || len(n.conns) == farConns || n.draining || n.inFlight[q.Claim.Key] > 0 || n.down != nil {
		return
	}
	if now := n.clock.Now(); Left(n.growAfter, now) > 0 && Left(n.growAfter, now) <= farPause {
		return
	}
	for _, s := range n.conns {
		if s.load == 0 {
			return
		}
	}
	n.addConn(n.conns[0].srv.Fork())
}

// nudge wakes an idle conn. Under the lane's mutex.
func (s *conn) nudge() {
	s.idle = false
	s.wake <- struct{}{}
}

// run serves the connection until the lane ends.
func (s *conn) run() {
	defer s.lane.left()
	for s.join() {
		for {
			batch, do := s.next()
			if do == end {
				return
			}
			if do == reconnect {
				break
			}
			var err error
			if do == rejoin {
				err = s.srv.Join()
				s.owes(time.Time{})
			} else {
				err = carryOut(s.srv, s.lane.node, batch)
				s.settle(batch)
			}
			if err == nil {
				continue
			}
			s.reconnectAll()
			if wire.Classify(err) != wire.Unreachable { // otherwise join finds out whether the node is down
				s.failed(err)
			}
			break
		}
	}
}

// left closes all connections when the last conn has ended: nobody else does so if the node is no member any
// more and the Locker goes on.
func (n *Lane) left() {
	n.mu.Lock()
	n.serving--
	last := n.serving == 0
	n.mu.Unlock()
	if last {
		n.force()
		n.ended.Store(true)
	}
}

// reconnectAll makes all conns check their connections: a server that was restarted has
// closed them all.
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

// join connects, as often as it takes. It reports false when the lane ends before it has
// succeeded; and if the conn is not the first, when it fails: the node can do without it.
func (s *conn) join() bool {
	n := s.lane
	for pause := minProbe; ; pause = min(2*pause, maxProbe) {
		n.mu.Lock()
		s.breaks = n.breaks
		n.again = n.again && !s.first
		if s.first && n.down == nil {
			s.busy = n.clock.Now() // only the first: until another is connected, no request depends on it
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
		if !s.first {
			s.giveUp()
			return false
		}
		// Jitter, so that a hundred processes do not all reconnect at once.
		timer := time.NewTimer(Jittered(pause, n.host.Jitter()))
		select {
		case <-timer.C:
		case <-n.drain:
		}
		timer.Stop()
		n.host.Woke(sim.Conn, s.name, s.rests)
		select {
		case <-n.drain:
			return false // no caller waits, and the TTL is the backstop
		default:
		}
	}
}

// giveUp takes a conn that could not connect out of the lane. The server may have no room for more
// clients, and then leaves out one that has no connection yet. So the lane adds none for a while.
func (s *conn) giveUp() {
	n := s.lane
	n.mu.Lock()
	n.conns = slices.DeleteFunc(n.conns, func(other *conn) bool { return other == s })
	n.growAfter = n.clock.Now().Add(Jittered(farPause, n.host.Jitter()))
	n.mu.Unlock()
	s.srv.Interrupt()
}

// failed handles a connection that could not be made, or failed. If the conn is not the first,
// nothing is left to do: its requests have their answers, and the first conn finds out by
// itself whether the node is down.
func (s *conn) failed(err error) {
	if s.first {
		s.lane.fail(err)
	}
}

// What a conn has to do next.
const (
	send      = iota // a batch
	rejoin           // the server
	reconnect        // to it
	end              // the lane is closed and has nothing left for this conn to send
)

// owes records since when the server has owed an answer.
func (s *conn) owes(since time.Time) {
	s.lane.mu.Lock()
	defer s.lane.mu.Unlock()
	s.busy = since
}

// next waits for requests and takes a batch of them, or for something else to do.
func (s *conn) next() (batch []*Request, do int) {
	n := s.lane
	for {
		n.mu.Lock()
		if s.breaks != n.breaks && !n.draining {
			n.mu.Unlock()
			return nil, reconnect
		}
		if s.first && n.again && !n.draining {
			n.again, s.busy = false, n.clock.Now()
			n.mu.Unlock()
			return nil, rejoin
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
				return s.batch, send
			}
			continue
		}
		if n.draining {
			n.mu.Unlock()
			return nil, end
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
			// More often than not several requests come at once: let the other goroutines
			// submit theirs before the pipeline leaves.
			runtime.Gosched()
			n.host.Woke(sim.Conn, s.name, s.rests)
			continue
		case <-retry:
		case <-n.drain:
		}
		n.host.Woke(sim.Conn, s.name, s.rests)
		n.mu.Lock()
		if !s.idle { // woken as well: consume the wake-up
			<-s.wake
		}
		s.idle = false
		n.mu.Unlock()
	}
}

// take moves up to maxBatch requests from the queue to the batch, and the ones that it comes
// across whose answer is no longer wanted to dropped. Under the lane's mutex.
func (s *conn) take() {
	n := s.lane
	clear(s.batch)
	s.batch = s.batch[:0]
	if len(n.queue) == 0 {
		return
	}
	now, rest := n.clock.Now(), n.queue[:0]
	for _, q := range n.queue {
		switch {
		case len(s.batch) >= maxBatch || s.elsewhere(q.Claim.Key):
			rest = append(rest, q)
		case n.late(q, now) || q.Op == wire.Acquire && n.at(q.Claim) != queued: // late, or cancelled by a release
			s.dropped = append(s.dropped, q)
		default:
			if q.Op == wire.Acquire {
				n.put(q.Claim, inFlight)
			}
			// What is owed for the key goes first, or an earlier claim of this client would be
			// in the way of this one.
			s.batch = append(n.appendPending(s.batch, q.Claim.Key, now), q)
		}
	}
	clear(n.queue[len(rest):])
	n.queue = rest
	if n.inFlight != nil {
		for _, q := range s.batch {
			if q.ordered() {
				n.inFlight[q.Claim.Key]++
			}
		}
	}
	if s.load = len(s.batch); s.load > 0 {
		s.busy = now
	}
}

// ordered reports whether what comes later for the same key has to wait for the answer. What does not is a waiter that
// gives back a key that it was granted exclusively for its place: should its next attempt arrive first, the node refuses it,
// and nothing else is changed. If it had to wait, the next attempt of a call that tries once would take a round trip more, and
// over a far link the call does not have the time for it. Where all keys are shared the next attempt would be granted, and
// the place would be that of a waiter that has the lock already: others would wait behind it for a lease.
func (q *Request) ordered() bool {
	return q.Op != wire.Release || !q.Claim.KeepPlace || strings.IndexByte(q.Claim.Modes, wire.ModeX) < 0
}

// elsewhere reports whether another conn is under way with this key. What this conn takes in
// the current batch is counted only afterwards, so it may take several requests of one key.
func (s *conn) elsewhere(key string) bool { return s.lane.inFlight[key] > 0 }

// revive gives the releases that wait behind an acquire of plain commands the time that they would have if
// they were new, if it was answered late. Such a release may have waited for longer than it is kept, and
// the key may have been set just now. Under the lane's mutex.
func (n *Lane) revive(acquire *Request) {
	now := n.clock.Now()
	if !now.After(acquire.Deadline) {
		return
	}
	for _, q := range n.queue {
		if q.Claim == acquire.Claim && q.Op == wire.Release {
			q.Deadline = q.Claim.gone(now)
		}
	}
}

// settle records where the tokens of a batch are now, then delivers the replies.
func (s *conn) settle(batch []*Request) {
	n := s.lane
	n.mu.Lock()
	s.busy, s.load = time.Time{}, 0
	for _, q := range batch {
		if n.inFlight != nil && q.ordered() {
			if n.inFlight[q.Claim.Key]--; n.inFlight[q.Claim.Key] == 0 {
				delete(n.inFlight, q.Claim.Key)
			}
		}
		if q.Step() == wire.Plain && n.at(q.Claim) == releasing {
			n.revive(q)
		}
		switch at := n.at(q.Claim); {
		case q.Op == wire.Release && !q.Reply.Status.SettlesRelease():
			if len(n.pendingReleases) == 0 {
				n.retry = n.clock.Now().Add(maxProbe / 4)
			}
			n.pendingReleases[q.Claim.Key] = append(n.pendingReleases[q.Claim.Key], pendingRelease{q.Claim, q.Deadline})
			if first := n.conns[0]; first.idle {
				first.nudge() // the first conn sends it again
			}
		case q.Op == wire.Release:
			n.put(q.Claim, absent)
		case (at == inFlight || at == sent) && q.Reply.MeansAbsent(q.Op):
			n.put(q.Claim, absent) // not if a release came in the meantime: it is in the queue, and has set at
		case at == inFlight && q.Op == wire.Acquire:
			n.put(q.Claim, sent)
		}
	}
	n.mu.Unlock()
	for _, q := range batch {
		q.To.Deliver(n, q)
	}
}
