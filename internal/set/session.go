package set

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// What a node says goes first to its vote, then to the set.

// Now is the time, by the client's clock.
func (n *node) Now() time.Time { return n.set.cfg.Clock.Now() }

// Hello is what the node is told when it is joined.
func (n *node) Hello() wire.Hello {
	hello := wire.Hello{Marked: n.vote.Marked(), Time: n.Now().UnixMilli()}
	if hello.Marked {
		n.set.tell(n, &hello)
	}
	return hello
}

// Joined takes in what the node said when it was joined, at some moment after sent.
func (n *node) Joined(mark wire.Mark, sent time.Time) {
	n.vote.Joined(mark, sent, func(says wire.Marker) { n.set.observe(n, mark.Kept, says, sent) })
}

// Refuses says why a request is not to be sent to the node (lane.Node).
func (n *node) Refuses(q *lane.Request, now time.Time) (why error, old bool) {
	return n.vote.Refuses(q, now)
}

// Bind completes the requests of a batch that is about to leave (lane.Node).
func (n *node) Bind(batch []*lane.Request, now time.Time) lane.Before { return n.vote.Bind(batch, now) }

// Judge has the node's vote decide what the replies of a batch are worth (vote.Node.Judge). If the node has shown its marker,
// members that lack the description of the set may be told it; if what the node keeps may have changed, it is joined again.
func (n *node) Judge(batch []*lane.Request, sent time.Time, before lane.Before) {
	vouched, again := n.vote.Judge(batch, sent, before)
	if vouched && n.set.lacking.Load() {
		n.set.tellLacking()
	}
	if again {
		n.Rejoin()
	}
}

// Up: the node can be reached again (lane.Node).
func (n *node) Up(down time.Duration) { n.vote.Up(down) }

// Down: nothing is sent to the node (lane.Node). Without its answer others may be told the description (mayTell).
func (n *node) Down(why *lane.Failure) {
	n.vote.Down(why)
	n.set.tellLacking()
}
