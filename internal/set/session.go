package set

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// What a node says goes first to its vote.Node, then to the set. These are the methods of lane.Session and lane.Node.

func (n *node) Now() time.Time { return n.set.cfg.Clock.Now() }

// Hello returns what the client says when it joins the node: the client's time, and the set's description that it goes by.
func (n *node) Hello() wire.Hello {
	hello := wire.Hello{Marked: n.vote.Marked(), Time: n.Now().UnixMilli()}
	if hello.Marked {
		n.set.offer(n, &hello)
	}
	return hello
}

// Joined takes mark, the reply to a request (join.lua) that left at sent: n.vote learns the node's clock and marker from it,
// and n.set which description of the set the node keeps, or that it keeps none.
func (n *node) Joined(mark wire.Mark, sent time.Time) {
	n.vote.Joined(mark, sent, func(says wire.Marker) { n.set.observe(n, mark.Kept, says, sent) })
}

// Refuses returns why the lane is to refuse q: the set's description allows no lock that long; nil: send it. If old is true
// (never without why), the lane also joins the node again, as it may keep another description by now.
func (n *node) Refuses(q *lane.Request, now time.Time) (why error, old bool) {
	return n.vote.Refuses(q, now)
}

// Bind sets marker, deadline and fence in a batch that leaves at now. It returns what is known of the node then, for Judge.
func (n *node) Bind(batch []*lane.Request, now time.Time) lane.Before { return n.vote.Bind(batch, now) }

// Judge changes the replies to a batch, which left at sent, to what they are worth: a grant by a node that may not vote
// becomes none. before is what Bind returned. If the replies show that the node has its data, members that have lost the
// set's description may be given it (tellLacking). If the node may keep another description by now, the lane joins it again.
func (n *node) Judge(batch []*lane.Request, sent time.Time, before lane.Before) {
	vouched, again := n.vote.Judge(batch, sent, before)
	if vouched && n.set.lacking.Load() {
		n.set.tellLacking()
	}
	if again {
		n.Rejoin()
	}
}

// Up records that the node can be reached again, after it was down for that long, and calls Events.Up (see vote.Node.Up).
func (n *node) Up(down time.Duration) { n.vote.Up(down) }

// Down records why nothing is sent to the node until Up is called. Members that lost the set's description may have waited
// for this node's answer, to be given it again: those that need not wait any more are given it (tellLacking).
func (n *node) Down(why *lane.Failure) {
	n.vote.Down(why)
	n.set.tellLacking()
}
