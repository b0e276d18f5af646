package redlock

import (
	"cmp"
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/wire"
)

// KeepAlive renews the lock until ctx ends, and returns nil then; or until the
// lock has ended, and returns why, nil if it was released. It blocks, and is
// meant for a goroutine of the caller's; [AutoRenew] and [Locker.Do] need none.
func (l *Lock) KeepAlive(ctx context.Context) error {
	hold := cmp.Or(l.root, l)
	hold.keep(false)
	defer l.locker.renewals.Unkeep(&hold.renewal)
	select {
	case <-ctx.Done():
		return nil
	case <-l.ended():
		if why := l.why(); why != errReleased && why != errDetached {
			return why
		}
		return nil
	}
}

// newRenewals returns what renews the locks of a Locker.
func newRenewals(lk *Locker) *renew.Scheduler {
	o := &lk.opts
	return renew.New(renew.Config{
		Now: o.Clock.Now, Left: func(until time.Time) time.Duration { return left(until, o.Clock.Now()) },
		Host: o.host, Soon: o.TTL / 100, Look: o.look(),
	})
}

// keep has the lock renewed; once: extended once, if it has not been by now.
func (l *Lock) keep(once bool) {
	l.mu.Lock()
	if l.cause != nil || once && l.confirmed > 0 {
		l.mu.Unlock()
		return
	}
	alive := l.watch()
	at := l.until.Add(l.locker.opts.drift(l.claim.TTL) - l.claim.TTL + l.claim.TTL/3) // a third after the last confirmed one was sent
	l.mu.Unlock()
	if !alive {
		l.end(errShut)
		return
	}
	l.locker.renewals.Keep(&l.renewal, at, once)
}

// An item is a lock that is renewed, or watched.
type item struct{ *Lock }

func (i item) TTL() time.Duration     { return i.claim.TTL }
func (i item) Timeout() time.Duration { return i.locker.nodeTimeout(i.claim.TTL) }
func (i item) Spent() bool            { return i.spent() }
func (i item) Expire()                { _ = i.expire() }

func (i item) Shut() {
	if _, ok := i.end(errShut); ok {
		i.locker.opts.Hooks.lost(i.Lock, errShut)
	}
}

func (i item) Renew() renew.Renewal {
	return renewal{i.locker.newRound(wire.Extend, i.Lock, settle)}
}

// settle is called with the vote that decides a renewal.
func settle(r *round) { r.locker.renewals.Settle(&r.lock.renewal, renewal{r}) }

func (i item) Renewed(res renew.Result) {
	c, _ := res.Op.(*course)
	c.ends(i.Lock, res.Err)
}

// A renewal is a round that extends a lock for the Locker.
type renewal struct{ *round }

func (r renewal) Begin() error {
	l := r.lock
	select {
	case l.turns() <- struct{}{}:
	default:
		return renew.ErrBusy
	}
	r.course = l.locker.begins(l.course.renewing(), "renew", l.name, l)
	return l.beginExtension(r.round)
}

func (r renewal) Stop() { r.close() }
func (r renewal) Drop() { r.drop() }

func (r renewal) End() renew.Result {
	return r.over(r.lock.endExtension(r.round, nil))
}

func (r renewal) Abandon(err error) renew.Result { return r.over(err) }

// over gives the turn back, and the round.
func (r renewal) over(err error) renew.Result {
	l, res := r.lock, renew.Result{Err: err, Sent: r.sent, Op: r.course}
	r.drop()
	<-l.turn
	return res
}
