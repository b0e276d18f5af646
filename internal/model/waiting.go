package model

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// queue is that of a lock. Under the mutex.
func (n *Node) queue(key string) *wire.Queue {
	q := n.queues[key]
	if q == nil || n.now() > q.expires {
		q = new(queue)
		n.queues[key] = q
	}
	return &q.Queue
}

// A line is a queue, and when its key expires.
type queue struct {
	wire.Queue
	expires time.Duration
}

// enter has whoever was refused wait, if he wants to and there is room: a server that is
// full lets a script go on that has written, and one that is read-only refuses to take him
// out first. Under the mutex.
func (n *Node) enter(c *Call) error {
	if c.Ticket <= 0 {
		return nil
	}
	wrote := c.Op == wire.Yield
	for i, key := range c.Keys {
		if c.Modes[i] != wire.ModeSlot {
			there := n.there(key, c)
			switch wrote = wrote || there; {
			case n.readOnly && there:
				return readOnly
			case n.readOnly, n.full && !wrote:
				continue
			}
			n.queue(key).Enter(wire.QueueEntry{Waiter: c.Waiter, Ticket: c.Ticket, Deadline: n.micros()/1000 + c.Lease.Milliseconds(), Mode: c.Modes[i], Try: c.Try, Nonce: c.Token, Owner: c.Owner})
			n.queues[key].expires = n.now() + time.Minute
		}
	}
	return nil
}

// there reports whether who asks is in a queue. Under the mutex.
func (n *Node) there(key string, c *Call) bool {
	return slices.ContainsFunc(*n.queue(key), func(e wire.QueueEntry) bool { return e.Waiter == c.Waiter && e.Ticket == c.Ticket })
}

func (n *Node) leave(c *Call) (any, error) {
	left, given := int64(0), false
	if try := n.handed(c); try > 0 && try <= c.Try {
		if n.readOnly {
			return nil, readOnly
		}
		delete(n.keys, c.Keys[0])
		given = true
	}
	for i, key := range c.Keys {
		q := n.queue(key)
		switch there := n.there(key, c); {
		case there && n.readOnly:
			return nil, readOnly
		case there, given:
			q.Leave(c.Waiter, c.Ticket)
			n.wake(key, c.Modes[i], 0)
			left = 1
		}
	}
	return left, nil
}

// wake tells those in a queue whose turn it is when the key is not held, or waited for, one
// way any more; and who waits for a slot, which one is free. Under the mutex.
func (n *Node) wake(key string, way wire.Mode, slot int) {
	for _, e := range n.queue(key).Next(n.micros(), way) {
		if h, err := n.holder(key, e.Mode, ""); n.mute || err != nil || h.who != "" {
			continue
		}
		message := e.Waiter
		if slot > 0 && e.Mode == wire.ModeSlots {
			message += " " + strconv.Itoa(slot)
		}
		n.publish(e.Waiter, message)
	}
}

// publish sends a message to a waiter's process, and reports whether that listens. Under the
// mutex.
func (n *Node) publish(waiter, message string) (heard bool) {
	channel := script.WakeChannel + wire.ProcessOf(waiter)
	n.remember(channel, message)
	for _, s := range n.subscriptions {
		if s.channel == channel {
			heard = true
			if !n.mute {
				s.push(message)
			}
		}
	}
	return heard
}

// hand gives a lock that is released to the first who waits, if he is to be handed it and
// listens. Under the mutex.
func (n *Node) hand(c *Call) bool {
	key := c.Keys[0]
	q := n.queue(key)
	if c.Modes == string(wire.ModeX) && len(*q) > 0 && strings.HasPrefix(c.Token, (*q)[0].Waiter+".") {
		q.Leave((*q)[0].Waiter, (*q)[0].Ticket)
		return false // the next one is told
	}
	if c.Fence <= 0 || c.Modes != string(wire.ModeX) || len(*q) == 0 || n.full {
		return false
	}
	e, now := (*q)[0], n.micros()
	if e.Mode != wire.ModeX || e.Try == 0 || !e.Lives(now) {
		return false
	}
	number := max(min(max(c.Fence, now-clamp), now+clamp), max(n.counts[fence(key)], n.counts[below(key)])+1)
	n.count(fence(key), number)
	delete(n.keys, key)
	if n.publish(e.Waiter, fmt.Sprintf("%s %d.%s %d %d %d %s", e.Waiter, e.Try, e.Nonce, number, now/1e6, now%1e6, n.marker)) {
		n.hold(key, wire.ModeX, e.Token(), time.Duration(e.Deadline-now/1000)*time.Millisecond)
		q.Leave(e.Waiter, e.Ticket)
	}
	return true
}

// handed is the attempt for which a waiter has been handed the lock that he asks for; 0: he
// was not. Under the mutex.
func (n *Node) handed(c *Call) (try int64) {
	e, _ := n.lookup(c.Keys[0])
	if c.Try > 0 && len(c.Keys) == 1 {
		try, _ = wire.HandedTo(c.Waiter, e.token)
	}
	return try
}

// Mute has the node's messages to subscribers go nowhere. DropSubscriptions ends all subscriptions.
func (n *Node) Mute(on bool)       { n.set(func() { n.mute = on }) }
func (n *Node) DropSubscriptions() { n.set(n.dropSubscriptions) }

// dropSubscriptions ends all subscriptions. Under the mutex.
func (n *Node) dropSubscriptions() {
	for _, s := range n.subscriptions {
		s.broken = true
		s.signal()
	}
	n.subscriptions = nil
}

// A subscription is a client's to one channel: its node's mutex guards it.
type subscription struct {
	link    *Link
	channel string
	pushed  int
	last    time.Time // when the last message arrives: none overtakes another, or comes with it
	under   []string  // the messages on their way, in order
	inbox   []string
	news    chan struct{}
	broken  bool
}

func (s *subscription) signal() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// push sends a message.
func (s *subscription) push(message string) {
	n := s.link.node
	s.pushed++
	s.under = append(s.under, message)
	_, back := n.latency(s.link.seed.For("push").Of(s.pushed))
	s.last = n.later(s.link.host, max(back, time.Until(s.last)+1), func() {
		s.inbox, s.under = append(s.inbox, s.under[0]), s.under[1:] // outside of a bubble, timers overtake each other
		if !n.cut[replies] {
			s.signal()
		}
	})
}

// Subscribe listens to a channel until its connection breaks or ctx ends.
func (l *Link) Subscribe(ctx context.Context, channel string, ready func(), onMessage func(message string)) error {
	l.actor = forSubscriptions + number(l.node.Name)%(Actors-forSubscriptions)
	s := &subscription{link: l, channel: channel, news: make(chan struct{}, 1)}
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
