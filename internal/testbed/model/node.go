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

// A Node is a Redis server in memory, and the network before it.
type Node struct {
	Name string

	seed sim.Seed
	rtt  time.Duration

	store // and its mu, which protects what follows, too

	subscriptions []*subscription

	down, hung  bool
	cut         [2]bool       // requests, replies: they do not get through
	stalled     time.Time     // requests over connections made before do not get through; zero: they do
	epoch       int           // counts how often all connections were broken: older ones do not work
	slow        time.Duration // what each direction takes longer; see Delay
	jitter      time.Duration
	lose, tear  int // so many next replies get lost, or torn
	repeat      int // so many next messages are carried out twice; see Repeat
	repeatLate  int
	repeatAfter time.Duration
	parked      []*message                                     // requests that are held back
	unanswered  []*message                                     // carried out, and the reply is held back
	before      func(from *Host, calls []Call) <-chan struct{} // see Before; nil: nobody wants to see messages

	watch func(Sight) // see Watch; nil: nobody watches
	seen  string      // the marker that sees has last read
	mark  wire.Marker // what it says

	native      bool           // it has commands that compare the token themselves
	late        map[int64]bool // the instants that later has given away
	lateScripts bool           // see Churn
}

// NewNode returns a node that is well, with a round trip of about rtt, and has run for so long that it may vote. s and
// name decide all that happens by chance. With rtt 0 the node is exact: a message takes what Delay and [Host.Far] say,
// each way, and not a nanosecond more, the node executes its commands at one instant, and goroutines go on when they can.
// So a test knows to the nanosecond what comes when, but no two runs are the same.
func NewNode(s sim.Seed, name string, rtt time.Duration) *Node {
	n := &Node{Name: name, seed: s.For(name), rtt: rtt, late: make(map[int64]bool)}
	n.init(name, n.broadcast)
	return n
}

func (n *Node) exact() bool { return n.rtt == 0 }

// gap returns the time between two events of which one comes after the other.
func (n *Node) gap() time.Duration {
	if n.exact() {
		return 0
	}
	return 1
}

// carryOut executes a message from its start, and replies; or only begins it, and goes on later. Caller holds n.mu.
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
		n.execute(m) // the second execution is the one that is answered
		m.prepare()
	}
	if pause := n.pause(m); pause > 0 {
		m.begun, m.stream.under = true, m
		n.later(m.from, pause, func() { n.arrive(m) })
		return
	}
	n.finish(m)
}

// finish executes the rest of a message, and replies, unless Lose or Tear loses the reply. Caller holds n.mu.
func (n *Node) finish(m *message) {
	n.execute(m)
	defer n.reply(m)
	// No client sends an acquire by plain commands again. It is carried out late only after a hang, with its release
	// behind it: so it is not repeated here.
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

// lost drops the answers to the calls from index from on. Without a whole reply the trailer (the replies at its end) is
// lost, too, and with it the answers to all calls without a script, and the marker that was read after an extension.
func (m *message) lost(from int) {
	for i := range m.calls {
		c := &m.calls[i]
		if c.Shown = nil; i >= from || c.Plain != nil || c.Said != nil {
			c.Value, c.Plain, c.Said, c.Shown, c.Err = nil, nil, nil, nil, errReset
		}
	}
	m.err = errReset
}

// execute carries out the commands of a message that have not been carried out yet. Caller holds n.mu.
func (n *Node) execute(m *message) {
	middle := -1
	if n.lateScripts && len(n.scripts) == 0 && len(m.calls) > 1 {
		middle = 1 + int(m.id.For("scripts").Below(time.Duration(len(m.calls)-1)))
	}
	for m.next.call < len(m.calls) {
		if m.next.call == middle { // another client has loaded the scripts
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

// release lets messages that were held back go on, if nothing holds them back now. Caller holds n.mu.
func (n *Node) release() {
	if n.down {
		for _, m := range append(n.parked, n.unanswered...) {
			m.end(errReset)
		}
		n.parked, n.unanswered = nil, nil
	}
	if !n.hung && !n.cut[requests] {
		parked := n.parked
		n.parked = nil
		for _, m := range parked {
			n.arrive(m)
		}
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

// arrive takes a message that has reached the node, and holds it back during a hang, a cut or a stall. Caller holds n.mu.
func (n *Node) arrive(m *message) {
	if !n.down && (n.hung || n.cut[requests] || m.stream.made.Before(n.stalled)) {
		n.parked = append(n.parked, m)
	} else {
		n.receive(m)
	}
}

// receive carries out a message that has arrived, once the one before it over its connection has been carried out, and
// then those that have arrived meanwhile. Caller holds n.mu.
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

// take carries out the next message of a connection, or ends it if node or connection is down. Caller holds n.mu.
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

// reply lets the reply to a message leave, or holds it back while replies are cut off. Caller holds n.mu.
func (n *Node) reply(m *message) {
	if n.cut[replies] {
		n.unanswered = append(n.unanswered, m)
		return
	}
	m.end(m.err)
}

// waits calls the function of Before, and reports whether the message has to wait. If it has, it arrives again later, and
// those that arrive over its connection meanwhile wait behind it. Caller holds n.mu.
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

// later calls f after d or a little more, with n.mu held, at an instant at which nothing else happens, and returns that
// instant; an exact node calls f after d, and at once if d is 0. It is for events between a node and a process that no
// actor of the process causes. Caller holds n.mu.
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

// latency returns how long the message with this id takes, and its reply: about half of the node's round trip each, and
// sometimes much more. Caller holds n.mu.
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

// set calls f, which changes the node, under n.mu, and then lets go what nothing holds back any more.
func (n *Node) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.release()
}

// Tokens iterates over the locks on the node: the keys, in order, with their tokens.
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

// Waiters yields who waits at the node, with the key, in the order of the keys and of the tickets.
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

// Subscriptions returns how many clients listen to the node.
func (n *Node) Subscriptions() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.subscriptions)
}

// Marker returns the node's marker, the key that names one life of its data.
func (n *Node) Marker() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.marker
}

// Kept returns the description of the set (members, settings) that the node keeps.
func (n *Node) Kept() wire.Kept {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kept
}

// Ghost reports whether a key was set by an acquire by plain commands (wire.Plain) whose client had given up the
// connection: carried out after the release, which overtook it over another connection, or a TTL or more after it was
// sent. The release of the latter may never come: a client keeps it for two TTLs, in which it may have been stopped. Such
// a key lives for its TTL.
func (n *Node) Ghost(key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.keys[key].ghost
}
