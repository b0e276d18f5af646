package redlock

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// Extend renews the lock once, to its full TTL from now. It is bounded by ctx and by Options.NodeTimeout.
//
// An error that is ErrLost means that the lock has ended. Any other, ErrNoQuorum for instance, leaves the lock as it is:
// valid until [Lock.Until], and worth another try. A lock that this process has released or detached, or whose Locker it has
// closed (ErrClosed), has another error, too, but no try helps.
//
// Validity counts from before the request was sent, once a quorum has confirmed it: an extension without replies moves
// nothing. Replies that come after Extend has returned count as well, while the lock is valid: then [Lock.Until] moves
// although the error said otherwise.
func (l *Lock) Extend(ctx context.Context) error {
	if !l.acquired() {
		return errNoLock
	}
	if err := l.locker.enter(); err != nil {
		return err
	}
	defer l.locker.leave()
	t := l.locker.begins(ctx, "extend", l.name, l)
	err := l.extend(ctx, t)
	t.ends(l, err)
	cmp.Or(l.hold, l).tellRenewals(false)
	return err
}

func (l *Lock) extend(ctx context.Context, t *opTrace) error {
	hold := cmp.Or(l.hold, l)
	if err := l.acquireExtendSem(ctx, hold); err != nil {
		return err
	}
	defer func() { <-hold.extendSem }()
	if why := l.why(); why != nil {
		return why
	}
	limit := l.locker.nodeTimeout(l.claim.TTL)
	for {
		if err := l.locker.agree(ctx, limit); err != nil {
			return err
		}
		view, err := hold.extendOnce(ctx, t, limit)
		if err == nil || l.why() != nil || ended(ctx) != nil || l.locker.lanes.View().Description == view.Description {
			return err
		}
	}
}

// extendOnce makes one round, of limit at most, to extend the lock, and returns the view of the set (members, quorum) that
// the round used. The caller has extendSem, the semaphore by which extensions take turns.
func (l *Lock) extendOnce(ctx context.Context, t *opTrace, limit time.Duration) (*set.View, error) {
	r := l.locker.newRound(wire.Extend, l, nil)
	defer r.drop()
	r.trace = t
	view := r.view
	if err := l.beginExtension(r); err != nil {
		return view, err
	}
	r.wait(ctx, limit)
	return view, l.endExtension(r, ended(ctx))
}

// acquireExtendSem waits for the semaphore by which extensions of hold take turns; receive from hold.extendSem to give it
// back. If l or ctx ends first, it returns why, without the semaphore. hold is the lock that l has joined; else l itself.
func (l *Lock) acquireExtendSem(ctx context.Context, hold *Lock) error {
	has := false
	select {
	case hold.extendSlot() <- struct{}{}:
		has = true
	case <-l.ended():
	case <-ctx.Done():
	}
	l.locker.parts.Host.Woke(sim.Caller, l.claim.Token, -1)
	err := cmp.Or(l.why(), ended(ctx))
	if has && err != nil {
		<-hold.extendSem
	}
	return err
}

// extendSlot returns extendSem, a channel with room for the one extension under way, and makes it if needed. It takes l.mu.
func (l *Lock) extendSlot() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.extendSem == nil {
		l.extendSem = make(chan struct{}, 1)
	}
	return l.extendSem
}

// beginExtension sends the requests of the extension r. If the lock has ended, or its validity is over (then it ends the
// lock), it sends nothing and returns why. The caller has extendSem.
func (l *Lock) beginExtension(r *round) error {
	now := l.locker.now()
	l.mu.Lock()
	switch {
	case l.endErr != nil:
		defer l.mu.Unlock()
		return l.endErr
	case left(l.until, now) <= 0:
		l.mu.Unlock()
		return l.expire()
	}
	l.rounds++
	r.number = l.rounds
	l.mu.Unlock()
	r.start(now, now.Add(l.locker.nodeTimeout(l.claim.TTL)))
	return nil
}

