package redlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
)

// A fence is a number for each acquisition of a name, larger than those of all
// earlier ones. To count on each node and take the largest number of a quorum is not
// enough: two that overlap on a node which has counted less may come to the same
// number. What a quorum has not stored, the next one need not see.
//
// So a number is a fence when a quorum of nodes has it stored as that of the grant
// which they gave to this very attempt. On one node grants come one after another,
// each with a token of its own, and the counter only grows. A commit is an instant
// in the time of its grant. Take two acquisitions, of which one was complete before
// the other began: their quorums share a node. There the commit of the first came
// before the grant of the second, which therefore was numbered higher; and the
// second's fence is the largest number of its quorum. No clock is in this. It needs
// a node that kept its counter, of the two quorums' common ones.
//
// A node keeps its numbers in a table of counters without a TTL, of which several names
// share one (internal/script/table.go). That changes nothing in the argument: the counter
// still only grows, and the grants of all names of a bucket come one after another. What
// another name does makes the counter larger between a grant and its raise, and then the
// raise says no, and the attempt has failed; and between a grant and a copy of its request,
// which is told what is stored by then: more than the number of the grant, and stored while
// the key is ours, so it may be committed as well. A grant leaves a counter there. Where
// there is none the node has lost its table, and what that said may have been past the number:
// nothing is raised there, and a copy has no grant. No step of a clock, no idle time and no
// expiry is in this.
//
// Where no node kept its counter, time steps in. The number that is proposed is the client's
// time, and the node takes it only within S, half a second, of its own. So a node that starts
// again with no counter starts above all that it had given out, if that was near the time. Let
// K be Options.MaxNodeSkew: a node has a vote while its clock is within K of the middle of
// the nodes' clocks. A number that is not below middle + K + 2S is no vote (vote.Group.Beyond): its
// grant is given back, and nothing is raised to it. So when a node whose time was T lost its
// table, what was a fence on it was below T + 2K + 2S; and when it has a vote again it numbers
// nothing below T + Q - S, with Q the quarantine. Hence Q >= 2K + 3S is asked for. A number that is
// acquired by plain commands is not bent, and so it counts only where it is not below the node's
// time - S. It may be further above that, by
// K and what is not known of the middle, which is less than 2S.
//
// That rule also keeps the numbers of a clock that is far ahead where they are. A minority
// of such nodes cannot move the middle, costs its own votes, and nothing else, also when
// their clocks are right again and their counters are not. That a client proposes a number
// which is far ahead needs no rule: the nodes bend it to their time.
//
// Who holds a lock shared has no number of its own, but the largest of the past: so large
// as that of every earlier writer, and less than that of every later one. Time cannot step in
// with a number for each, as those who read the same would have different ones. But what a
// node has lost was below the T + Q - S of when its marker was written, and what it numbers
// from then on, with a vote, is not (floor in package vote). So that is the least number of a reader
// there, and it is stored like any.
//
// The same number is proposed to all nodes. As a rule all take it, and the fence is
// stored with the grants, in one round trip. Else a second one raises the counters
// that are behind ("if the lock is still mine and the counter is not past it").

// errUnfenced is what ended an attempt that had a quorum of grants.
var errUnfenced = errors.New("the fence could not be stored on a quorum of nodes")

// fence gives the lock of a round that was won its fence, and has a quorum of nodes store it. It returns an error if that
// cannot be done, or the number is of the future.
func (c *call) fence(r *round, sent time.Time, limit time.Duration) error {
	number, stored := r.fence()
	// A node that answered before a majority was heard of could not be judged by it.
	if ahead := c.lk.lanes.Beyond(number, c.lk.now()); ahead > c.ahead {
		return r.poisoned(c.lk.now(), ahead)
	}
	if r.lock.claim.Fence = number; stored {
		return nil
	}
	return c.lk.raise(c.ctx, r.lock, sent, limit)
}

// fence gives the largest number of the grants of a round that was won, and whether a
// quorum has stored it.
func (r *round) fence() (number int64, stored bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := 0
	for i := range r.reqs {
		if a := &r.reqs[i].Reply; r.replied[i] && a.Status == wire.Granted {
			switch {
			case a.Fence > number:
				number, same = a.Fence, 1
			case a.Fence == number:
				same++
			}
		}
	}
	return number, same >= r.ballot.need
}

// raise has a quorum of nodes store the fence of a lock that a quorum has granted. It
// asks all nodes: one whose grant is still under way gets to it first, in its lane,
// and one that has not granted says no. A node that has the number already says yes
// once more. One that has no vote stores it, too, but does not count: it may have
// forgotten a higher one (RAISE_ALL in docs/model).
func (lk *Locker) raise(ctx context.Context, l *Lock, sent time.Time, limit time.Duration) error {
	r := lk.newRound(wire.Raise, l, nil)
	defer r.drop()
	r.trace = l.trace
	r.start(sent, sent.Add(limit))
	r.wait(ctx, limit-elapsed(sent, lk.now()))
	if r.decided() == won {
		return nil
	}
	err := r.explain(lk.now(), ended(ctx))
	if err.Cause == nil {
		err.Cause = errUnfenced
	}
	return err
}

// concede reports whether an attempt came to nothing since a majority of the nodes, or so many
// that the others are no quorum, numbers far ahead of the time; and has the next attempt take
// as much of that as a quorum needs, and no more. A minority that is ahead costs its votes, so
// that it leads nobody astray. But where all clocks were wrong together, and are right now,
// their numbers are those of the locks there were, and the next has to be larger: no order is
// in danger that a quorum of counters keeps. It takes a node to lose its table, and another
// to share its quorum, for numbers to be of any time at all.
func (a *acquisition) concede(err error) bool {
	why := quorumError(err)
	if why == nil {
		return false
	}
	var ahead []time.Duration
	nodes := why.Nodes()
	for _, node := range nodes {
		if by, is := node.Err.(vote.PoisonError); is {
			ahead = append(ahead, time.Duration(by))
		}
	}
	slices.Sort(ahead)
	lacks := why.Need - (why.N - len(nodes)) // of a quorum, if those who said nothing grant it
	if lacks <= 0 || lacks > len(ahead) || a.ahead == 0 && len(ahead) <= why.N-why.Need {
		return false // or a minority, unless others of the majority have been conceded already
	}
	most := ahead[lacks-1]
	if most <= a.ahead {
		return false
	}
	a.ahead = most + time.Second // a number may be one more by then
	return true
}
