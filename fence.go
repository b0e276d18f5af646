package redlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
)

// A fence is a number for each acquisition of a name, larger than those of all earlier ones. It is not enough that each
// node counts its grants and the largest number of a quorum is taken: two acquisitions whose quorums share only a node
// that has counted less may come to the same number. What one quorum has not stored, the next one need not see.
//
// So a number is a fence when a quorum of nodes has stored it as the number of the grant that they gave to this very
// attempt. On one node grants come one after another, each with a token of its own, and the counter only grows. A node
// stores the number (commits it) while it still has that grant. Take two acquisitions, of which one was complete before
// the other began: their quorums share a node. There the first committed before the node granted the second, so the
// second got a higher number there; and the second's fence is the largest number of its quorum. This uses no clock. It
// needs one node of both quorums that kept its counter.
//
// A node keeps its numbers in a table of counters without a TTL, of which several names share one
// (internal/script/table.go). The argument holds: the counter still only grows, and the grants of all names that share
// it come one after another. Another name may make the counter larger between a grant and its raise (the second round,
// which stores the fence). Then the raise is refused, and the attempt has failed. Or it may do so between a grant and a
// copy of its request. The copy's reply has what is stored by then: more than the number of the grant, and stored while
// the key is this attempt's, so it may be committed as well. A grant leaves a counter on the node. Where there is none,
// the node has lost its table, which may have been past the number: so nothing is raised there, and a copy is not
// granted. No step of a clock, no idle time and no expiry is in this.
//
// Where no node kept its counter, time steps in. The client proposes its time as the number, and the node takes it only
// within S, half a second, of its own time. So a node that starts again with no counter starts above all that it had
// given out, if that was near the time. Let K be Options.MaxNodeSkew: a node has a vote while its clock is within K of
// the middle (the lower median) of the nodes' clocks. A number that is not below middle + K + 2S is no vote
// (vote.Group.Beyond): its grant is given back, and nothing is raised to it. So when a node whose time was T lost its
// table, every fence on it was below T + 2K + 2S; and when it has a vote again it numbers nothing below T + Q - S,
// where Q is the quarantine. Hence the rule Q >= 2K + 3S. A number acquired by plain commands is not brought within S
// of the node's time, so it counts only if it is not below the node's time - S. It may be further above that, by K and
// by the uncertainty of the middle, which is less than 2S.
//
// That rule also stops the numbers of a clock that is far ahead from spreading. A minority of such nodes cannot move
// the middle, and costs its own votes and nothing else, also when their clocks are right again and their counters are
// not. A client that proposes a number far ahead needs no rule: the nodes bring it within S of their time.
//
// The holder of a shared lock has no number of its own, but the largest of the past: at least that of every earlier
// writer, and less than that of every later one. Time cannot step in with a number for each, as those who read the same
// would have different ones. But what a node has lost was below T + Q - S, with T the time when its marker (the key
// that says since when the node has its data) was written; and what the node numbers from then on, with a vote, is not
// (floor in package vote). So T + Q - S is the least number of a reader there, and it is stored like any.
//
// The same number is proposed to all nodes. As a rule all take it, and the fence is stored with the grants, in one round
// trip. Otherwise a second round raises the counters that are behind (if this lock is still there and they are not past it).

// errUnfenced means that an attempt had a quorum of grants, but no quorum stored its fence.
var errUnfenced = errors.New("the fence could not be stored on a quorum of nodes")

// fence sets the fence of the lock of r, a round that was won, and makes a quorum store it. It returns an error if no quorum
// does by sent + limit, or the number is too far ahead of the nodes' clocks. sent is when r began.
func (c *call) fence(r *round, sent time.Time, limit time.Duration) error {
	number, stored := r.fence()
	// A grant that came before a majority of the nodes had replied could not be compared with the median of their clocks.
	if ahead := c.lk.lanes.Beyond(number, c.lk.now()); ahead > c.ahead {
		return r.poisoned(c.lk.now(), ahead)
	}
	if r.lock.claim.Fence = number; stored {
		return nil
	}
	return c.lk.raise(c.ctx, r.lock, sent, limit)
}

// fence returns the largest number among the grants of r, which was won. stored: a quorum has it; if not, raise is needed.
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

// raise makes a quorum of nodes store the fence (l.claim.Fence) of a lock that a quorum has granted. It waits until sent +
// limit at most, or until ctx ends. If no quorum has confirmed by then, the error is errUnfenced or ctx's. It asks all
// nodes. A node whose grant is still under way carries that out first, since requests to one node stay in order. A node that
// has not granted says no. A node that has the number already says yes once more. A node without a vote stores it, too, but
// does not count: it may have forgotten a higher one (RAISE_ALL in docs/model).
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

// concede allows the next attempt a fence (fencing token) that is far ahead of the time (a.ahead), as far as a quorum needs,
// and returns true. It does so if an attempt failed with err because fences are far ahead at some nodes, and the others are
// no quorum. False: err stands. A minority that is ahead only costs its votes, so it misleads nobody. But where all clocks
// were wrong together, and are right now, their numbers are those of earlier locks, and the next one has to be larger. That
// endangers no order: the counters of a quorum keep it. Only when a node has lost them must numbers be near the time.
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
	lacks := why.Need - (why.N - len(nodes)) // how many of a quorum are missing, if all nodes that are not in the error grant it
	if lacks <= 0 || lacks > len(ahead) || a.ahead == 0 && len(ahead) <= why.N-why.Need {
		return false // false for a minority, unless earlier attempts have conceded to other nodes of the majority
	}
	most := ahead[lacks-1]
	if most <= a.ahead {
		return false
	}
	a.ahead = most + time.Second // numbers may be further ahead at the next attempt
	return true
}
