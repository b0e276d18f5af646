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

func (n *node) Refuses(q *lane.Request, now time.Time) (why error, old bool) {
	return n.vote.Refuses(q, now)
}

func (n *node) Bind(batch []*lane.Request, now time.Time) lane.Before { return n.vote.Bind(batch, now) }

func (n *node) Judge(batch []*lane.Request, sent time.Time, before lane.Before) {
	vouched, again := n.vote.Judge(batch, sent, before)
	if vouched && n.set.lacking.Load() {
		n.set.tellLacking()
	}
	if again {
		n.Rejoin()
	}
}

func (n *node) Up(down time.Duration) { n.vote.Up(down) }

func (n *node) Down(why *lane.Failure) {
	n.vote.Down(why)
	n.set.tellLacking() // without this one, others may be told (mayTell)
}
