package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// agree waits until the set's description is known to a quorum, or for so long.
func (lk *Locker) agree(ctx context.Context, limit time.Duration) error {
	if lk.lanes.Agreed() {
		return nil
	}
	o := &lk.opts
	proposal := &wire.Description{
		Epoch: 1, Quorum: o.wants.quorum, Separator: o.wants.separator, MaxTTL: o.wants.maxTTL.Milliseconds(),
		Since: o.Clock.Now().UnixMilli(),
	}
	for _, n := range lk.lanes.View().Lanes {
		proposal.Members = append(proposal.Members, n.Name)
	}
	return lk.lanes.Agree(ctx, limit, proposal.Named())
}

// ready is agree for a caller that does not use the lanes yet.
func (lk *Locker) ready(ctx context.Context) error {
	if err := lk.enter(); err != nil {
		return err
	}
	defer lk.leave()
	return lk.agree(ctx, lk.opts.NodeTimeout)
}

// acquisition is what a call wants, by what the set says if that can be known in time.
func (lk *Locker) acquisition(ctx context.Context, name string, options []AcquireOption) (*acquisition, error) {
	o := lk.current.Load()
	a, err := o.acquisition(name, options)
	if err != nil || lk.lanes.Agreed() {
		return a, err
	}
	if err := ended(ctx); err != nil {
		return nil, fmt.Errorf("redlock: acquire %q: %w", a.name, err)
	}
	a.began = o.Clock.Now()
	switch err := lk.ready(ctx); {
	case err == ErrClosed:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("redlock: acquire %q: %w", a.name, err)
	case ctx.Err() != nil && !lk.lanes.Agreed():
		return nil, lk.unagreed(ctx, a, a.began)
	}
	if now := lk.current.Load(); now != o {
		began := a.began
		a, err = now.acquisition(name, options)
		a.began = began
	}
	return a, err
}

// unagreed makes the error of a call whose context ended before the set's description was known: what each
// node has to do with that.
func (lk *Locker) unagreed(ctx context.Context, a *acquisition, began time.Time) error {
	r := lk.newRound(wire.Acquire, lk.newLock(a, 0, lk.newToken(a, "")), nil)
	r.sent = began
	for _, n := range r.view.Lanes {
		if why := n.Away(); why != nil {
			r.told[n.Index], r.reqs[n.Index].Reply = true, wire.Reply{Status: why.Status, Err: why.Err}
			r.ballot.add(voteNone)
		}
	}
	return r.explain(lk.opts.Clock.Now(), ended(ctx))
}
