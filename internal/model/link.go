package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// The directions of a link.
const (
	requests = iota
	replies
)

// A Link is one connection from a process to a node.
type Link struct {
	node     *Node
	host     *Host
	patience time.Duration
	seed     sim.Seed
	actor    int
	forks    *int // how many more links this lane has
	sent     int
	epoch    int
	broken   bool

	interrupted chan struct{}
	once        *sync.Once
}

// Dial gives a connection that is not made yet.
func (n *Node) Dial(h *Host, patience time.Duration) *Link {
	l := &Link{node: n, host: h, patience: patience, forks: new(int), seed: n.seed.For(h.name), actor: forLinks + 8*number(n.Name)}
	l.interrupted, l.once = make(chan struct{}), new(sync.Once)
	return l
}

// Fork may be called while the link is in use: it reads what never changes.
func (l *Link) Fork() *Link {
	*l.forks++
	return &Link{
		node: l.node, host: l.host, patience: l.patience, forks: l.forks,
		seed: l.seed.Of(-*l.forks), actor: l.actor + *l.forks%8,
		broken: true, interrupted: make(chan struct{}), once: new(sync.Once),
	}
}

func (l *Link) Interrupt() { l.once.Do(func() { close(l.interrupted) }) }

// A message is one pipeline, or what it takes to make a connection.
type message struct {
	connect      bool
	join         bool
	hello        wire.Hello // connect, join
	mark         wire.Mark  // what the node's marker is, if it is to have one
	calls        []Call
	subscription *subscription // wants to hear
	epoch        int
	id           sim.Seed
	from         *Host

	err   error
	ended bool          // the reply may leave, or there will be none
	done  chan struct{} // closed then, if somebody waits
}

// end says what became of the message. Under the node's mutex.
func (m *message) end(err error) {
	m.err, m.ended = err, true
	if m.done != nil {
		close(m.done)
	}
}

// wait gives a channel that is closed when the message has ended; nil: it has.
// Under the node's mutex.
func (m *message) wait() <-chan struct{} {
	if m.ended {
		return nil
	}
	m.done = make(chan struct{})
	return m.done
}

func (l *Link) Connect(ctx context.Context, hello wire.Hello) (time.Duration, wire.Mark, error) {
	l.sent++
	m := &message{connect: true, hello: hello, id: l.seed.Of(l.sent)}
	err := l.send(ctx, m)
	l.broken = err != nil
	if l.broken { // it may still be on its way
		return l.node.rtt, wire.Mark{}, err
	}
	l.epoch = m.epoch
	return l.node.rtt, m.mark, nil
}

// Join takes a round trip, like any other message.
func (l *Link) Join(hello wire.Hello) (wire.Mark, error) {
	m := &message{join: true, hello: hello}
	if err := l.exec(m); err != nil {
		return wire.Mark{}, err
	}
	return m.mark, nil
}

func (l *Link) Exec(calls []Call) error {
	// A message is the network's: what nobody waits for any more may still arrive.
	m := &message{calls: slices.Clone(calls)}
	err := l.exec(m)
	if err != nil && err != errReset { // it may yet be carried out
		return fail(calls, err)
	}
	for i := range calls {
		calls[i].Value, calls[i].Err = m.calls[i].Value, m.calls[i].Err
		if err != nil && calls[i].Value == nil && calls[i].Err == nil {
			calls[i].Err = err // broken before it was carried out
		}
	}
	return err
}

func (l *Link) exec(m *message) error {
	if l.broken {
		return errEnded
	}
	l.sent++
	m.epoch, m.id = l.epoch, l.seed.Of(l.sent)
	err := l.send(context.Background(), m)
	l.broken = err != nil
	return err
}

func fail(calls []Call, err error) error {
	for i := range calls {
		calls[i].Value, calls[i].Err = nil, err
	}
	return err
}

// connOf is the place among the links of a lane's connection, by its name: that of
// the link that it works.
func connOf(name string) int {
	node, conn, _ := strings.Cut(name, "#")
	return 8*number(node) + number(conn)%8
}

// send carries a message to the node and waits for the reply.
func (l *Link) send(ctx context.Context, m *message) error {
	if l.host.gone() {
		return errEnded
	}
	m.from = l.host
	there, back := l.latency(m.id)
	limit := time.Now().Add(l.patience)
	var done <-chan struct{}
	if there < l.patience {
		l.host.sleep(there, l.actor)
		l.node.mu.Lock()
		l.node.arrive(m)
		done = m.wait()
		l.node.mu.Unlock()
	} else {
		m.done = make(chan struct{})
		done = m.done
		l.node.mu.Lock()
		l.node.later(l.host, there, func() { l.node.arrive(m) })
		l.node.mu.Unlock()
	}
	var err error
	if done != nil {
		timer := time.NewTimer(time.Until(limit))
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		case <-ctx.Done():
		case <-l.interrupted:
		}
		time.Sleep(time.Nanosecond) // what else happens at this instant has happened then
		if err = l.cut(ctx, done); err != nil {
			back = 0 // there is none
		}
		back--
	}
	l.host.wake(max(0, back+m.id.Below(Moment-Slot)), l.actor)
	switch {
	case l.host.gone():
		return errEnded
	case err != nil:
		return err
	}
	return m.err
}

// cut is why nobody waits for a reply any more; nil: there is one.
func (l *Link) cut(ctx context.Context, done <-chan struct{}) error {
	over := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	switch {
	case over(done):
		return nil
	case over(l.interrupted):
		return errEnded
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("reading: %w", context.DeadlineExceeded)
}

// arrive is the end of a message's way to the node. Under the mutex.
func (n *Node) arrive(m *message) {
	if !n.down && (n.hung || n.cut[requests]) {
		n.parked = append(n.parked, m)
	} else {
		n.receive(m)
	}
}

// later has something come to pass after d or a little more, at an instant that nothing else
// has: something between a node and a process, which is none of its actors. Under the mutex.
func (n *Node) later(h *Host, d time.Duration, f func()) (at time.Time) {
	at = time.Now().Add(d)
	at = at.Add((h.place + forLate - time.Duration(at.UnixNano())) & (Slot - 1))
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
// round trip each, and now and then a lot more.
func (l *Link) latency(id sim.Seed) (there, back time.Duration) {
	l.node.mu.Lock()
	defer l.node.mu.Unlock()
	return l.node.latency(id)
}

// latency is the same. Under the mutex.
func (n *Node) latency(id sim.Seed) (there, back time.Duration) {
	leg := func(id sim.Seed) time.Duration {
		d := n.rtt/4 + id.Below(n.rtt/2) + n.slow
		if id.For("late").OneIn(32) {
			d += id.For("later").Below(8 * n.rtt)
		}
		return d + id.For("jitter").Below(n.jitter) + 1
	}
	return leg(id.Of(requests)), leg(id.Of(replies))
}
