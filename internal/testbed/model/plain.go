package model

import (
	"time"

	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// A node carries out a script in one instant, but the commands of an acquire by plain commands (wire.PlainAnswer), or of
// an extension or a release without a script (wire.NativeAnswer), one by one: anything may happen between any two.

const (
	plainParts   = 4 // SET, ZADD, GET, EXISTS
	trailerParts = 3 // MGET, TIME, SCRIPT EXISTS
)

// parts is how many commands a call has.
func (c *Call) parts() int {
	switch {
	case c.Op == wire.Plain:
		return plainParts
	case c.Native && c.Op == wire.Release:
		return 2 // DELEX or DELIFEQ, EXISTS
	case c.Native:
		return 2 // SET, EXISTS
	}
	return 1
}

// A cursor is how far a message has been carried out: the next call, and its next command. The trailer comes last.
type cursor struct{ call, part int }

func (c *Call) plain() bool { return c.Op == wire.Plain }

// scriptless reports whether the node carries out a call's commands one by one.
func (c *Call) scriptless() bool { return c.plain() || c.Native }

// prepare makes the node carry out a message from its start, and makes room for the answers to calls without a script.
func (m *message) prepare() {
	m.next, m.trailer = cursor{}, nil
	for i := range m.calls {
		c := &m.calls[i]
		if m.trailer == nil && (c.plain() || c.Op == wire.Extend) {
			m.trailer = new(wire.Trailer)
		}
		if c.Op == wire.Extend {
			c.Shown = m.trailer
		}
		if !c.scriptless() {
			continue
		}
		if c.Err = nil; c.Native {
			c.Said = &wire.NativeAnswer{Trailer: m.trailer}
		} else {
			c.Plain = &wire.PlainAnswer{Trailer: m.trailer}
		}
	}
}

func (m *message) has(such func(*Call) bool) bool {
	for i := range m.calls {
		if such(&m.calls[i]) {
			return true
		}
	}
	return false
}

// pause sometimes carries out the first commands of a message that has calls without a script, and returns how long the
// node then pauses (more if it hangs). 0: nothing was carried out, and all is to be at once. Caller holds n.mu.
func (n *Node) pause(m *message) time.Duration {
	if n.exact() || m.trailer == nil && !m.has((*Call).scriptless) || !m.id.For("between").OneIn(8) {
		return 0
	}
	commands := 0
	if m.trailer != nil {
		commands = trailerParts
	}
	for i := range m.calls {
		commands += m.calls[i].parts()
	}
	for range 1 + int(m.id.For("command").Below(time.Duration(commands-1))) {
		n.step(m)
	}
	return 1 + m.id.For("pause").Below(4*n.rtt)
}

// step carries out the next command of a message. Caller holds n.mu.
func (n *Node) step(m *message) {
	if m.next.call == len(m.calls) {
		if err := n.trail(m); m.trailer.Failed == nil {
			m.trailer.Failed = err
		}
		m.next.part++
		return
	}
	c := &m.calls[m.next.call]
	switch {
	case c.Op == wire.Plain:
		switch err := n.acquirePlain(c, m.next.part); {
		case m.next.part == 0:
			c.Plain.Refused = err
			n.haunt(m, c)
		case c.Plain.Err == nil:
			c.Plain.Err = err
		}
	case c.Native:
		if err := n.doNative(c, m.next.part); c.Said.Err == nil {
			c.Said.Err = err
		}
	default:
		c.Value, c.Err = n.do(c)
	}
	if c.Op == wire.Release {
		n.released[c.Token] = true
	}
	if m.next.part++; m.next.part == c.parts() {
		m.next = cursor{m.next.call + 1, 0}
	}
}

// haunt marks the key that c has set as a ghost (Node.Ghost) if m's client has given up and it is a TTL old.
func (n *store) haunt(m *message, c *Call) {
	if e := n.keys[c.Keys[0]]; c.Plain.Set && m.abandoned && (time.Since(m.sent) >= c.TTL || n.released[c.Token]) {
		e.ghost = true
		n.keys[c.Keys[0]] = e
	}
}

// acquirePlain carries out command number part, from 0, of an acquire by plain commands, and stores the reply in
// c.Plain. An error is what the node sends instead.
func (n *store) acquirePlain(c *Call, part int) error {
	if err := n.refusal(c.Keys); err != nil {
		return err
	}
	key := c.Keys[0]
	switch part {
	case 0:
		said, err := n.setNX(c)
		if err == redis.Nil {
			return nil
		}
		c.Plain.Set = said == "OK"
		return err
	case 1:
		if err := n.writable(); err != nil {
			return err
		}
		if bucket := fence(key); n.counts[bucket] < c.Fence {
			n.counts[bucket], c.Plain.Advanced = c.Fence, 1
		}
	case 2:
		e, there := n.lookup(key)
		if there && (e.foreign || e.set != nil) {
			return wrongType
		}
		c.Plain.Holder = e.token
	case 3:
		if len(*n.queue(key)) > 0 {
			c.Plain.Queues = 1
		}
	}
	return nil
}

// doNative carries out command number part, from 0, of an extension or a release without a script, and stores the reply
// in c.Said. An error is what the node sends instead.
func (n *store) doNative(c *Call, part int) error {
	if err := n.refusal(c.Keys); err != nil {
		return err
	}
	key := c.Keys[0]
	if part == 1 {
		switch {
		case c.Op == wire.Extend && n.isBroken(c.Token):
			c.Said.Broken = 1
		case c.Op == wire.Release && len(*n.queue(key)) > 0:
			c.Said.Queues = 1
		}
		return nil
	}
	switch e, there := n.lookup(key); {
	case n.readOnly:
		return readOnly
	case n.full && c.Op == wire.Extend:
		return full
	case there && (e.foreign || e.set != nil):
		return wrongType
	case !there || e.token != c.Token:
		return nil
	case c.Op == wire.Extend:
		n.hold(key, wire.ModeX, c.Token, c.TTL)
	default:
		delete(n.keys, key)
	}
	c.Said.Done = true
	return nil
}

// trail carries out the next command of a message's trailer, and stores the reply there, or returns the error.
func (n *store) trail(m *message) error {
	if err := n.refusal(nil); err != nil {
		return err
	}
	switch m.next.part {
	case 0:
		m.trailer.Marker = n.marker
	case 1:
		m.trailer.Time = n.micros()
	case 2:
		for i := range m.calls {
			if c := &m.calls[i]; c.scriptless() && n.scripts[wire.RunID(c.Mark)] {
				m.trailer.Known = 1
			}
		}
	}
	return nil
}
