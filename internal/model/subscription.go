package model

import (
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// broadcast sends a message to a waiter's process, and reports whether that listens. Under the
// mutex.
func (n *Node) broadcast(waiter, message string) (heard bool) {
	channel := script.WakeChannel + wire.ProcessOf(waiter)
	n.remember(channel, message)
	for _, s := range n.subscriptions {
		if s.channel == channel {
			heard = true
			if !n.mute {
				n.push(s, message)
			}
		}
	}
	return heard
}

// push sends a message to a subscriber. Under the mutex.
func (n *Node) push(s *subscription, message string) {
	s.pushed++
	s.under = append(s.under, message)
	_, back := n.latency(s.seed.For("push").Of(s.pushed))
	s.last = n.later(s.from, max(back, time.Until(s.last)+1), func() {
		s.inbox, s.under = append(s.inbox, s.under[0]), s.under[1:] // outside of a bubble, timers overtake each other
		if !n.cut[replies] {
			s.signal()
		}
	})
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

// mostSaid is how many of the messages that a node has published a forger remembers.
const mostSaid = 64

// remember keeps a message for a forger that repeats it (Say). Under the mutex.
func (n *Node) remember(channel, message string) {
	if n.said = append(n.said, Said{channel, message}); len(n.said) > mostSaid {
		n.said = slices.Delete(n.said, 0, len(n.said)-mostSaid)
	}
}

// A Said is a message on a channel.
type Said struct{ Channel, Message string }

// Say publishes messages on a node, as a client would that may publish and listen to all
// channels, and nothing else. Draw makes them of what the node has published so far, oldest first,
// the processes that listen (PUBSUB CHANNELS), and the node's time in microseconds.
func (n *Node) Say(draw func(said []Said, processes []string, micros int64) []Said) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var processes []string
	for _, s := range n.subscriptions {
		processes = append(processes, strings.TrimPrefix(s.channel, script.WakeChannel))
	}
	slices.Sort(processes)
	for _, say := range draw(slices.Clone(n.said), slices.Compact(processes), n.micros()) {
		for _, s := range n.subscriptions {
			if s.channel == say.Channel && !n.mute {
				n.push(s, say.Message)
			}
		}
	}
}
