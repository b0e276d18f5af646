package redlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/sim"
)

// Acquire waits until it has the lock or ctx ends; nothing else bounds it. The
// lock is not renewed by itself: see [AutoRenew], [Lock.KeepAlive], [Locker.Do].
//
// Whoever has waited longest is next, in this process and among all that use this
// library. A release hands him the lock, which he has about one round trip later, and
// which is valid for less than its TTL at first (see [Lock.Until]); or it calls him, where
// the lock is shared, or takes in more than one name, and he has it after two. Without
// a message (the holder died, or it got lost) he finds out when the lock expires, or after
// a tenth of the TTL, a second at the most.
//
// When ctx ends, the error is ctx's and also why the lock could not be had until
// then, ErrHeld or ErrNoQuorum: [errors.Is] finds both. What no waiting can help
// is returned at once: a bad option, a closed Locker, or a key in the way that is
// no lock, on so many nodes that no quorum is left.
func (lk *Locker) Acquire(ctx context.Context, name string, options ...AcquireOption) (*Lock, error) {
	a, err := lk.opts.acquisition(name, options)
	if err != nil {
		return nil, err
	}
	if l, err := lk.within(ctx, a); l != nil || err != nil {
		return l, err
	}
	if err := lk.enter(); err != nil {
		return nil, err
	}
	defer lk.leave()
	c := lk.begins(ctx, "acquire", a.name, nil)
	l, err := lk.await(ctx, c, a)
	c.ends(l, err)
	return l, err
}

// await stands in line, and asks when it is the first.
func (lk *Locker) await(ctx context.Context, c *course, a *acquisition) (*Lock, error) {
	w := lk.hall.enter(a)
	w.course = c
	defer lk.hall.leave(w)
	if w.turn != nil {
		c.wait(nil)
		select {
		case <-w.turn:
		case <-ctx.Done():
		case <-lk.closing:
		}
		lk.opts.host.Woke(sim.Waiter, w.name, 0)
		if cause := lk.stops(ctx); cause != nil {
			return nil, lk.hall.word(w, cause)
		}
	}
	l, err := w.speak(ctx)
	w.quit(err == nil)
	return l, err
}

// speak asks until it has the lock or there is no point in it.
func (w *waiter) speak(ctx context.Context) (*Lock, error) {
	lk, a := w.hall.locker, w.want
	lk.hall.speaks(w)
	var last *QuorumError
	slot, again := int64(0), a.others()
	calls := 0 // that have led to an attempt in vain, one after another
	for try := 0; ; try++ {
		sent := lk.opts.Clock.Now()
		l, err := lk.attempt(ctx, w.course, a, slot, w)
		if err != nil && ctx.Err() != nil && last != nil {
			// A round that was cut short knows less than the one before: nodes that
			// had no time to answer are not why we were waiting.
			last.Cause = ended(ctx)
			return nil, last
		}
		var why *QuorumError
		if err == nil || ctx.Err() != nil || !errors.As(err, &why) || why.hopeless() {
			return l, err
		}
		if a.concede(err) {
			continue
		}
		last = why
		w.hall.said(w, why)
		if again > 0 {
			again--
			if slot = free(err); slot > 0 {
				continue
			}
		}
		again = a.others()
		if why.Kind == ErrHeld {
			w.hall.listen(w)
		} else {
			// We keep the places of others for whom there may be a quorum.
			w.quit(false)
		}
		w.course.wait(why)
		patience, hold := why.patience(try, a.ttl, &lk.opts), time.Duration(0)
		if calls >= manyCalls {
			hold = pause(calls-manyCalls, a.ttl, lk.opts.host.Jitter())
		}
		called, cause := w.rest(ctx, why, patience, hold, elapsed(sent, lk.opts.Clock.Now()))
		if calls++; !called {
			calls = 0
		}
		if cause != nil {
			why.Cause = cause
			return nil, why
		}
		if l := w.accept(ctx, why.token); l != nil {
			return l, nil
		}
		slot = cmp.Or(w.calledFor(), slot)
	}
}

// manyCalls is after how many attempts in a row that came of calls, and were in vain, the next
// call is not obeyed at once. One is the rule among ours; but anybody may publish.
const manyCalls = 8

