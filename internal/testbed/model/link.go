package model

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Link is one connection from a process (Host) to a node. Any number of messages may be under way: they arrive in the
// order in which they were sent, and their replies are read in this order.
type Link struct {
	node     *Node
	host     *Host
	patience time.Duration // without a reply for so long, the link breaks
	seed     sim.Seed
	actor    int       // the sender, by its number in the process (host.go); the receiver is the next one
	sent     int       // how many messages were sent
	arrives  time.Time // when the last message arrives at the node
	stream   *stream
	epoch    int // of the node when this link connected
	broken   atomic.Bool

	mu    sync.Mutex // protects what follows
	owed  []*message // sent, and their replies not read, in order
	left  sync.Cond  // signals one more in owed
	forks int        // how many links fork has made

	interrupted chan struct{}
	once        sync.Once
}

// Dial returns a link from process h to the node, not connected yet, which breaks after patience without a reply.
func (n *Node) Dial(h *Host, patience time.Duration) *Link {
	return newLink(n, h, patience, n.seed.For(h.name))
}

func newLink(n *Node, h *Host, patience time.Duration, seed sim.Seed) *Link {
	l := &Link{
		node: n, host: h, patience: patience, seed: seed, actor: forLinks + 2*number(n.Name),
		stream: &stream{made: time.Now()}, interrupted: make(chan struct{}),
	}
	l.left.L = &l.mu
	return l
}

// fork returns another link between the same process and node, with a seed of its own. It is not connected.
func (l *Link) fork() *Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forks++
	return newLink(l.node, l.host, l.patience, l.seed.Of(-l.forks))
}

func (l *Link) Interrupt() { l.once.Do(func() { close(l.interrupted) }) }

func (l *Link) Connect(ctx context.Context, hello wire.Hello) (wire.Mark, error) {
	m := &message{connect: true, hello: hello}
	l.stream, l.arrives = &stream{made: time.Now()}, time.Time{} // messages of the old connection do not hold up those of the new one
	if err := l.exchange(ctx, m); err != nil {                   // the message may still be on its way
		return wire.Mark{}, err
	}
	l.epoch = m.epoch
	return m.mark, nil
}

// Join runs join.lua over the existing connection, and returns its reply. It takes a round trip, like other messages.
func (l *Link) Join(hello wire.Hello) (wire.Mark, error) {
	m := &message{join: true, hello: hello}
	if err := l.exchange(context.Background(), m); err != nil {
		return wire.Mark{}, err
	}
	return m.mark, nil
}

// Exec sends calls in one message, and waits for the reply, which it puts into calls: each has its result, or in Err
// why there is none. An error: the link is broken.
func (l *Link) Exec(calls []Call) error {
	l.Send(calls)
	done, err := l.Receive(0)
	for i := range calls {
		if calls[i].Err = err; done != nil {
			calls[i] = done[i]
		}
	}
	return err
}

// Send sends a copy of calls in one message, and does not wait: Receive has the result.
func (l *Link) Send(calls []Call) {
	// A copy: the network may deliver the message after the caller has given up.
	l.send(&message{calls: slices.Clone(calls)})
}

// Receive waits for the reply to the oldest message, which the node has owed for ago, and returns its calls. An error
// means that the link is broken. After errReset, the calls with a result were carried out, and the others have the
// error. After any other error it returns nil: each call may have been carried out, or may yet be.
func (l *Link) Receive(ago time.Duration) ([]Call, error) {
	m, err := l.receive(context.Background(), l.actor+1, ago)
	if err != nil && err != errReset { // the message may yet be carried out
		return nil, err
	}
	for i := range m.calls {
		c := &m.calls[i]
		if err != nil && c.Value == nil && c.Plain == nil && c.Said == nil && c.Err == nil {
			c.Err = err // broken before it was carried out
		}
	}
	return m.calls, err
}

// exchange sends m, and waits for its reply, which is put into m. It forgets the messages of a connection that broke.
func (l *Link) exchange(ctx context.Context, m *message) error {
	l.broken.Store(false)
	l.mu.Lock()
	l.owed = nil // sent over the connection that broke
	l.mu.Unlock()
	l.send(m)
	_, err := l.receive(ctx, l.actor, 0)
	return err
}

