package model

import (
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// broadcast sends a message to the subscriptions of a waiter's process, unless Mute is on. Caller holds n.mu.
func (n *Node) broadcast(waiter, message string) {
	channel := script.WakeChannel + wire.ProcessOf(waiter)
	for _, s := range n.subscriptions {
		if s.channel == channel && !n.mute {
			n.push(s, message)
		}
	}
}

// push sends a message to one subscription: it arrives after half a round trip, behind earlier ones. Caller holds n.mu.
func (n *Node) push(s *subscription, message string) {
	s.pushed++
	s.under = append(s.under, message)
	_, back := n.latency(s.seed.For("push").Of(s.pushed))
	s.last = n.later(s.from, max(back, time.Until(s.last)+n.gap()), func() {
		s.inbox, s.under = append(s.inbox, s.under[0]), s.under[1:] // the first one, since outside of a synctest bubble timers overtake each other
		if !n.cut[replies] {
			s.signal()
		}
	})
}

// Mute makes the node lose its messages to subscribers. DropSubscriptions ends all subscriptions.
func (n *Node) Mute(on bool)       { n.set(func() { n.mute = on }) }
func (n *Node) DropSubscriptions() { n.set(n.dropSubscriptions) }

// dropSubscriptions breaks all subscriptions, as if their connections broke. Caller holds n.mu.
func (n *Node) dropSubscriptions() {
	for _, s := range n.subscriptions {
		s.broken = true
		s.signal()
	}
	n.subscriptions = nil
}
