package redlock

import (
	"cmp"
)

// A say is what one node's answer means for the ballot.
type say uint8

const (
	voteYes  say = iota // the node has this lock's token
	voteNo              // the node answered, and does not have it
	voteNone            // no usable answer: unreachable, too late, refused by the server
)

type verdict uint8

const (
	pending verdict = iota
	won             // a quorum said yes
	lost            // whatever the open votes will be, no quorum can say yes
)

// A ballot counts one round of votes of n nodes, need of which must say yes. It knows no node, clock or network. It is
// decided as soon as a quorum said yes, or none can any more, and stays as decided.
type ballot struct {
	n, need       int
	blocking      int // of an extension: with as many yes, no other client can have a quorum; 0: need is used
	yes, no, none int
	voteless      int // how many of yes and no, in a release, came from nodes that have no vote now
}

func (b *ballot) add(v say) {
	switch v {
	case voteYes:
		b.yes++
	case voteNo:
		b.no++
	case voteNone:
		b.none++
	}
}

func (b *ballot) open() int { return b.n - b.yes - b.no - b.none }

func (b *ballot) verdict() verdict {
	switch {
	case b.yes >= b.need:
		return won
	case b.yes+b.open() < b.least() || b.open() == 0:
		return lost
	}
	return pending
}

// least is how many yes a ballot needs so as not to be lost: need; in an extension blocking, so that no rival has a quorum.
func (b *ballot) least() int { return cmp.Or(b.blocking, b.need) }

// answered is the verdict of a release: won when a quorum has answered, yes or no, since "not there" is as good as
// "deleted". Answers of nodes without a vote, no part of the next acquire's quorum, count once none is open.
func (b *ballot) answered() verdict {
	v := (&ballot{n: b.n, need: b.need, yes: b.yes + b.no, none: b.none}).verdict()
	if v == won && b.yes+b.no-b.voteless < b.need && b.open() > 0 {
		return pending
	}
	return v
}

// unreachable reports whether the nodes are no quorum without those that gave no usable answer: the difference between
// ErrNoQuorum, "look at the nodes", and ErrHeld, "come back later".
func (b *ballot) unreachable() bool { return b.n-b.none < b.need }

// refused reports whether the nodes that have not answered no are fewer than least (the yes that the ballot needs), even if
// all of them say yes. In an extension, those that said no are a quorum then, which another client may have. With a majority
// of an odd number of nodes, that is as soon as the others are no quorum. Two of four nodes are no quorum: the lock stays,
// and these two count again when the other two have shown that they had the token all along (Lock.counts).
func (b *ballot) refused() bool { return b.n-b.no < b.least() }

// majority is the smallest number of n nodes such that any two groups of that size share a node, also for even n.
func majority(n int) int { return n/2 + 1 }
