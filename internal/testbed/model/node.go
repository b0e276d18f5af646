package model

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Node is a Redis server and the network before it.
type Node struct {
	Name string

	seed sim.Seed
	rtt  time.Duration

	store // and the mutex, which protects what follows, too

	subscriptions []*subscription

	down, hung  bool
	cut         [2]bool // requests, replies
	epoch       int     // connections that were made in an earlier one are broken
	slow        time.Duration
	jitter      time.Duration
	lose, tear  int // replies
	repeat      int // requests
	repeatLate  int
	repeatAfter time.Duration
	parked      []*message // not arrived, or not read
	unanswered  []*message // carried out, the reply is held back
	before      func(from *Host, calls []Call) <-chan struct{}

	native      bool           // it has commands that compare the token themselves
	late        map[int64]bool // when something comes later; see later
	lateScripts bool           // see Churn
}

// NewNode is a node that is well, with a round trip of about rtt, and has been there
// for long. Without an rtt it is exact: a message takes what Delay and [Host.Far] say, each way, and not a nanosecond
// more, a node executes its commands at one instant, and goroutines go on when they can. Then a test knows to the
// nanosecond what comes when, and no two runs are the same.
func NewNode(s sim.Seed, name string, rtt time.Duration) *Node {
	n := &Node{Name: name, seed: s.For(name), rtt: rtt, late: make(map[int64]bool)}
	n.init(name, n.broadcast)
	return n
}

func (n *Node) exact() bool { return n.rtt == 0 }

// gap is between two events that come one after the other.
func (n *Node) gap() time.Duration {
	if n.exact() {
		return 0
	}
	return 1
}

// carryOut executes a message, and replies. Under the mutex.
func (n *Node) carryOut(m *message) {
	if m.connect || m.join {
		m.mark, m.err = n.join(&m.hello)
		n.reply(m)
		return
	}
	if n.waits(m) {
		return
	}
	m.prepare()
	if n.repeat > 0 {
		n.repeat--
		n.execute(m) // and the second time is the one that is answered
		m.prepare()
	}
	if pause := n.pause(m); pause > 0 {
		m.begun, m.stream.under = true, m
		n.later(m.from, pause, func() { n.arrive(m) })
		return
	}
	n.finish(m)
}

// finish executes the rest of a message, and replies. Under the mutex.
func (n *Node) finish(m *message) {
	n.execute(m)
	defer n.reply(m)
	// Nothing sends an acquire of plain commands again, and what sends one late is a node that hung: then
	// the release comes after it.
	if n.repeatLate > 0 && !m.has((*Call).plain) {
		n.repeatLate--
		again := &message{calls: slices.Clone(m.calls), id: m.id, from: m.from}
		again.prepare()
		n.later(m.from, n.repeatAfter/2+m.id.For("repeat").Below(n.repeatAfter/2), func() {
			if !n.down {
				n.execute(again)
			}
		})
	}
	whole := len(m.calls)
	switch {
	case n.lose > 0:
		n.lose--
		whole = 0
	case n.tear > 0:
		n.tear--
		whole /= 2
	default:
		return
	}
	m.lost(whole)
}

// lost has the answers to some calls get lost: all from this one on. Without a whole reply the trailer
// is lost, too, and with it all calls without a script, and the marker that was read after an extension.
func (m *message) lost(from int) {
	for i := range m.calls {
		c := &m.calls[i]
		if c.Shown = nil; i >= from || c.Plain != nil || c.Said != nil {
			c.Value, c.Plain, c.Said, c.Shown, c.Err = nil, nil, nil, nil, errReset
		}
	}
	m.err = errReset
}

// execute carries out the commands of a message that have not been carried out yet. Under the mutex.
func (n *Node) execute(m *message) {
	middle := -1
	if n.lateScripts && len(n.scripts) == 0 && len(m.calls) > 1 {
		middle = 1 + int(m.id.For("scripts").Below(time.Duration(len(m.calls)-1)))
	}
	for m.next.call < len(m.calls) {
		if m.next.call == middle { // another client has loaded them
			n.scripts[""], n.scripts[n.runID()] = true, true
		}
		n.step(m)
	}
	for m.trailer != nil && m.next.part < trailerParts {
		n.step(m)
	}
}

var (
	errReset   = error(syscall.ECONNRESET)
	errRefused = error(syscall.ECONNREFUSED)
	errEnded   = errors.New("interrupted")
)

// release has parked messages go on. Under the mutex.
func (n *Node) release() {
	if n.down {
		for _, m := range append(n.parked, n.unanswered...) {
			m.end(errReset)
		}
		n.parked, n.unanswered = nil, nil
	}
	if !n.hung && !n.cut[requests] {
		for _, m := range n.parked {
			n.receive(m)
		}
		n.parked = nil
	}
	if !n.hung && !n.cut[replies] {
		for _, m := range n.unanswered {
			m.end(m.err)
		}
		n.unanswered = nil
		for _, s := range n.subscriptions {
			if len(s.inbox) > 0 {
				s.signal()
			}
		}
	}
}

