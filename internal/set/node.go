package set

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
)

// A node is the lane to a node, what is known of its vote, and what the set has noted of it. It is the lane's Node, and its
// server's Session: what a node says goes first to its vote, then to the set.
type node struct {
	*lane.Lane
	vote *vote.Node
	set  *Set

	// Under the set's mutex.
	considered int   // how many changes look at whether the node can become a member: it is not retired
	stranger   bool  // the operator was told that the node is no member
	epoch      int64 // the last description of the set of which the node is known to be a member, or to be none any more

	// The same, of a node that keeps no description.
	tried   *wire.Description // the one with which it was last asked to join again
	offered *wire.Description // the one that it was told when it was last joined
	untaken *wire.Description // offered, and it kept none when it had been joined
}

// newNode makes a node, and the lane to it. Under the mutex.
func (s *Set) newNode(name string, tried chan<- int) *node {
	i := s.made
	s.made++
	n := &node{set: s, vote: vote.NewNode(name, &s.cfg.Config, s.group)}
	n.Lane = lane.New(i, name, s.open(i, name, n), n, &s.cfg.Config.Config, tried)
	return n
}

// end ends the lane, which has been retired.
func (n *node) end() {
	n.vote.Close()
	n.Close()
}

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
	n.vote.Joined(mark, sent, func(says wire.Marker) { n.set.heard(n, mark.Told, says, sent) })
}

func (n *node) Refuses(q *lane.Request, now time.Time) (why error, old bool) {
	return n.vote.Refuses(q, now)
}

func (n *node) Bind(batch []*lane.Request, now time.Time) lane.Before { return n.vote.Bind(batch, now) }

func (n *node) Judge(batch []*lane.Request, sent time.Time, before lane.Before) {
	vouched, again := n.vote.Judge(batch, sent, before)
	if vouched && n.set.lacking.Load() {
		n.set.look()
	}
	if again {
		n.Rejoin()
	}
}

func (n *node) Up(down time.Duration) { n.vote.Up(down) }

func (n *node) Down(why *lane.Failure) {
	n.vote.Down(why)
	n.set.look() // without this one, others may be told (mayTell)
}
