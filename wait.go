package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

func (a *acquisition) want() *waitlist.Want {
	return &waitlist.Want{Queue: a.queue, Key: a.key, Keys: a.keys, Modes: a.modes, TTL: a.ttl, Slots: a.most(), Began: a.began}
}

// unspoken makes the error of a call that ended with cause while it waited behind another call of its Locker. w is its
// waiter. The error has the nodes' last answers to that other call, if there are any.
func (c *call) unspoken(w *waitlist.Waiter, cause error) *QuorumError {
	view := c.lk.lanes.View()
	e := QuorumError{Op: wire.Acquire.String(), N: len(view.Lanes), Need: view.Quorum, Kind: ErrHeld}
	if last, ok := c.lk.waiting.Last(w).(*QuorumError); ok {
		e = *last
	} else if !c.lk.lanes.Agreed() { // the call before it waits for the description of the set
		e = *c.unasked(context.Background(), c.began)
	}
	e.Name, e.Cause = c.name, cause
	return &e
}

// contested reports whether an attempt failed with err since nodes refused it, but no other client was seen to have a quorum
// of nodes: several clients may have split the votes. False if err is no QuorumError.
func contested(err error) bool {
	why := quorumError(err)
	if why == nil {
		return false
	}
	r := why.refusal()
	return r.Contested()
}

// contend settles a split vote for a TryAcquire, by c.until. It returns the lock, or the error of the last attempt that
// c.until or c.ctx did not cut short. err is that of the attempt before; seen: others may have seen this one with a quorum.
//
// Several clients have asked in the same instant, and each has some of the nodes. If all of them gave up, the lock would be
// free and nobody would have it; if all of them asked again, the votes would be split again: each gets the nodes near it.
//
// So they go by the order of the waiters (package waitlist). The attempt of such a client, a contender, enters the queues of
// the nodes that refuse it, and gives back what it was granted for a place in the queue. When all have done so, the one that
// came first is the first at all nodes, and gets the lock with its second attempt.
//
// A contender gives up when it sees one that came before it: each says when it came in its token and in the queues. The
// first one sees none, so one is left. It must not be seen to win before the others give up: if it released the lock soon,
// the next one would get it, and a job would run twice. A contender also gives up when it sees a client with a quorum of
// nodes; or, in the second half of its time, a client with the same nodes in two attempts (Unchanged): that client has the
// lock, but some of its nodes are down. Earlier it may be a client that is further away, whose first attempt is not over.
//
// A client that was seen with a quorum may have no lock all the same (seenWithQuorum). Contenders that have seen it have
// given up, but their places in the queues may still be there when it asks again. So it does not give up for an earlier
// contender: if that one has not given up, it wins, and is seen with a quorum.
//
// A contender that gives up leaves the queues. It listens to no messages, since a subscription takes longer to begin than
// all of this. If its process dies, its places end with a NodeTimeout.
//
// Several clients may also hold the lock together, and each node names one of them: readers, or holders of locks below a
// folder. A place in the queues would keep other readers out. So where the tokens at a quorum of nodes say that their
// attempts began before this call did, the call asks again without a place, and gives up when it sees a quorum of tokens
// that it has seen before. That may take more than one look: an attempt ends when enough nodes have refused it, and the
// next one may end with the answers of other nodes. The tokens may also be those of first attempts, of clients that are
// further away: then these clients settle it. Of all that try, the one that began first by its own clock never gives up for
// this reason. And nobody has given up for a client that is in no queue, and was not seen with a quorum.
func (c *call) contend(err error, seen bool) (l *Lock, _ error) {
	last := quorumError(err)
	before := last.refusal()
	var w *waitlist.Waiter // nil until the nodes' time is known, which it is from the second attempt on
	var me *wire.Contender
	defer func() {
		if w != nil {
			w.Withdraw(l != nil)
			c.lk.waiting.Leave(w)
		}
	}()
	behind := !seen && before.HeldBefore(c.began, &before)
	if behind && !c.pause(elapsed(c.began, c.lk.now()), last) {
		return nil, last
	}
	for try := 0; ; try++ {
		sent := c.lk.now()
		if left(c.until, sent) <= 0 {
			return nil, last
		}
		if ticket, good := c.lk.lanes.Ticket(c.began); w == nil && good && !behind {
			me = &wire.Contender{Ticket: ticket, Nonce: c.lk.parts.Host.Token()}
			w = c.entered(me)
			try = 0
		}
		l, err := c.attempt(before.FreeSlot(), w)
		why := quorumError(err)
		switch {
		case why == nil:
			return l, err
		case c.ctx.Err() != nil:
			last.Cause = ended(c.ctx)
			return nil, last
		case left(c.until, c.lk.now()) <= 0: // the attempt was cut short, and shows less than the one before
			return nil, last
		case c.concede(err):
			continue
		}
		last = why
		refusal := why.refusal()
		now := c.lk.now()
		late := left(c.until, now) < c.lk.nodeTimeout(c.ttl)/2
		seen = seen || seenWithQuorum(err)
		switch {
		case errors.Is(err, errUnfenced):
		case !refusal.Contested(), me != nil && !seen && refusal.Preceded(me), late && try > 0 && refusal.Unchanged(&before),
			behind && refusal.HeldBefore(c.began, &before):
			return nil, last
		}
		if behind = behind && !seen && refusal.HeldBefore(c.began, &refusal); behind {
			refusal.Nodes = append(refusal.Nodes, before.Nodes...)
		}
		before = refusal
		if !c.pause(lane.Jittered(max(elapsed(sent, now)/2, elapsed(c.began, now)/4, time.Millisecond), c.lk.parts.Host.Jitter()), last) {
			return nil, last
		}
	}
}

// pause waits for d, or until the time of a try (c.until) is over. It reports false if c.ctx or the Locker has ended, and
// leaves the cause in last.
func (c *call) pause(d time.Duration, last *QuorumError) bool {
	cause := c.lk.sleepFor(c.ctx, last.token, min(d, left(c.until, c.lk.now())))
	if cause != nil {
		last.Cause = cause
	}
	return cause == nil
}

// entered makes the waiter by which a contender, a TryAcquire that settles a split vote, enters the nodes' queues with its
// next attempt. as has its name and rank (when it came). Its places end after a NodeTimeout. The caller calls waiting.Leave.
func (c *call) entered(as *wire.Contender) *waitlist.Waiter {
	return c.lk.waiting.Enter(&waitlist.Want{
		Queue: "\x00" + as.Waiter(), Key: c.key, Keys: c.keys, Modes: c.modes, TTL: c.ttl, Slots: c.most(),
		Began: c.began, Contender: as, Lease: c.lk.nodeTimeout(c.ttl),
	})
}

// seenWithQuorum reports whether, in an attempt that failed with err, other clients may have seen this client's token at a
// quorum of nodes: the fence could not be stored there, or the nodes had set the key by plain commands, but their answers
// were no votes.
func seenWithQuorum(err error) bool {
	why := quorumError(err)
	switch {
	case errors.Is(err, errUnfenced):
		return true
	case why == nil || !errors.Is(err, errNeedsScript):
		return false
	}
	may := why.N
	for _, n := range why.Nodes() {
		if wire.Status(n.Outcome) != wire.Void {
			may--
		}
	}
	return may >= why.Need
}
