package redlock

import (
	"fmt"
	"runtime"
	"time"

	"github.com/quorumlock/redlock/internal/seam"
)

const (
	// maxBatch bounds a pipeline, and with it the buffers on both sides.
	maxBatch = 512

	// The pauses between two attempts to reach a node that is down.
	minProbe = 50 * time.Millisecond
	maxProbe = time.Second

	// A link with a round trip from farLink on gets farStrands strands. Measured
	// over 20 ms with 16 callers, a lock took 40 ms with one strand (the round trip
	// of the pipeline that had just left, and then its own), and 22 ms with eight.
	farLink    = time.Millisecond
	farStrands = 8
)

// A strand is one connection of a lane and the goroutine that works it: it takes
// what is in the lane's queue, sends it as one pipeline, reads the replies and
// tells those who asked. The first strand stands for the node: when it cannot
// connect, the node is down. The others only help out.
//
// Strands keep the order of a key by never being under way with the same one at
// the same time: take leaves in the queue what another strand has the key of,
// and that strand looks into the queue again when it has its replies.
type strand struct {
	node  *node
	srv   server
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
	batch, dropped []*request
	rests          int // how often it has waited for work
}

func (n *node) addStrand(srv server) {
	s := &strand{
		node: n, srv: srv, first: len(n.strands) == 0, wake: make(chan struct{}, 1),
		name: fmt.Sprintf("%s#%d", n.name, len(n.strands)),
	}
	n.strands = append(n.strands, s)
	n.running.Go(s.run)
}

// grow adds a strand to a lane that has fewer than a far link gets, when all are under way and
// this request could leave with another. Not while one connects. Under the mutex.
//
// A link whose round trips differ a lot is as a rule not far: the computer is busy. Connections,
// over each of which the server is asked what it is and given the scripts, are what it can do
// with least, and with eight times as many at once it does nothing else: they take longer than
// a lane waits, and are made again. So such a lane gets them one at a time, for what is there
// to be sent.
func (n *node) grow(q *request) {
	if n.flying == nil || len(n.strands) == farStrands || n.draining || n.flying[q.claim.key] > 0 {
		return
	}
	for _, s := range n.strands {
		if s.load == 0 {
			return
		}
	}
	n.addStrand(n.strands[0].srv.fork())
}

// nudge wakes an idle strand. Under the node's mutex.
func (s *strand) nudge() {
	s.idle = false
	s.wake <- struct{}{}
}

func (s *strand) run() {
	for s.join() {
		for {
			batch, ok := s.next()
			if !ok {
				return
			}
			if batch == nil {
				break
			}
			err := s.srv.exec(batch)
			s.settle(batch)
			if err == nil {
				continue
			}
			s.broke()
			if classify(err) != Unreachable { // else it is worth a look: join finds out
				s.failed(err)
			}
			break
		}
	}
}

// broke has all strands look after their connections: a server that was restarted
// has closed them all.
func (s *strand) broke() {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	n.breaks++
	for _, other := range n.strands {
		if other.idle {
			other.nudge()
		}
	}
}