func (l *Link) send(m *message) {
	l.sent++
	m.epoch, m.id, m.stream = l.epoch, l.seed.Of(l.sent), l.stream
	m.from, m.sent, m.done = l.host, time.Now(), make(chan struct{})
	there, back := l.latency(m.id)
	m.back = back
	l.node.mu.Lock()
	if l.broken.Load() || l.host.gone() {
		m.end(errEnded)
	} else {
		s := l.stream
		s.coming = append(s.coming, m)
		l.arrives = l.node.later(l.host, max(there, time.Until(l.arrives)+l.node.gap()), func() {
			next := s.coming[0]
			s.coming = s.coming[1:]
			l.node.sees(next)
			l.node.arrive(next)
		})
	}
	l.node.mu.Unlock()
	l.mu.Lock()
	l.owed = append(l.owed, m)
	l.left.Signal()
	l.mu.Unlock()
}

// receive waits for the reply to the oldest message, which the node has owed for ago, and returns the message. It goes
// on in the time slot of actor (Slot). After an error the link is broken, and no other reply is awaited.
func (l *Link) receive(ctx context.Context, actor int, ago time.Duration) (*message, error) {
	l.mu.Lock()
	for len(l.owed) == 0 {
		l.left.Wait()
	}
	m := l.owed[0]
	l.mu.Unlock()
	timer := time.NewTimer(l.patience - ago)
	defer timer.Stop()
	select {
	case <-m.done:
	case <-timer.C:
	case <-ctx.Done():
	case <-l.interrupted:
	}
	time.Sleep(l.node.gap()) // so all else of this instant has happened
	err, rest := l.cut(ctx, m.done), time.Duration(0)
	if err == nil {
		l.node.mu.Lock()
		err, rest = m.err, time.Until(m.answered.Add(m.back))
		l.node.mu.Unlock()
	}
	l.goOn(max(0, rest), m.id, actor)
	if l.host.gone() {
		err = errEnded
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed = l.owed[1:]
	if err != nil { // the other replies are not awaited either
		l.broken.Store(true)
		l.node.mu.Lock()
		for _, other := range append(l.owed, m) {
			other.abandoned = true
		}
		l.node.mu.Unlock()
		l.owed = nil
	}
	return m, err
}

// cut returns why a link stops waiting for a reply, for which done is closed; nil: it is there.
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

// latency returns how long the message with this id, and its reply, take over this link.
func (l *Link) latency(id sim.Seed) (there, back time.Duration) {
	far := l.host.far(l.node.Name)
	l.node.mu.Lock()
	defer l.node.mu.Unlock()
	there, back = l.node.latency(id)
	if l.node.exact() {
		back += far
	}
	return there + far, back
}

// goOn sleeps for d, and then until it is the actor's turn; at an exact node, for d alone.
func (l *Link) goOn(d time.Duration, id sim.Seed, actor int) {
	if l.node.exact() {
		time.Sleep(d)
	} else {
		l.host.wake(d+id.Below(Moment-Slot), actor)
	}
}

// Subscribe listens to a channel, over a link of its own, until that breaks or ctx ends, and returns why. It calls
// ready when the subscription stands, and onMessage with each message.
func (l *Link) Subscribe(ctx context.Context, channel string, ready func(), onMessage func(message string)) error {
	return l.fork().subscribe(ctx, channel, ready, onMessage)
}

func (l *Link) subscribe(ctx context.Context, channel string, ready func(), onMessage func(message string)) error {
	l.actor = forSubscriptions + number(l.node.Name)%(Actors-forSubscriptions)
	s := &subscription{from: l.host, seed: l.seed, channel: channel, news: make(chan struct{}, 1)}
	if err := l.exchange(ctx, &message{subscription: s}); err != nil {
		return err
	}
	ready()
	n := l.node
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.subscriptions = slices.DeleteFunc(n.subscriptions, func(other *subscription) bool { return other == s })
	}()
	for {
		select {
		case <-s.news:
		case <-ctx.Done():
		}
		l.sent++
		l.goOn(0, l.seed.Of(l.sent), l.actor)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.host.gone():
			return errEnded
		}
		n.mu.Lock()
		inbox, broken := s.inbox, s.broken
		s.inbox = nil
		n.mu.Unlock()
		for _, message := range inbox {
			onMessage(message)
		}
		if broken {
			return errReset
		}
	}
}
