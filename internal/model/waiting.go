package model

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/redlock/internal/queue"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/seam"
	"github.com/quorumlock/redlock/internal/ways"
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
	if c.Ticket <= 0 || n.full || n.readOnly {
		return
	}
	for i, key := range c.Keys {
		if c.Ways[i] != ways.Slot {
			n.queue(key).Enter(queue.Entry{Waiter: c.Waiter, Ticket: c.Ticket, Deadline: n.micros()/1000 + c.Lease.Milliseconds(), Way: c.Ways[i], Owner: c.Owner})
			n.queues[key].expires = n.now() + time.Minute
		}
	}
}

func (n *Node) leave(c *seam.Call) (any, error) {
	left := int64(0)
	for i, key := range c.Keys {
		q := n.queue(key)
		switch there := slices.ContainsFunc(*q, func(e queue.Entry) bool { return e.Waiter == c.Waiter && e.Ticket == c.Ticket }); {
		case there && n.readOnly:
			return nil, readOnly
		case there:
			q.Leave(c.Waiter, c.Ticket)
			n.wake(key, c.Ways[i], 0)
			left = 1
		}
	}
	return left, nil
}

// wake tells those in a queue whose turn it is when the key is not held, or waited for, one
// way any more; and who waits for a slot, which one is free. Under the mutex.
func (n *Node) wake(key string, way ways.Way, slot int) {
	for _, e := range n.queue(key).Next(n.micros(), way) {
		if h, err := n.holder(key, e.Way, ""); n.mute || err != nil || h.who != "" {
			continue
		}
		message := e.Waiter
		if slot > 0 && e.Way == ways.Slots {
			message += " " + strconv.Itoa(slot)
		}
		channel := script.WakeChannel + queue.Process(e.Waiter)
		for _, ear := range n.ears {
			if ear.channel == channel {
				ear.push(message)
			}
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
	last    time.Time // when the last message arrives: none overtakes another, or comes with it
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
	e.last = e.last.Add(1)
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
