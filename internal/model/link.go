package model

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Link is one connection from a process to a node.
type Link struct {
	node     *Node
	host     *Host
	patience time.Duration
	seed     sim.Seed
	turn     int // among the links of its lane
	actor    int
	lane     *links
	sent     int
	epoch    int
	broken   bool

	interrupted chan struct{}
	once        *sync.Once
}

// A links has what the links of a lane share. Each has a turn of its own, which the next link gets when this one is
// given up.
type links struct {
	mu    sync.Mutex // protects what follows
	made  int        // after the first
	taken [8]bool    // turns
}

// Dial gives a connection that is not made yet.
func (n *Node) Dial(h *Host, patience time.Duration) *Link {
	l := &Link{node: n, host: h, patience: patience, lane: new(links), seed: n.seed.For(h.name), actor: forLinks + 8*number(n.Name)}
	l.interrupted, l.once = make(chan struct{}), new(sync.Once)
	return l
}

// Fork may be called while the link is in use: it reads what never changes.
func (l *Link) Fork() *Link {
	l.lane.mu.Lock()
	defer l.lane.mu.Unlock()
	l.lane.made++
	turn := 1 // the first link has 0
	for turn < len(l.lane.taken)-1 && l.lane.taken[turn] {
		turn++
	}
	l.lane.taken[turn] = true
	return &Link{
		node: l.node, host: l.host, patience: l.patience, lane: l.lane,
		seed: l.seed.Of(-l.lane.made), turn: turn, actor: l.actor + turn,
		broken: true, interrupted: make(chan struct{}), once: new(sync.Once),
	}
}

// leave gives the link's turn back.
func (l *Link) leave() {
	l.lane.mu.Lock()
	defer l.lane.mu.Unlock()
	l.lane.taken[l.turn], l.turn = false, 0
}

func (l *Link) Interrupt() {
	l.once.Do(func() {
		l.leave()
		close(l.interrupted)
	})
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
		calls[i].Value, calls[i].Plain, calls[i].Said, calls[i].Shown, calls[i].Err = m.calls[i].Value, m.calls[i].Plain, m.calls[i].Said, m.calls[i].Shown, m.calls[i].Err
		if err != nil && calls[i].Value == nil && calls[i].Plain == nil && calls[i].Said == nil && calls[i].Err == nil {
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
		calls[i].Value, calls[i].Plain, calls[i].Said, calls[i].Shown, calls[i].Err = nil, nil, nil, nil, err
	}
	return err
}

// send carries a message to the node and waits for the reply.
func (l *Link) send(ctx context.Context, m *message) error {
	if l.host.gone() {
		return errEnded
	}
	m.from, m.sent = l.host, time.Now()
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
			l.node.mu.Lock()
			m.abandoned = true
			l.node.mu.Unlock()
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

// latency is the node's for a message.
func (l *Link) latency(id sim.Seed) (there, back time.Duration) {
	far := l.host.far(l.node.Name)
	l.node.mu.Lock()
	defer l.node.mu.Unlock()
	there, back = l.node.latency(id)
	return there + far, back
}

// Subscribe listens to a channel until its connection breaks or ctx ends.
func (l *Link) Subscribe(ctx context.Context, channel string, ready func(), onMessage func(message string)) error {
	l.leave()
	l.actor = forSubscriptions + number(l.node.Name)%(Actors-forSubscriptions)
	s := &subscription{from: l.host, seed: l.seed, channel: channel, news: make(chan struct{}, 1)}
	l.sent++
	if err := l.send(ctx, &message{subscription: s, id: l.seed.Of(l.sent)}); err != nil {
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
		l.host.wake(l.seed.Of(l.sent).Below(Moment-Slot), l.actor)
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