// rest returns when it is time for another attempt, or no attempt is needed any more: the
// nodes have said so (called), or this much time is over. A call is obeyed after hold at the
// soonest. A round takes as long as the last one took. Where it is not that others have the
// lock, no call helps.
func (w *waiter) rest(ctx context.Context, why *QuorumError, patience, hold, round time.Duration) (called bool, cause error) {
	lk, begin := w.hall.locker, time.Now()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for over := false; !over; {
		switch enough, all, mine := w.chance(); {
		case why.Kind != ErrHeld:
		case mine >= why.Need:
			return true, nil
		case enough && all && hold == 0:
			return true, nil
		case enough:
			// A release reaches the nodes one after another: the rest are about to say
			// so, too, and nodes that have not been released would refuse.
			called = true
			timer.Reset(min(max(round/2, hold-time.Since(begin)), patience))
		case mine > 0:
			timer.Reset(min(grace, patience))
		}
		select {
		case <-w.wake:
		case <-timer.C:
			over = true
		case <-ctx.Done():
		case <-lk.closing:
		}
		// What counts is not which of these select has taken, where there are several, but what
		// there is by now.
		lk.opts.host.Woke(sim.Caller, why.token, -1)
		if cause := lk.stops(ctx); cause != nil {
			return called, cause
		}
		select {
		case <-timer.C:
			over = true
		default:
		}
	}
	return called, nil
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

// patience is how long a waiter can do without another attempt, if nobody calls.
func (e *QuorumError) patience(try int, ttl time.Duration, o *Options) time.Duration {
	jitter := o.host.Jitter()
	if votes := e.votesIn(); votes > 0 || e.Kind != ErrHeld {
		return max(votes, pause(try, ttl, jitter))
	}
	d := min(beat(ttl), e.freeIn()+time.Millisecond) // Redis counts whole milliseconds
	switch {
	case e.foreign(o):
		d = min(d, pause(try, ttl, jitter)) // nobody will call
	case e.split():
		d = min(d, pause(try+3, ttl, jitter)) // those of ours will call, but others will not
	}
	return d
}

// foreign reports whether a client that is no redlock has the lock somewhere: one whose
// token is not like ours.
func (e *QuorumError) foreign(o *Options) bool {
	return slices.ContainsFunc(e.Nodes(), func(err *NodeError) bool { return err.Outcome == OutcomeHeld && !o.host.Made(err.Holder) })
}

// split reports whether nobody can have a quorum.
func (e *QuorumError) split() bool {
	votes := make(map[string]int)
	for _, err := range e.Nodes() {
		if err.Outcome == OutcomeHeld || err.Outcome == OutcomeReserved {
			if votes[err.Holder]++; votes[err.Holder]+e.Failed >= e.Need {
				return false
			}
		}
	}
	return true
}

const (
	minPause = 4 * time.Millisecond
	maxPause = 128 * time.Millisecond
)

// pause is how long to wait before the next attempt where no node can say when: less
// soon from try to try. The jitter, from half the pause to all of it, keeps two
// contenders who split the votes from doing it again.
func pause(try int, ttl time.Duration, jitter float64) time.Duration {
	d := min(minPause<<min(try, 16), maxPause, max(ttl/8, minPause))
	return jittered(d, jitter)
}

// freeIn is the earliest time at which a quorum can be free by expiry, going by
// what the holders, or those for whom it is kept, have left at the nodes; zero: now.
func (e *QuorumError) freeIn() time.Duration {
	var held []time.Duration
	for _, err := range e.Nodes() {
		if err.Outcome == OutcomeHeld || err.Outcome == OutcomeReserved {
			held = append(held, err.TTL)
		}
	}
	need := e.Need - (e.N - len(held) - e.Failed) // held nodes that have to become free
	if need <= 0 || need > len(held) {
		return 0
	}
	slices.Sort(held)
	return held[need-1]
}

// votesIn is the earliest time at which a quorum of nodes can have votes: no answer
// before it can be a yes. Zero: now.
func (e *QuorumError) votesIn() time.Duration {
	var rest []time.Duration
	for _, err := range e.Nodes() {
		_, silent := err.Err.(lane.SilentError) // it may vote as soon as another node has been heard of
		if err.Outcome == OutcomeQuarantined && !silent {
			rest = append(rest, err.TTL)
		}
	}
	need := e.Need - (e.N - len(rest)) // of them that must have a vote again
	if need <= 0 {
		return 0
	}
	slices.Sort(rest)
	return rest[need-1]
}

// hopeless reports whether keys that are no locks leave no quorum of nodes.
func (e *QuorumError) hopeless() bool {
	foreign := 0
	for _, err := range e.Nodes() {
		if err.Outcome == OutcomeNotALock {
			foreign++
		}
	}
	return e.N-foreign < e.Need
}
