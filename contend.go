package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

// contested reports whether an attempt failed where nobody was seen to have a quorum of nodes.
func contested(err error) bool {
	why := quorumError(err)
	if why == nil {
		return false
	}
	r := why.refusal()
	return r.Contested()
}

// contend settles a split vote for a call that tries once. Several clients have asked in the same instant, and each
// has some of the nodes. If all of them gave up, the lock would be free and nobody would have it; if all of them
// asked again, the votes would be split again, since a client gets the node that is near to it.
//
// So they go by the order of the waiters (package waitlist). The first attempt enters the queues of the nodes that
// refuse it, and gives back what it was granted for a place in the queue. When all have done so, the one that came
// first is the first at all nodes, and gets the lock with its second attempt.
//
// A contender gives up when it sees one that came before it, and each says when it came in its token and in the
// queues. The first one sees none, so one is left. It must not be seen to win before the others give up: if it
// released the lock soon, the next one would get it, and a job would run twice. A contender also gives up when a
// client is seen to have a quorum of nodes; or, from the middle of its time on, to have the same nodes in two attempts
// (Unchanged): that one has the lock, but some of its nodes are down. Before that it may be a client that is further
// away, and whose first attempt is not over.
//
// A client that was seen with a quorum may have no lock all the same (seenWithQuorum). Those that have seen it have given
// up, and their places in the queues go, but perhaps later than it asks again. So it does not give up for one that
// came before it: if that one has not given up, it wins, and is seen with a quorum.
//
// A contender that gives up leaves the queues. It listens to no messages, since a subscription takes longer to begin
// than all of this. If its process dies, its places end with a NodeTimeout.
//
// Several clients may also hold the lock together, and each node names one of them: readers, or holders of locks below a
// folder. A place in the queues would keep other readers out. So where the tokens at a quorum of nodes say that their
// attempts began before this call did, it asks once more without a place, and gives up if the tokens are still there.
// They may be those of first attempts, of clients that are further away: then these clients settle it. Of all that try,
// the one that began first by its own clock never gives up for this. And nobody has given up for a client that is in
// no queue, and was not seen with a quorum.
//
// Seen says that the client may have been seen with a quorum before.
func (lk *Locker) contend(ctx context.Context, t *opTrace, a *acquisition, err error, seen bool) (l *Lock, _ error) {
	var last *QuorumError
	errors.As(err, &last)
	before := last.refusal()
	var w *waitlist.Waiter // none until the time is known: it is from the second attempt on
	var me *wire.Contender
	defer func() {
		if w != nil {
			w.Withdraw(l != nil)
			lk.waiting.Leave(w)
		}
	}()
	behind := !seen && before.FreeSlot() == 0 && before.HeldBefore(a.began, &before)
	if behind {
		if cause := lk.rest(ctx, last.token, min(elapsed(a.began, lk.now()), left(a.until, lk.now()))); cause != nil {
			last.Cause = cause
			return nil, last
		}
	}
	for try := 0; ; try++ {
		sent := lk.now()
		if left(a.until, sent) <= 0 {
			return nil, last
		}
		if ticket, good := lk.lanes.Ticket(a.began); w == nil && good && !behind {
			me = &wire.Contender{Ticket: ticket, Nonce: lk.parts.Host.Token()}
			w = lk.waiting.Enter(&waitlist.Want{
				Queue: "\x00" + me.Waiter(), Key: a.key, Keys: a.keys, Modes: a.modes, TTL: a.ttl, Slots: a.most(),
				Began: a.began, Contender: me, Lease: lk.nodeTimeout(a.ttl),
			})
			try = 0
		}
		l, err := lk.attempt(ctx, t, a, before.FreeSlot(), w)
		why := quorumError(err)
		switch {
		case why == nil:
			return l, err
		case ctx.Err() != nil:
			last.Cause = ended(ctx)
			return nil, last
		case left(a.until, lk.now()) <= 0: // it was cut short, and knows less than the one before
			return nil, last
		case a.concede(err):
			continue
		}
		last = why
		refusal := why.refusal()
		now := lk.now()
		late := left(a.until, now) < lk.nodeTimeout(a.ttl)/2
		seen = seen || seenWithQuorum(err)
		switch {
		case errors.Is(err, errUnfenced):
		case !refusal.Contested(), me != nil && !seen && refusal.Preceded(me), late && try > 0 && refusal.Unchanged(&before),
			behind && refusal.HeldBefore(a.began, &before):
			return nil, last
		}
		before, behind = refusal, false
		pause := lane.Jittered(max(elapsed(sent, now)/2, elapsed(a.began, now)/4, time.Millisecond), lk.parts.Host.Jitter())
		if cause := lk.rest(ctx, why.token, min(pause, left(a.until, now))); cause != nil {
			last.Cause = cause
			return nil, last
		}
	}
}

// seenWithQuorum reports whether other clients may have seen this one with a quorum of nodes in an attempt that has
// failed: its token was on as many, but the fence could not be stored, or what plain commands did was no vote.
func seenWithQuorum(err error) bool {
	why := quorumError(err)
	switch {
	case errors.Is(err, errUnfenced):
		return true
	case why == nil || !errors.Is(err, errVoid):
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

// rest returns after d, or when a call is to return, with the reason for that.
func (lk *Locker) rest(ctx context.Context, key string, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-lk.closing:
	}
	lk.parts.Host.Woke(sim.Caller, key, -1)
	return lk.stops(ctx)
}