// endExtension does what the votes of the extension r say: it moves the end of validity, and returns nil; or it returns why
// the extension failed, and also ends the lock if its validity is over or a quorum has lost it. r is decided or closed.
// cause is why the caller stopped waiting; nil: it waited to the end.
func (l *Lock) endExtension(r *round, cause error) error {
	now := l.locker.now()
	decided := r.decided()
	l.mu.Lock()
	switch {
	case l.endErr != nil:
		defer l.mu.Unlock()
		return l.endErr
	case left(l.until, now) <= 0:
		// The confirmation came too late, or not at all. The lock ends even if the nodes still have the token: the holder has
		// been told of the end, or is about to be.
		l.mu.Unlock()
		if decided != won && cause == nil {
			l.failedRenewal(r, r.explain(now, nil))
		}
		return l.expire()
	case decided == won, l.confirmed == r.number: // or late votes have confirmed it (confirmLate)
		l.until, l.confirmed = l.validUntil(r.sent), r.number
		if l.trouble != nil && l.trouble.warned {
			l.trouble.over = true
		} else {
			l.trouble = nil
		}
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	err := r.explain(now, cause)
	if err.Kind == ErrLost {
		// So many nodes do not have the token that another client may have the lock at this moment.
		return l.fail(err)
	}
	if cause == nil { // otherwise the caller gave up
		l.failedRenewal(r, err)
	}
	return err
}

// failedRenewal records that the extension r has failed with err, for Hooks, and for the error if the lock ends of that.
func (l *Lock) failedRenewal(r *round, err *QuorumError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble == nil || l.trouble.over {
		l.trouble = &renewalTrouble{since: r.sent}
	}
	t := l.trouble
	if t.failed++; err.Granted >= r.ballot.blocking {
		t.lastBlocking, t.by = r.number, r.view.Description
	}
	t.last = err
}

// tellRenewals reports to Hooks that extensions fail, once for each series, or that they succeed again. renewed: the last
// one was by the Locker; if not, the caller of Extend has the error, and the failure is not reported. Nor is one by which
// the client has found out that the set was changed: the next renewal goes by the changed set.
func (l *Lock) tellRenewals(renewed bool) {
	known := l.locker.lanes.View().Description
	l.mu.Lock()
	recovered, failed := 0, error(nil)
	switch t := l.trouble; {
	case t == nil:
	case t.over:
		recovered, l.trouble = t.failed, nil
	case renewed && l.endErr == nil && !t.warned && !t.last.outdated(known):
		t.warned = true
		failed = t.last
	}
	l.mu.Unlock()
	if recovered > 0 {
		l.locker.settings().callbacks.renewalRecovered(l, recovered)
	}
	if failed != nil {
		l.locker.settings().callbacks.renewalFailed(l, failed)
	}
}

// keep makes the Locker renew the lock, until the lock ends or unkeep is called. If the Locker is closed, it ends the lock.
func (l *Lock) keep() {
	l.mu.Lock()
	if l.endErr != nil {
		l.mu.Unlock()
		return
	}
	alive := l.watch()
	at := l.until.Add(l.locker.settings().drift(l.claim.TTL) - l.claim.TTL + l.claim.TTL/3) // TTL/3 after the last confirmed extension was sent
	l.mu.Unlock()
	if !alive {
		l.end(errShut)
		return
	}
	l.locker.renewals.Keep(&l.renewal, at)
}

// keepWhile makes the end of ctx end the renewal that this handle has asked for (unkeep). It returns at once.
func (l *Lock) keepWhile(ctx context.Context) {
	stop := context.AfterFunc(ctx, l.unkeep)
	l.mu.Lock()
	l.unbind = stop
	over := l.endErr != nil
	l.mu.Unlock()
	if over { // end came first, and has not called it
		stop()
	}
}

// An item is a lock that the Locker renews, or whose end it watches for; package renew calls its methods.
type item struct{ *Lock }

func (i item) TTL() time.Duration     { return i.claim.TTL }
func (i item) Timeout() time.Duration { return i.locker.nodeTimeout(i.claim.TTL) }
func (i item) Spent() bool            { return i.spent() }
func (i item) Expire()                { _ = i.expire() }

func (i item) Shut() {
	if _, ok := i.end(errShut); ok {
		i.locker.settings().callbacks.lost(i.Lock, errShut)
	}
}

func (i item) Renew() renew.Renewal {
	return renewal{i.locker.newRound(wire.Extend, i.Lock, settle)}
}

// settle makes package renew finish the extension r, unless it has timed out. The goroutine of the deciding vote calls it.
func settle(r *round) { r.locker.renewals.Settle(&r.lock.renewal, renewal{r}) }

func (i item) Renewed(res renew.Result) {
	t, _ := res.Op.(*opTrace)
	t.ends(i.Lock, res.Err)
	i.tellRenewals(true)
	i.forgotten()
}

// longRenewed is how old a renewed lock is, and how long ago its last context was made, when a Warning says that no context
// of it is in use.
const longRenewed = time.Hour

// forgotten warns of a lock that has been renewed for longRenewed and has no context in use: nobody would notice its end, so
// its Release was forgotten, as a rule. It warns once for each place of the program that acquires such locks.
func (l *Lock) forgotten() {
	lk := l.locker
	now := lk.now()
	if l.place == 0 || elapsed(l.since, now) < longRenewed || lk.isClosing() {
		return
	}
	l.mu.Lock()
	used := l.endErr != nil || len(l.watchers) > 0 || len(l.joined) > 0 || !l.used.IsZero() && elapsed(l.used, now) < longRenewed
	l.mu.Unlock()
	if used {
		return
	}
	if _, told := lk.places.LoadOrStore(l.place, true); told {
		return
	}
	at, _ := runtime.CallersFrames([]uintptr{l.place}).Next()
	lk.settings().callbacks.warning(fmt.Errorf("redlock: the lock on %q has been renewed for %s, and no Context of it is in use: was its Release forgotten? It was acquired in %s (%s:%d). RenewWhile ends the renewal with a context, MaxHold after a time", l.name, printable.Duration(elapsed(l.since, now)), at.Function, filepath.Base(at.File), at.Line))
}

// A renewal is a round by which the Locker extends a lock; package renew calls its methods.
type renewal struct{ *round }

func (r renewal) Begin() error {
	l := r.lock
	select {
	case l.extendSlot() <- struct{}{}:
	default:
		return renew.ErrBusy
	}
	r.trace = l.locker.begins(l.trace.renewing(), "renew", l.name, l)
	return l.beginExtension(r.round)
}

func (r renewal) Stop() { r.close() }
func (r renewal) Drop() { r.drop() }

func (r renewal) End() renew.Result {
	return r.over(r.lock.endExtension(r.round, nil))
}

func (r renewal) Abandon(err error) renew.Result { return r.over(err) }

// over lets the next extension begin (extendSem), recycles the round (do not use r after it), and makes the Result, for
// hooks. err is why the renewal failed, or nil.
func (r renewal) over(err error) renew.Result {
	l, res := r.lock, renew.Result{Err: err, Sent: r.sent, Op: r.trace}
	r.drop()
	<-l.extendSem
	return res
}
