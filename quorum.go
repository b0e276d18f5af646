package redlock

import (
	"cmp"
)

// A say is what one node's answer means to the ballot.
type say uint8

const (
	voteYes  say = iota // the node has our token
	voteNo              // the node answered, and it is not ours to count
	voteNone            // no usable answer: unreachable, too late, refused by the server
)

// A verdict is what a ballot says so far.
type verdict uint8

const (
	pending verdict = iota
	won             // a quorum said yes
	lost            // whatever the open votes will be, no quorum can say yes
)

// A ballot counts one round of votes over n nodes of which need must say yes.
// It knows no node, clock or network; it is decided as soon as it can be, either
// way, and a decided ballot stays as decided.
type ballot struct {
	n, need       int
	blocking      int // of an extension: so many yes show that nobody else can have a quorum; 0: need
	yes, no, none int
	voteless      int // of yes and no, in a release: the answers of nodes that have no vote now
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

// open is how many votes are still to come.
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

// least is the number of yes without which nothing else is to be learned from the votes that are open.
func (b *ballot) least() int { return cmp.Or(b.blocking, b.need) }

// answered is the verdict where any answer will do: that of a release, for which
// "not there" is as good as "deleted". Answers of nodes without a vote do not end it
// early: they are no part of the quorum that the next acquire needs.
func (b *ballot) answered() verdict {
	v := (&ballot{n: b.n, need: b.need, yes: b.yes + b.no, none: b.none}).verdict()
	if v == won && b.yes+b.no-b.voteless < b.need && b.open() > 0 {
		return pending
	}
	return v
}

// unreachable reports whether so many nodes gave no usable answer that no quorum
// could have been found among the others: the difference between "come back
// later" and "look at the nodes".
func (b *ballot) unreachable() bool { return b.n-b.none < b.need }

// refused reports whether so many nodes have answered no that no quorum can be
// found any more, even if all the silent ones came back and said yes. An extension is refused if
// those that say no are a quorum themselves, which another client may have. With a majority of an odd
// number of nodes it is the same. Two of four nodes are no quorum: the lock stays, and they count again when
// the other two have shown that they had the token all along (counts).
func (b *ballot) refused() bool { return b.n-b.no < b.least() }

// majority is the smallest quorum of n nodes of which any two share a node, also
// for even n.
func majority(n int) int { return n/2 + 1 }
