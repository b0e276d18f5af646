package set

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// What a node says goes first to its vote.Node, then to the set. These are the methods of lane.Session and lane.Node.

func (n *node) Now() time.Time { return n.set.cfg.Clock.Now() }

// Hello returns what the client says to the node when it joins it: its time, and the description of the set that it knows.
func (n *node) Hello() wire.Hello {
	hello := wire.Hello{Marked: n.vote.Marked(), Time: n.Now().UnixMilli()}
	if hello.Marked {
		n.set.offer(n, &hello)
	}
	return hello
}

// Joined takes the node's reply to join.lua, sent at sent: its vote learns of clock and marker, the set of what it keeps.
func (n *node) Joined(mark wire.Mark, sent time.Time) {
	n.vote.Joined(mark, sent, func(says wire.Marker) { n.set.observe(n, mark.Kept, says, sent) })
}

// Refuses returns why q need not be sent: its answer could not count; nil: send it. old: the reason may be out of date.
func (n *node) Refuses(q *lane.Request, now time.Time) (why error, old bool) {
	return n.vote.Refuses(q, now)
}

// Bind sets what depends on the node (marker, deadline, fence) in a batch about to leave, and returns what is known of it.
func (n *node) Bind(batch []*lane.Request, now time.Time) lane.Before { return n.vote.Bind(batch, now) }

// Judge changes the replies to a batch, which left at sent, to what they are worth; before is from Bind. If they show that
// the node has its data, members that lack the description of the set may be given it (tellLacking); if the node may keep
// another one by now, it is joined again.
func (n *node) Judge(batch []*lane.Request, sent time.Time, before lane.Before) {
	vouched, again := n.vote.Judge(batch, sent, before)
	if vouched && n.set.lacking.Load() {
		n.set.tellLacking()
	}
	if again {
		n.Rejoin()
	}
}

// Up records that the node can be reached again; it was down for that long.
func (n *node) Up(down time.Duration) { n.vote.Up(down) }

// Down records why nothing is sent to the node. Others may be given the description of the set without its answer (mayTell).
func (n *node) Down(why *lane.Failure) {
	n.vote.Down(why)
	n.set.tellLacking()
}
