package model

import (
	"slices"
	"strconv"

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
			n.queue(key).Enter(wire.QueueEntry{Waiter: c.Waiter, Ticket: c.Ticket, Deadline: n.micros()/1000 + c.Lease.Milliseconds(), Mode: c.Modes[i], Identity: wire.Signature(c.Token)})
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
	left := int64(0)
	for i, key := range c.Keys {
		if !n.there(key, c) {
			continue
		}
		if n.readOnly {
			return nil, readOnly
		}
		n.queue(key).Leave(c.Waiter, c.Ticket)
		n.wake(key, c.Modes[i], 0)
		left = 1
	}
	return left, nil
}

// wake tells those in a queue whose turn it is when the key is not held, or waited for, one
// way any more; and who waits for a slot, which one is free.
func (n *store) wake(key string, way wire.Mode, slot int) {
	for _, e := range n.queue(key).Next(n.micros(), way) {
		if h, err := n.holder(key, e.Mode, ""); err != nil || h.there {
			continue
		}
		message := e.Waiter
		if slot > 0 && e.Mode == wire.ModeSlots {
			message += " " + strconv.Itoa(slot)
		}
		n.publish(e.Waiter, message)
	}
}
