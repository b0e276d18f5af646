package set

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// What a node says goes first to its vote.Node, then to the set. These are the methods of lane.Session and lane.Node.

// Now returns the client's time.
func (n *node) Now() time.Time { return n.set.cfg.Clock.Now() }

// Hello returns what the client tells the node when it joins it.
func (n *node) Hello() wire.Hello {
	hello := wire.Hello{Marked: n.vote.Marked(), Time: n.Now().UnixMilli()}
	if hello.Marked {
		n.set.tell(n, &hello)
	}
	return hello
}

// Joined takes what the node replied to join.lua, which was sent at sent.
func (n *node) Joined(mark wire.Mark, sent time.Time) {
	n.vote.Joined(mark, sent, func(says wire.Marker) { n.set.observe(n, mark.Kept, says, sent) })
}

// Refuses returns why a request need not be sent to the node, and whether that may be out of date.
func (n *node) Refuses(q *lane.Request, now time.Time) (why error, old bool) {
	return n.vote.Refuses(q, now)
}

// Bind completes the requests of a batch that is about to leave.
func (n *node) Bind(batch []*lane.Request, now time.Time) lane.Before { return n.vote.Bind(batch, now) }

// Judge makes the node's vote decide what the replies of a batch are worth. If the node has shown its marker, members that
// lack the description of the set may be given it; if what the node keeps may have changed, the node is joined again.
func (n *node) Judge(batch []*lane.Request, sent time.Time, before lane.Before) {
	vouched, again := n.vote.Judge(batch, sent, before)
	if vouched && n.set.lacking.Load() {
		n.set.tellLacking()
	}
	if again {
		n.Rejoin()
	}
}

// Up records that the node can be reached again, after so long.
func (n *node) Up(down time.Duration) { n.vote.Up(down) }

// Down records that nothing is sent to the node. Others may be given the description without its answer (mayTell).
func (n *node) Down(why *lane.Failure) {
	n.vote.Down(why)
	n.set.tellLacking()
}
