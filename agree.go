package redlock

import (
	"context"
	"fmt"
	"strings"
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
		Epoch: 1, Set: nonce(o.host.Token()), Quorum: o.wants.quorum, Separator: o.wants.separator, MaxTTL: o.wants.maxTTL.Milliseconds(),
		Since: o.Clock.Now().UnixMilli(),
	}
	for _, n := range lk.lanes.View().Lanes {
		proposal.Members = append(proposal.Members, n.Name)
	}
	return lk.lanes.Agree(ctx, limit, proposal)
}

// nonce makes the name of a new set of a token: one that no other set has, also if it is made of the same nodes. So what
// is left of an earlier set, in a snapshot or a copy, never passes for a later description of this one.
func nonce(token string) string {
	token = strings.ReplaceAll(token, "-", "")
	return token[max(0, len(token)-16):]
}

// ready is agree for a caller that does not use the lanes yet.
func (lk *Locker) ready(ctx context.Context) error {
	return lk.readyIn(ctx, lk.opts.NodeTimeout)
}

func (lk *Locker) readyIn(ctx context.Context, limit time.Duration) error {
	if err := lk.enter(); err != nil {
		return err
	}
	defer lk.leave()
	return lk.agree(ctx, limit)
}

// acquisition is what a call wants, by what the set says if that can be known in time. A call that tries once waits
// for that for half of its time.
func (lk *Locker) acquisition(ctx context.Context, name string, options []AcquireOption, once bool) (*acquisition, error) {
	o := lk.current.Load()
	began := o.Clock.Now()
	a, err := o.acquisition(name, options)
	if a.began = began; err != nil || lk.lanes.Agreed() {
		return a, err
	}
	if err := ended(ctx); err != nil {
		return nil, fmt.Errorf("redlock: acquire %q: %w", a.name, err)
	}
	patience := lk.opts.NodeTimeout
	if once {
		patience = lk.nodeTimeout(a.ttl) / 2
	}
	switch err := lk.readyIn(ctx, patience); {
	case err == ErrClosed:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("redlock: acquire %q: %w", a.name, err)
	case ctx.Err() != nil && !lk.lanes.Agreed():
		return nil, lk.unasked(ctx, a, began)
	}
	if now := lk.current.Load(); now != o {
		a, err = now.acquisition(name, options)
		a.began = began
	}
	return a, err
}

// unasked makes the error of a call whose time was over before a node was asked for the lock, since the set's
// description was not known, or the clock was set: what each node has to do with that.
func (lk *Locker) unasked(ctx context.Context, a *acquisition, began time.Time) error {
	r := lk.newRound(wire.Acquire, lk.newLock(a, 0, lk.newToken(a, "")), nil)
	r.sent = began
	for i, n := range r.view.Lanes {
		if why := n.Away(); why != nil {
			r.told[i], r.reqs[i].Reply = true, wire.Reply{Status: why.Status, Err: why.Err}
			r.ballot.add(voteNone)
		}
	}
	return r.explain(lk.opts.Clock.Now(), ended(ctx))
}
