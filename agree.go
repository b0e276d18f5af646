package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// agree waits until the set's description is known to a quorum, or for so long.
func (lk *Locker) agree(ctx context.Context, limit time.Duration) error {
	_, err := lk.agreeUnless(ctx, limit, func() bool { return false })
	return err
}

// agreeUnless is agree; but it also returns when the condition is true after the client has learned something. It reports
// whether the set is new: the nodes kept no description.
func (lk *Locker) agreeUnless(ctx context.Context, limit time.Duration, so func() bool) (isNew bool, _ error) {
	if lk.lanes.Agreed() {
		return false, nil
	}
	o := lk.settings()
	proposal := &wire.Description{
		Epoch: 1, Set: wire.SetName(lk.parts.Host.Token()), Quorum: o.wants.quorum, Separator: o.wants.separator, MaxTTL: o.MaxTTL.Milliseconds(),
		Since: o.Clock.Now().UnixMilli(),
	}
	for _, n := range lk.lanes.View().Lanes {
		proposal.Members = append(proposal.Members, n.Name)
	}
	return lk.lanes.Agree(ctx, limit, proposal, so)
}

// ready is agree for a caller that does not use the lanes yet.
func (lk *Locker) ready(ctx context.Context) error {
	if err := lk.enter(); err != nil {
		return err
	}
	defer lk.leave()
	return lk.agree(ctx, lk.settings().NodeTimeout)
}

// acquisition is what a call wants, by what is known of the set. If nothing is, it goes by the program's own options. The
// call takes its place in the order of waiters at once all the same, and is planned anew when the set turns out to have
// another separator, or another MaxTTL (errRenamed, replan).
func (lk *Locker) acquisition(name string, options []AcquireOption) (*acquisition, error) {
	o := lk.settings()
	began := o.Clock.Now()
	a, err := o.acquisition(name, options)
	a.began = began
	return a, err
}

// bounds returns an error if the lock would live for longer than the set allows.
func (lk *Locker) bounds(ctx context.Context, a *acquisition) error {
	if lk.settings().bounds(a) == nil {
		return nil
	}
	if err := lk.enter(); err != nil {
		return err
	}
	defer lk.leave()
	lk.asksFor(ctx, a.ttl)
	if err := ended(ctx); err != nil {
		return fmt.Errorf("redlock: acquire %q: %w", a.asked, err)
	}
	return lk.settings().bounds(a)
}

// asksFor asks the members whether the set allows so long a TTL by now, if it does not as far as is known. A client that
// has asked the nodes for nothing since has not heard of a change.
func (lk *Locker) asksFor(ctx context.Context, ttl time.Duration) {
	if o := lk.settings(); o.Quarantine > 0 && o.over(ttl) {
		lk.lanes.Ask(ctx, lk.nodeTimeout(ttl))
	}
}

// errRenamed says that no node was asked for a lock: the call made its keys with another separator than that of the set,
// or its TTL is longer than the set allows. The caller plans it again (replan).
var errRenamed = errors.New("the lock is another one by the settings of the set")

func (lk *Locker) renamed(a *acquisition) bool {
	o := lk.settings()
	return a.separator != o.Separator || o.over(a.ttl)
}

// replan makes an acquisition what its call asks for by what the set says now. The call keeps its place, and its bound.
// If the call turns out to be within a lock of its context, replan returns what within does.
func (lk *Locker) replan(ctx context.Context, a *acquisition) (*Lock, error) {
	o := lk.settings()
	now, err := o.acquisition(a.asked, a.options)
	if err != nil {
		return nil, err
	}
	now.began, now.until, now.shut = a.began, a.until, a.shut
	*a = *now
	if l, err := lk.within(ctx, a); l != nil || err != nil {
		return l, err
	}
	return nil, o.bounds(a)
}

// settled waits until a quorum keeps the set's description: for a NodeTimeout, and for another one while it is chosen.
// After that an attempt says of each node what is wrong. settled returns an error if the program cannot use the set, if
// ctx ends, or errRenamed.
func (lk *Locker) settled(ctx context.Context, a *acquisition) error {
	if !lk.lanes.Agreed() {
		began := lk.now()
		patience := lk.limit(a, began)
		if !a.until.IsZero() {
			patience /= 2 // the rest is for the nodes' answers
		}
		isNew, err := lk.agreeUnless(ctx, patience, func() bool { return lk.renamed(a) })
		if err != nil {
			return fmt.Errorf("redlock: acquire %q: %w", a.name, err)
		}
		if ctx.Err() != nil && !lk.lanes.Agreed() {
			return lk.unasked(ctx, a, began)
		}
		if isNew { // other programs have just begun, too
			now := lk.now()
			lk.notPlain(a.key, now)
			if limit := lk.nodeTimeout(a.ttl); a.until.Equal(a.began.Add(limit)) { // at most once
				a.until = now.Add(limit) // what tries need to settle a split vote
			}
		}
	}
	if lk.renamed(a) {
		return errRenamed
	}
	return nil
}

// unasked makes the error of a call whose time was over before a node was asked for the lock, since the set's
// description was not known, or the clock was set: what each node has to do with that.
func (lk *Locker) unasked(ctx context.Context, a *acquisition, began time.Time) *QuorumError {
	r := lk.newRound(wire.Acquire, lk.newLock(a, 0, lk.newToken(a, "")), nil)
	r.sent = began
	for i, n := range r.view.Lanes {
		if why := n.Away(); why != nil {
			r.told[i], r.reqs[i].Reply = true, wire.Reply{Status: why.Status, Err: why.Err}
			r.ballot.add(voteNone)
		}
	}
	return r.explain(lk.now(), ended(ctx))
}
