package model

import (
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// Watch makes the node call f with all that it is asked, when a message reaches it, and before anything is done about
// it. f is called with n.mu held, so it must not use the node. It changes nothing: no time passes, and no random number is
// drawn.
func (n *Node) Watch(f func(Sight)) { n.set(func() { n.watch = f }) }

// sees tells the function of Watch of a message that has reached the node. Caller holds n.mu.
func (n *Node) sees(m *message) {
	first := m.connect || m.subscription != nil
	if n.watch == nil || !n.down && !first && m.epoch != n.epoch { // sent over a connection that is broken
		return
	}
	s := Sight{State: n.state(), Epoch: n.kept.At()}
	if n.marker != n.seen { // it is read again only when it has changed
		n.seen = n.marker
		n.mark, _ = wire.ParseMarker(n.marker)
	}
	if n.marker != "" {
		s.Age = n.start.Add(n.now()).Sub(time.UnixMilli(n.mark.Born))
	}
	switch {
	case m.connect:
		s.Asked = Connect
	case m.subscription != nil:
		s.Asked = Subscribe
	case m.join:
		s.Asked = Join
	default:
		of := s.State
		if len(m.calls) > 1 {
			of |= Batched
		}
		if len(m.stream.coming) > 0 {
			of |= Followed
		}
		for i := range m.calls {
			c := &m.calls[i]
			s.Asked, s.State = Asked(c.Op), of|n.finds(c)
			switch {
			case c.Native && c.Op == wire.Extend:
				s.Asked = NativeExtend
			case c.Native:
				s.Asked = NativeRelease
			}
			n.watch(s)
		}
		return
	}
	n.watch(s)
}

// state returns what is true of the node, whatever it is asked. Caller holds n.mu.
func (n *Node) state() (s State) {
	for _, is := range [...]struct {
		true  bool
		state State
	}{
		{n.down, Down}, {n.hung, Hung}, {n.cut[requests], RequestsCut}, {n.cut[replies], RepliesCut}, {n.slow > 0 || n.jitter > 0, Late},
		{n.lose > 0 || n.tear > 0, Loses}, {n.repeat > 0 || n.repeatLate > 0, Repeats}, {n.readOnly, ReadOnly}, {n.full, Full},
		{n.refuses != nil, Refuses}, {n.mute, Mute}, {len(n.scripts) > 0, Scripted}, {n.marker != "", Marked},
		{n.kept.Description != nil, Described}, {n.kept.Self != "" && n.kept.Self != n.Name, Alias}, {n.offset > 0, Ahead}, {n.offset < 0, Behind}, {n.rate > 0, Fast},
	} {
		if is.true {
			s |= is.state
		}
	}
	return s
}

// finds returns what is true of what a call is about. Caller holds n.mu.
func (n *Node) finds(c *Call) (s State) {
	if c.Mark != "" && c.Mark != n.marker {
		if mark, _ := wire.ParseMarker(c.Mark); !mark.Same(n.mark) {
			s |= Remarked
		}
	}
	now := n.now()
	for _, key := range c.Keys {
		e, there := n.keys[key]
		_, shares := e.set[c.Token]
		switch {
		case !there:
		case e.foreign:
			s |= Foreign
		case now <= e.expires && !shares && (e.set != nil || e.token != c.Token):
			s |= Held
		}
		if q := n.queues[key]; q != nil && len(q.Queue) > 0 && now <= q.expires {
			s |= Queued
		}
	}
	switch c.Op {
	case wire.Extend, wire.Release, wire.Break:
		if e, noted := n.keys[script.Broken+c.Token]; noted && now <= e.expires {
			s |= Broken
		}
	}
	return s
}
