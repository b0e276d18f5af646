package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// nodeTimeout is how long one round of a lock with this TTL may take.
func (lk *Locker) nodeTimeout(ttl time.Duration) time.Duration {
	return min(lk.opts.NodeTimeout, ttl/2)
}

// TryAcquire asks the nodes once for the lock. It takes at most
// Options.NodeTimeout, or until ctx ends; and twice that where a node has lost its data,
// and the vote that it has again depends on what another one says.
//
// The error is ErrHeld or ErrNoQuorum, with the details in a [QuorumError], and
// also ctx's error if that has ended; nothing is left behind then. Of those who ask in
// the same instant, as cron jobs do, each may get some of the nodes and nobody the lock:
// where one of them has to have it, Acquire with a short ctx gives it to one.
func (lk *Locker) TryAcquire(ctx context.Context, name string, options ...AcquireOption) (*Lock, error) {
	a, err := lk.opts.acquisition(name, options)
	if err != nil {
		return nil, err
	}
	if l, err := lk.within(ctx, a); l != nil || err != nil {
		return l, err
	}
	c := lk.begins(ctx, "try-acquire", a.name, nil)
	until := lk.opts.Clock.Now().Add(lk.nodeTimeout(a.ttl))
	l, err := lk.attempt(ctx, c, a, 0, nil)
	for a.concede(err) {
		l, err = lk.attempt(ctx, c, a, 0, nil)
	}
	if lk.awaitVotes(ctx, a, err, until) {
		l, err = lk.attempt(ctx, c, a, 0, nil)
	}
	for range a.others() {
		slot := free(err)
		if slot == 0 {
			break
		}
		l, err = lk.attempt(ctx, c, a, slot, nil)
	}
	c.ends(l, err)
	return l, err
}

// attempt is one round for a new lock, with a token of its own: whatever became
// of an earlier attempt's requests, they can neither take nor release this one.
func (lk *Locker) attempt(ctx context.Context, c *course, a *acquisition, slot int64, w *waiter) (*Lock, error) {
	if err := lk.enter(); err != nil {
		return nil, err
	}
	defer lk.leave()
	if err := ended(ctx); err != nil {
		return nil, fmt.Errorf("redlock: acquire %q: %w", a.name, err)
	}
	c.tries()
	l := lk.newLock(a, slot, lk.opts.host.Token())
	l.course = c
	sent := lk.opts.Clock.Now()
	if l.by = w; w != nil {
		l.claim.Waiter, l.claim.Ticket, l.claim.Lease, l.claim.Try = w.name, w.ticket, leaseOf(a.ttl).Milliseconds(), w.begin(sent, l.claim.Token)
		l.claim.Reached = w.reached
	}
	r := lk.newRound(wire.Acquire, l, nil)
	defer r.drop()
	r.course = c
	limit := lk.nodeTimeout(a.ttl)
	r.start(sent, sent.Add(limit))
	r.wait(ctx, limit)
	decided, unfenced := r.decided(), error(nil)
	if decided == won {
		number, stored := r.fence()
		// A node that answered before a majority was heard of could not be judged by it.
		if ahead := lk.lanes.Beyond(number, lk.opts.Clock.Now()); ahead > a.ahead {
			unfenced = r.poisoned(lk.opts.Clock.Now(), ahead)
		} else if l.claim.Fence = number; !stored {
			unfenced = lk.raise(ctx, l, sent, limit)
		}
	}

	// The second look at the clock, after the last vote that was needed: a lock
	// that took its whole life to acquire is none.
	now := lk.opts.Clock.Now()
	drift := lk.opts.drift(a.ttl)
	err := ended(ctx)
	switch {
	case decided != won:
		err = r.explain(now, err)
	case unfenced != nil:
		err = unfenced
	case validFor(sent, now, a.ttl, drift) <= 0:
		err = r.tooLate(now)
	case err != nil:
		err = fmt.Errorf("redlock: acquire %q: %w", a.name, err)
	case lk.isClosing():
		err = ErrClosed
	}
	if err != nil {
		l.mu.Lock()
		l.cause, l.claim.KeepPlace = errReleased, w != nil && errors.Is(err, ErrHeld) && ended(ctx) == nil && !lk.isClosing()
		l.claim.RetryBy = now.Add(limit)
		l.over.Store(true)
		l.mu.Unlock()
		l.giveBack()
		return nil, err
	}
	l.since = now
	if a.maxHold != nil {
		l.last = now.Add(*a.maxHold)
	}
	l.until = l.validUntil(sent)
	if a.renewed {
		l.keep(false)
	}
	return l, nil
}

// newLock makes one that nobody has yet. Slot is the one to ask for; 0: any.
func (lk *Locker) newLock(a *acquisition, slot int64, token string) *Lock {
	l := &Lock{locker: lk, name: a.name}
	l.renewal = renew.NewEntry(item{l})
	l.claim = lane.Claim{
		Key:      a.key,
		Keys:     a.keys,
		Modes:    a.modes,
		Token:    token,
		TTL:      a.ttl,
		Millis:   a.ttl.Milliseconds(),
		Proposal: lk.opts.Clock.Now().UnixMicro(),
		Ahead:    a.ahead,
	}
	l.claim.Span(len(lk.lanes.Lanes))
	if a.reads() {
		l.claim.Proposal = 0
	}
	if a.slots != nil {
		takeSlot(&l.claim, slot, *a.slots)
	}
	return l
}

// awaitVotes waits until a node that could not vote for want of another's word can, and
// reports whether one can. A client that asks after a long time hears of all nodes at once,
// also of one that lost its data meanwhile, and for others has been able to vote again for
// long: whether it can is decided by the answers of the others, which may come a moment later.
// They are asked for their markers, which a refusal does not show.
func (lk *Locker) awaitVotes(ctx context.Context, a *acquisition, err error, until time.Time) bool {
	var why *QuorumError
	if !errors.As(err, &why) || !slices.ContainsFunc(why.Nodes(), (*NodeError).awaits) {
		return false
	}
	about := &lane.Claim{Key: a.key, Keys: a.keys[:1]}
	about.Span(len(lk.lanes.Lanes))
	now := lk.opts.Clock.Now()
	for _, n := range lk.lanes.Lanes {
		n.Submit(&lane.Request{Op: wire.Inspect, Claim: about, Deadline: until, To: lane.Nobody{}}, now)
	}
	look := time.NewTicker(max(lk.opts.NodeTimeout/64, time.Millisecond))
	defer look.Stop()
	for lk.opts.Clock.Now().Before(until) {
		for _, n := range why.Nodes() {
			if silent, is := n.Err.(lane.SilentError); is && silent.Votes() {
				return true
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
		lk.opts.host.Woke(sim.Caller, why.token, -1)
		if err := ended(ctx); err != nil {
			why.Cause = err
			return false
		}
	}
	return false
}

// awaits reports whether the node cannot vote before another one has been heard of.
func (e *NodeError) awaits() bool {
	_, silent := e.Err.(lane.SilentError)
	return silent
}
