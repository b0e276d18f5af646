package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// queue is that of a lock.
func (n *store) queue(key string) *wire.Queue {
	q := n.queues[key]
	if q == nil || n.now() > q.expires {
		q = new(queue)
		n.queues[key] = q
	}
	return &q.Queue
}

// enter puts the waiter of a refused call in the queues, if it has a ticket and there is room: a
// server that is full lets a script go on that has written, and one that is read-only refuses to
// take the waiter's old entry out first.
func (n *store) enter(c *Call) error {
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
			n.queues[key].expires = n.now() + script.QueueTTL
		}
	}
	return nil
}

// there reports whether the waiter of a call is in a queue.
func (n *store) there(key string, c *Call) bool {
	return slices.ContainsFunc(*n.queue(key), func(e wire.QueueEntry) bool { return e.Waiter == c.Waiter && e.Ticket == c.Ticket })
}

func (n *store) leave(c *Call) (any, error) {
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
// way any more; and who waits for a slot, which one is free.
func (n *store) wake(key string, way wire.Mode, slot int) {
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

// hand gives a lock that is released to the first waiter, if that can be handed the lock and
// listens.
func (n *store) hand(c *Call) bool {
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

// handed is the attempt for which the waiter of a call has been handed the lock; 0: it was not.
func (n *store) handed(c *Call) (try int64) {
	e, _ := n.lookup(c.Keys[0])
	if c.Try > 0 && len(c.Keys) == 1 {
		try, _ = wire.HandedTo(c.Waiter, e.token)
	}
	return try
}
