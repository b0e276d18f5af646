package model

import (
	"slices"
	"strconv"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// queue returns the queue of a key, to read or change; an empty one, which it stores, if the node had none.
func (n *store) queue(key string) *wire.Queue {
	q := n.queues[key]
	if q == nil || n.now() > q.expires {
		q = new(queue)
		n.queues[key] = q
	}
	return &q.Queue
}

// enter puts the waiter of a refused call into the queues of its keys, if it has a ticket and there is room. A full
// server goes on with a script that has written; a read-only one refuses (the error) to remove the waiter's old entry.
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

// there reports whether the waiter of a call is in the queue of a key.
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

// wake calls the waiters whose turn it is when the key is no longer held, or waited for, in the mode way. It tells a
// waiter for a slot that this slot is free; 0: none is named.
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
