package model

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/queue"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/seam"
)

// queue is that of a lock. Under the mutex.
func (n *Node) queue(key string) *queue.Queue {
	q := n.queues[key]
	if q == nil || n.now() > q.expires {
		q = new(line)
		n.queues[key] = q
	}
	return &q.Queue
}

// A line is a queue, and when its key expires.
type line struct {
	queue.Queue
	expires time.Duration
}

// enter has whoever was refused wait, if he wants to and there is room. Under the mutex.
func (n *Node) enter(c *seam.Call) {
	if c.Ticket > 0 && !n.full && !n.readOnly {
		n.queue(c.Key).Enter(queue.Entry{Waiter: c.Waiter, Ticket: c.Ticket, Deadline: n.micros()/1000 + c.Lease.Milliseconds(), Owner: c.Owner})
		n.queues[c.Key].expires = n.now() + time.Minute
	}
}

func (n *Node) leave(c *seam.Call, there bool) (any, error) {
	q := n.queue(c.Key)
	if n.readOnly && slices.ContainsFunc(*q, func(e queue.Entry) bool { return e.Waiter == c.Waiter }) {
		return nil, readOnly
	}
	if !q.Leave(c.Waiter, c.Ticket) {
		return int64(0), nil
	}
	if !there {
		n.wake(c.Key)
	}
	return int64(1), nil
}

// wake tells the first in a queue. Under the mutex.
func (n *Node) wake(key string) {
	first, _ := n.queue(key).First(n.micros())
	if first == nil || n.mute {
		return
	}
	channel := script.WakeChannel + queue.Process(first.Waiter)
	for _, e := range n.ears {
		if e.channel == channel {
			e.push(first.Waiter)
		}
	}
}

// Mute has the node's messages to subscribers go nowhere. Deafen ends all subscriptions.
func (n *Node) Mute(on bool) { n.set(func() { n.mute = on }) }
func (n *Node) Deafen()      { n.set(n.deafen) }

// deafen ends all subscriptions. Under the mutex.
func (n *Node) deafen() {
	for _, e := range n.ears {
		e.broken = true
		e.signal()
	}
	n.ears = nil
}

// An ear is a subscription: its node's mutex guards it.
type ear struct {
	link    *link
	channel string
	pushed  int
	last    time.Time // when the last message arrives: one does not overtake another
	inbox   []string
	news    chan struct{}
	broken  bool
}

func (e *ear) signal() {
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// push sends a message.
func (e *ear) push(message string) {
	n := e.link.node
	e.pushed++
	_, back := n.latency(e.link.seed.For("push").Of(e.pushed))
	if at := time.Now().Add(back); at.After(e.last) {
		e.last = at
	}
	time.AfterFunc(time.Until(e.last), func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		e.inbox = append(e.inbox, message)
		if !n.cut[replies] {
			e.signal()
		}
	})
}

// Hear is a subscription.
func (l *link) Hear(ctx context.Context, channel string, ready func(), heard func(message string)) error {
	l.actor = forEars + number(l.node.Name)%(Actors-forEars)
	e := &ear{link: l, channel: channel, news: make(chan struct{}, 1)}
	l.sent++
	if err := l.send(ctx, &message{ear: e, id: l.seed.Of(l.sent)}); err != nil {
		return err
	}
	ready()
	n := l.node
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ears = slices.DeleteFunc(n.ears, func(other *ear) bool { return other == e })
	}()
	for {
		select {
		case <-e.news:
		case <-ctx.Done():
			return ctx.Err()
		}
		l.sent++
		l.host.wake(l.seed.Of(l.sent).Below(Moment-Slot), l.actor)
		if l.host.gone() {
			return errEnded
		}
		n.mu.Lock()
		inbox, broken := e.inbox, e.broken
		e.inbox = nil
		n.mu.Unlock()
		for _, message := range inbox {
			heard(message)
		}
		if broken {
			return errReset
		}
	}
}
