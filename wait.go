package redlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/seam"
)

// Acquire waits until it has the lock or ctx ends; nothing else bounds it. The
// lock is not renewed by itself: see [Renewed], [Lock.KeepAlive], [Locker.Do].
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
	var last *QuorumError
	for try := 0; ; try++ {
		l, err := lk.attempt(ctx, name, a)
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
		last = why
		timer := time.NewTimer(max(why.votesIn(), pause(try, a.ttl, why.freeIn(), lk.opts.host.Jitter())))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			why.Cause = ended(ctx)
			return nil, why
		case <-lk.closing:
			timer.Stop()
			why.Cause = ErrClosed
			return nil, why
		}
		lk.opts.host.Woke(seam.Caller, why.token, -1)
	}
}

const (
	minPause = 4 * time.Millisecond
	maxPause = 128 * time.Millisecond
)

// pause is how long to wait before the next attempt: no longer than until the
// holder's keys expire, for then the lock is free for certain; but sooner, since
// it may be released any time, and less soon from try to try. The jitter, from
// half the pause to all of it, keeps two contenders who split the votes from
// doing it again.
func pause(try int, ttl, free time.Duration, jitter float64) time.Duration {
	limit := min(maxPause, max(ttl/8, minPause))
	d := min(minPause<<min(try, 16), limit)
	d = d/2 + time.Duration(jitter*float64(d/2))
	if free > 0 {
		d = min(d, free+time.Millisecond) // Redis counts whole milliseconds
	}
	return d
}

// freeIn is the earliest time at which a quorum can be free by expiry, going by
// what the holders have left at the nodes; zero: now.
func (e *QuorumError) freeIn() time.Duration {
	var held []time.Duration
	for _, err := range e.Nodes() {
		if err.Outcome == Held {
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
		if err.Outcome == Quarantined {
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
		if err.Outcome == Foreign {
			foreign++
		}
	}
	return e.N-foreign < e.Need
}