// arrive is the end of a message's way to the node. Under the mutex.
func (n *Node) arrive(m *message) {
	if !n.down && (n.hung || n.cut[requests]) {
		n.parked = append(n.parked, m)
	} else {
		n.receive(m)
	}
}

// receive takes in a message that has arrived, when the one before it over its connection has been carried out, and then
// those that have arrived meanwhile. Under the mutex.
func (n *Node) receive(m *message) {
	s := m.stream
	if s.under != nil && s.under != m {
		s.waiting = append(s.waiting, m)
		return
	}
	s.under = nil
	n.take(m)
	for s.under == nil && len(s.waiting) > 0 {
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		n.take(next)
	}
}

// take takes in the message that is next over its connection. Under the mutex.
func (n *Node) take(m *message) {
	switch {
	case m.subscription != nil && n.down:
		m.end(errRefused)
	case m.subscription != nil:
		if m.err = n.refusal(nil); m.err == nil {
			n.subscriptions = append(n.subscriptions, m.subscription)
		}
		n.reply(m)
	case m.connect && n.down:
		m.end(errRefused)
	case m.connect:
		m.epoch = n.epoch
		n.carryOut(m)
	case n.down || m.epoch != n.epoch:
		m.lost(0)
		m.end(errReset)
	case m.begun:
		n.finish(m)
	default:
		n.carryOut(m)
	}
}

func (n *Node) reply(m *message) {
	if n.cut[replies] {
		n.unanswered = append(n.unanswered, m)
		return
	}
	m.end(m.err)
}

// waits calls the function of Before. If the message is to wait, it comes back later, and those that arrive over its
// connection meanwhile wait, too. Under the mutex.
func (n *Node) waits(m *message) bool {
	if n.before == nil || m.admitted {
		return false
	}
	m.admitted = true
	until := n.before(m.from, m.calls)
	if until == nil {
		return false
	}
	m.stream.under = m
	go func() {
		<-until
		n.set(func() { n.arrive(m) })
	}()
	return true
}

// later has something come to pass after d or a little more, at an instant that nothing else
// has: something between a node and a process, which is none of its actors. At an exact node it comes to pass after d,
// and at once if that is nothing. Under the mutex.
func (n *Node) later(h *Host, d time.Duration, f func()) (at time.Time) {
	at = time.Now().Add(d)
	switch {
	case n.exact() && d <= 0:
		f()
		return at
	case n.exact():
		time.AfterFunc(d, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			f()
		})
		return at
	}
	at = at.Add((h.place + Arrivals - time.Duration(at.UnixNano())) & (Slot - 1))
	for n.late[at.UnixNano()] {
		at = at.Add(Slot)
	}
	n.late[at.UnixNano()] = true
	time.AfterFunc(time.Until(at), func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.late, at.UnixNano())
		f()
	})
	return at
}

// latency is how long a message takes, and its reply: about half of the node's
// round trip each, and now and then a lot more. Under the mutex.
func (n *Node) latency(id sim.Seed) (there, back time.Duration) {
	leg := func(id sim.Seed) time.Duration {
		d := n.rtt/4 + id.Below(n.rtt/2) + n.slow
		if id.For("late").OneIn(32) {
			d += id.For("later").Below(8 * n.rtt)
		}
		return d + id.For("jitter").Below(n.jitter) + n.gap()
	}
	return leg(id.Of(requests)), leg(id.Of(replies))
}

func (n *Node) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.release()
}

// Tokens is what is on the node: the keys, in order, with their tokens.
func (n *Node) Tokens() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, key := range n.list() {
			e := n.keys[key]
			if e.set == nil && !yield(key, e.token) {
				return
			}
			for _, token := range slices.Sorted(maps.Keys(e.set)) {
				if e.set[token].until >= n.now() && !yield(key, token) {
					return
				}
			}
		}
	}
}

// Waiters is who waits at the node, in the order of the keys and of the tickets.
func (n *Node) Waiters() iter.Seq2[string, wire.QueueEntry] {
	return func(yield func(string, wire.QueueEntry) bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(n.queues)) {
			for e := range n.queue(key).Alive(n.micros()) {
				if !yield(key, *e) {
					return
				}
			}
		}
	}
}

// Subscriptions is how many clients listen to the node.
func (n *Node) Subscriptions() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.subscriptions)
}

// Marker is the node's marker.
func (n *Node) Marker() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.marker
}

// Kept is what the node keeps of its set.
func (n *Node) Kept() wire.Kept {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kept
}

// Ghost reports whether a key was set by a command of an acquire (wire.Plain) that was carried out a TTL
// after it was sent or later, when its client had given up the connection. The release may never come:
// a client keeps it for two TTLs, in which it may have been stopped. Then the key lives for its TTL.
func (n *Node) Ghost(key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.keys[key].ghost
}
