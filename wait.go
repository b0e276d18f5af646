package redlock

import (
	"cmp"
	"context"
	"errors"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

// Do waits for the lock as [Locker.Acquire] does, calls fn while it is held, and
// releases it when fn returns or panics. The lock is renewed as long as fn runs;
// fn's context ends with ctx, or when the lock does, and fn should end then, too.
//
// The error is Acquire's if the lock could not be had: fn was not called. Else it
// is fn's, joined with the reason if the lock ended before fn did. That the lock
// could not be released in time is no error: the work is done, and the TTL is the
// backstop. Hooks.Unreleased reports it.
func (lk *Locker) Do(ctx context.Context, name string, fn func(context.Context, *Lock) error, options ...AcquireOption) (err error) {
	l, err := lk.Acquire(ctx, name, append(options[:len(options):len(options)], AutoRenew())...)
	if err != nil {
		return err
	}
	defer func() {
		if lost := l.Release(ctx); errors.Is(lost, ErrLost) && !errors.Is(err, ErrLost) {
			err = errors.Join(err, lost)
		}
	}()
	return fn(l.Context(ctx), l)
}

// Acquire waits until it has the lock or ctx ends; nothing else bounds it. The
// lock is not renewed by itself: see [AutoRenew] and [Locker.Do].
//
// Waiters are served first come, first served, in this process and among all that use this
// library. A release notifies the first waiter, which has the lock about two round trips later.
// Without a message (the holder died, or the message got lost) the waiter asks again when the
// lock expires, or after a tenth of the TTL, a second at the most.
//
// When ctx ends, the error is ctx's and also why the lock could not be had until
// then, ErrHeld or ErrNoQuorum: [errors.Is] finds both. What waiting cannot cure is
// returned at once: a bad option, a closed Locker, or a key in the way that is not a
// lock, on so many nodes that no quorum is left. If so many nodes refuse this client
// (a wrong password, a missing right, a certificate that is not trusted, TLS where
// there is none, a host name that does not exist), Acquire returns ErrNoQuorum after
// five seconds, since credentials and names may be about to change.
func (lk *Locker) Acquire(ctx context.Context, name string, options ...AcquireOption) (*Lock, error) {
	return lk.call(ctx, "acquire", name, options, lk.await)
}

// await waits in the local queue, and speaks to the nodes when it is the first there.
func (lk *Locker) await(ctx context.Context, t *opTrace, a *acquisition) (*Lock, error) {
	if err := lk.enter(); err != nil {
		return nil, err
	}
	defer lk.leave()
	w := lk.waiting.Enter(a.want())
	defer func() { lk.waiting.Leave(w) }()
	a.shut = lk.shut.enter(a.queue)
	defer lk.shut.leave(a.queue)
	l, err := lk.inTurn(ctx, t, a, w)
	for err == errRenamed {
		if l, err = lk.replan(ctx, a); l == nil && err == nil {
			w = lk.waiting.Replace(w, a.want())
			l, err = lk.inTurn(ctx, t, a, w)
		}
	}
	return l, err
}

func (a *acquisition) want() *waitlist.Want {
	return &waitlist.Want{Queue: a.queue, Key: a.key, Keys: a.keys, Modes: a.modes, TTL: a.ttl, Slots: a.most(), Began: a.began}
}

// inTurn speaks to the nodes when the call is the first in its local queue.
func (lk *Locker) inTurn(ctx context.Context, t *opTrace, a *acquisition, w *waitlist.Waiter) (*Lock, error) {
	if turn := w.Turn(); turn != nil {
		t.wait(nil)
		select {
		case <-turn:
		case <-ctx.Done():
		case <-lk.closing:
		}
		lk.parts.Host.Woke(sim.Waiter, w.Name(), 0)
		if cause := lk.stops(ctx); cause != nil {
			return nil, lk.unspoken(w, a, cause)
		}
	}
	l, err := lk.loop(ctx, t, a, w)
	w.Withdraw(err == nil)
	// ctx may end in the moment after an attempt was decided: then the attempt's error does not say so yet.
	if why := quorumError(err); why != nil && ctx.Err() != nil && why.Cause == nil {
		why.Cause = ended(ctx)
	}
	return l, err
}

// unspoken makes the error of a call that has waited behind another one of this Locker's.
func (lk *Locker) unspoken(w *waitlist.Waiter, a *acquisition, cause error) *QuorumError {
	view := lk.lanes.View()
	e := QuorumError{Op: wire.Acquire.String(), N: len(view.Lanes), Need: view.Quorum, Kind: ErrHeld}
	if last, ok := lk.waiting.Last(w).(*QuorumError); ok {
		e = *last
	} else if !lk.lanes.Agreed() { // the call before waits for the nodes to tell the set
		e = *lk.unasked(context.Background(), a, a.began)
	}
	e.Name, e.Cause = a.name, cause
	return &e
}

// manyCalls is after how many attempts in a row that messages have led to in vain the next message
// is not obeyed at once. As a rule the first one leads to the lock; but anybody may publish.
const manyCalls = 8

// loop makes attempts until one has the lock, or there is no point in another one.
func (lk *Locker) loop(ctx context.Context, t *opTrace, a *acquisition, w *waitlist.Waiter) (*Lock, error) {
	w.Activate()
	var last *QuorumError
	slot, again := int64(0), a.others()
	calls := 0 // that have led to an attempt in vain, one after another
	if w.Turn() == nil {
		if l, err := lk.first(ctx, t, a); !errors.Is(err, errVoid) && (ctx.Err() != nil || quorumError(err) == nil) {
			return l, err
		}
	}
	for try := 0; ; try++ {
		sent := lk.now()
		queues := w
		if !w.Ready() {
			queues = nil
		}
		l, err := lk.attempt(ctx, t, a, slot, queues)
		if err != nil && ctx.Err() != nil && last != nil {
			// A round that was cut short knows less than the one before: nodes that
			// had no time to answer are not why the call was waiting.
			last.Cause = ended(ctx)
			return nil, last
		}
		why := quorumError(err)
		if why == nil || ctx.Err() != nil {
			return l, err
		}
		refusal := why.refusal()
		if refusal.Hopeless() {
			return nil, err
		}
		now := lk.now()
		for _, n := range why.Nodes() { // of nodes that were not asked, since they are away
			a.shut.heard(n.Node, n.Outcome, n.Err, now)
		}
		if a.shut.ends(why, lk.lanes.View(), now) {
			return nil, why
		}
		if a.concede(err) {
			continue
		}
		if queues == nil && w.Ready() {
			continue // the answers have told the time
		}
		last = why
		told := *why // the waiter's will say what ended it
		lk.waiting.Failed(w, &told)
		if again > 0 {
			again--
			if slot = refusal.FreeSlot(); slot > 0 {
				continue
			}
		}
		again = a.others()
		if refusal.Held || errors.Is(err, errUnfenced) {
			w.Listen()
		} else {
			w.Withdraw(false) // it would keep the places of others for whom there may be a quorum
		}
		t.wait(why)
		p := waitlist.Pause{Held: refusal.Held, Longest: refusal.RetryIn(try, a.ttl, lk.parts.Host), Key: why.token}
		if calls >= manyCalls {
			p.Hold = waitlist.Backoff(calls-manyCalls, a.ttl, lk.parts.Host.Jitter())
		}
		p.Round = elapsed(sent, lk.now())
		called, stopped := w.Rest(ctx, lk.closing, p)
		if calls++; !called {
			calls = 0
		}
		if stopped {
			why.Cause = lk.stops(ctx)
			return nil, why
		}
		slot = cmp.Or(w.FreeSlot(), slot)
	}
}

// stops is why a call that waits is to return; nil: it may go on.
func (lk *Locker) stops(ctx context.Context) error {
	switch err := ended(ctx); {
	case err != nil:
		return err
	case lk.isClosing():
		return ErrClosed
	}
	return nil
}
