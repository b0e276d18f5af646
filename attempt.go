package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"
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
	if lk.opts.terms.await(ctx, err, until) {
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
		l.waiter, l.ticket, l.lease, l.try = w.name, w.ticket, leaseOf(a.ttl).Milliseconds(), w.begin(sent, l.token)
		l.reached = w.reached
	}
	r := lk.newRound(opAcquire, l, nil)
	defer r.drop()
	r.course = c
	limit := lk.nodeTimeout(a.ttl)
	r.start(sent, sent.Add(limit))
	r.wait(ctx, limit)
	decided, unfenced := r.decided(), error(nil)
	if decided == won {
		number, stored := r.fence()
		// A node that answered before a majority was heard of could not be judged by it.
		if ahead := lk.opts.clocks.beyond(number, lk.opts.Clock.Now()); ahead > a.ahead {
			unfenced = r.poisoned(lk.opts.Clock.Now(), ahead)
		} else if l.fence = number; !stored {
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
		l.cause, l.patient = errReleased, w != nil && errors.Is(err, ErrHeld) && ended(ctx) == nil && !lk.isClosing()
		l.again = now.Add(limit)
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
		lk.renewals.keep(l, false)
	}
	return l, nil
}

// newLock makes one that nobody has yet. Slot is the one to ask for; 0: any.
func (lk *Locker) newLock(a *acquisition, slot int64, token string) *Lock {
	l := &Lock{locker: lk, name: a.name}
	l.claim = claim{
		key:      a.key,
		keys:     a.keys,
		ways:     a.ways,
		token:    token,
		ttl:      a.ttl,
		millis:   a.ttl.Milliseconds(),
		proposal: lk.opts.Clock.Now().UnixMicro(),
		ahead:    a.ahead,
		at:       make([]place, len(lk.nodes)),
	}
	if a.reads() {
		l.proposal = 0
	}
	if a.slots != nil {
		l.take(slot, *a.slots)
	}
	return l
}
