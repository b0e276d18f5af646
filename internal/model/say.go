package model

import (
	"slices"
	"strings"

	"github.com/quorumlock/redlock/internal/script"
)

// mostSaid is how many of the messages that a node has published somebody remembers who
// listens to all of them.
const mostSaid = 64

// remember notes a message for those who say it again. Under the mutex.
func (n *Node) remember(channel, message string) {
	if n.said = append(n.said, Said{channel, message}); len(n.said) > mostSaid {
		n.said = slices.Delete(n.said, 0, len(n.said)-mostSaid)
	}
}

// A Said is a message on a channel.
type Said struct{ Channel, Message string }

// Say has somebody publish messages on a node who may do that, listen to all channels, and
// nothing else. He draws them up from what the node has said so far, oldest first, the
// processes that listen (PUBSUB CHANNELS), and the node's time in microseconds.
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
				s.push(say.Message)
			}
		}
	}
}