// join connects, as often as it takes, and reports false when the lane is to
// end instead.
func (s *strand) join() bool {
	n := s.node
	for pause := minProbe; ; pause = min(2*pause, maxProbe) {
		n.mu.Lock()
		s.breaks = n.breaks
		if s.first && n.down == nil {
			s.busy = n.clock.Now() // another one owes nobody anything until it is connected
		}
		n.mu.Unlock()
		rtt, err := s.srv.connect(n.ctx)
		n.mu.Lock()
		s.busy = time.Time{}
		if err == nil && rtt >= farLink && s.first && n.flying == nil && !n.draining {
			n.flying = make(map[string]int) // nothing is under way
			if u, ok := s.srv.(interface{ unsteady() bool }); !ok || !u.unsteady() {
				for range farStrands - 1 {
					n.addStrand(s.srv.fork())
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
			n.tried <- n
			n.tried = nil
		}
		if err == nil {
			return true
		}
		// Jitter, so that a hundred processes do not all knock at once.
		timer := time.NewTimer(jittered(pause, n.host.Jitter()))
		select {
		case <-timer.C:
		case <-n.drain:
			timer.Stop()
			return false // nobody to tell, and the TTL is the net
		}
	}
}

// failed deals with a connection that could not be made, or is of no use. Where
// it is another strand's, its requests have their answer, and the first finds out
// by itself whether the node is down.
func (s *strand) failed(err error) {
	if s.first {
		s.node.fail(err)
	}
}

// next waits for requests and takes a batch of them; nil when the strand should
// connect again first. It reports false when the lane is closed and has nothing
// left for this strand to send.
func (s *strand) next() (batch []*request, ok bool) {
	n := s.node
	for {
		n.mu.Lock()
		if s.breaks != n.breaks && !n.draining {
			n.mu.Unlock()
			return nil, true
		}
		if len(n.owed) > 0 && !n.clock.Now().Before(n.retry) {
			n.repay()
		}
		s.take()
		if len(s.batch)+len(s.dropped) > 0 {
			n.mu.Unlock()
			for i, q := range s.dropped {
				s.dropped[i] = nil
				q.answer(n, reply{outcome: Timeout})
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
		if s.first && len(n.owed) > 0 {
			retry = time.After(left(n.retry, n.clock.Now()))
		}
		n.mu.Unlock()
		select {
		case <-s.wake:
			// Whoever woke us is one of several, more often than not: let the
			// others in before the pipeline leaves.
			runtime.Gosched()
			n.host.Woke(seam.Strand, s.name, s.rests)
			continue
		case <-retry:
		case <-n.drain:
		}
		n.host.Woke(seam.Strand, s.name, s.rests)
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
func (s *strand) take() {
	n := s.node
	clear(s.batch)
	s.batch = s.batch[:0]
	if len(n.queue) == 0 {
		return
	}
	now, rest := n.clock.Now(), n.queue[:0]
	for _, q := range n.queue {
		at := &q.claim.at[n.index]
		switch {
		case len(s.batch) >= maxBatch || s.elsewhere(q.claim.key):
			rest = append(rest, q)
		case n.late(q, now) || q.op == opAcquire && *at != queued: // a release has cancelled it
			s.dropped = append(s.dropped, q)
		default:
			if q.op == opAcquire {
				*at = asked
				if q.claim.reached != nil && q.ticket != ours { // who fills up a node is in no queue there
					q.claim.reached[n.index] = true
				}
			}
			// What is owed for the name goes first, or an earlier claim of ours
			// would be in the way of this one.
			s.batch = append(n.appendOwed(s.batch, q.claim.key, now), q)
		}
	}
	clear(n.queue[len(rest):])
	n.queue = rest
	if n.flying != nil {
		for _, q := range s.batch {
			n.flying[q.claim.key]++
		}
	}
	if s.load = len(s.batch); s.load > 0 {
		s.busy = now
	}
}

// elsewhere reports whether another strand is under way with this key. What this
// one takes now is counted only afterwards, so it may take several of one key.
func (s *strand) elsewhere(key string) bool { return s.node.flying[key] > 0 }

// settle notes where the tokens of a batch are now, then tells those who asked.
func (s *strand) settle(batch []*request) {
	n := s.node
	n.mu.Lock()
	s.busy, s.load = time.Time{}, 0
	for _, q := range batch {
		if n.flying != nil {
			if n.flying[q.claim.key]--; n.flying[q.claim.key] == 0 {
				delete(n.flying, q.claim.key)
			}
		}
		switch at := &q.claim.at[n.index]; {
		case n.releases(q) && !q.reply.outcome.settlesRelease():
			if len(n.owed) == 0 {
				n.retry = n.clock.Now().Add(maxProbe / 4)
			}
			n.owed[q.claim.key] = append(n.owed[q.claim.key], debt{q.claim, q.deadline})
			if first := n.strands[0]; first.idle {
				first.nudge() // it is the one to try again
			}
		case n.releases(q):
			*at = nowhere
		case (*at == asked || *at == sent) && q.reply.meansAbsent(q.op):
			*at = q.claim.absent // a release that came in the meantime is in the queue, and has its mark
		case *at == asked && q.op == opAcquire,
			// It was handed over there since, or may have been, and has a whole TTL now: a
			// release is to hand it on there, too.
			*at == due && q.op == opExtend && !q.reply.meansAbsent(opExtend):
			*at = sent
		}
	}
	n.mu.Unlock()
	for _, q := range batch {
		q.to.vote(n, q)
	}
}
