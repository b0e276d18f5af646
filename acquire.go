package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

// From an Acquire to the nodes: wait queues the call behind others of this process, attempts repeats until the lock is
// there, attempt repeats if the set of nodes is changed, and round asks all nodes once. TryAcquire has try instead of wait.

// TryAcquire acquires the lock if no other client has it, and does not wait for a release. It takes at most
// Options.NodeTimeout (TTL/2, if that is shorter), and returns early when ctx ends. The first call on new nodes also stores
// a description of their set (its members and settings) on them, which adds at most one and a half times that.
//
// If another client has the lock, TryAcquire returns at once. If too few of the holder's nodes answer to tell a holder from
// a client that is still asking, it returns soon after half its time. If several clients ask in the same instant, as cron
// jobs do, each may get some of the nodes, and none a quorum. They then settle it by the order in which they came, and one
// of them gets the lock. As a rule that takes up to nine round trips: use a longer NodeTimeout where a round trip takes more
// than a ninth of it.
//
// The error is ErrHeld or ErrNoQuorum, with the details in a [QuorumError]. If ctx has ended, it is also ctx's; if before
// the call, as a rule only ctx's. A failed call leaves nothing behind: a node that is away drops the token at its TTL.
func (lk *Locker) TryAcquire(ctx context.Context, name string, options ...AcquireOption) (*Lock, error) {
	c, l, err := lk.call(ctx, "try-acquire", name, options)
	if c == nil {
		return l, err
	}
	return c.ends(c.try())
}

// Acquire waits until it has the lock, ctx ends, or the time of option [Wait] is over. It does not renew the lock: see
// [AutoRenew].
//
// Waiters are served first come, first served, in this process and among all processes that use this library. A release
// notifies the first waiter, which has the lock about two round trips later. Without a notification (the holder died, or the
// message was lost) the waiter asks again when the lock expires, or after TTL/10, at least 100 ms and at most a second.
//
// When ctx ends, the error is ctx's error and, if an attempt has failed by then, also why, ErrHeld or ErrNoQuorum:
// [errors.Is] finds both. Acquire returns at once for what waiting cannot cure: a bad option, a closed Locker, or a key in
// the way that is not a lock, if the nodes without such a key are no quorum. Nodes may refuse this client (a wrong password,
// a missing right, a certificate that is not trusted, a port without TLS, a host name that does not exist). If the
// others are no quorum, Acquire returns ErrNoQuorum after five seconds, since credentials and names may be about to change.
func (lk *Locker) Acquire(ctx context.Context, name string, options ...AcquireOption) (*Lock, error) {
	c, l, err := lk.call(ctx, "acquire", name, options)
	if c == nil {
		return l, err
	}
	if c.patience == nil {
		return c.ends(c.wait())
	}
	return c.ends(c.waitFor(*c.patience))
}

// Do waits for the lock as [Locker.Acquire] does, calls fn while it is held, and releases it when fn returns or panics. Do
// renews the lock as long as fn runs. fn's context ends with ctx, with the lock, and with Shutdown; fn should end then, too.
//
// If Do does not get the lock, it does not call fn, and the error is Acquire's. Otherwise the error is fn's, joined with the
// reason (ErrLost) if the lock ended before fn did. A release that could not be confirmed in time is no error, since the
// work is done and the TTL is the backstop: Hooks.Unreleased reports it.
func (lk *Locker) Do(ctx context.Context, name string, fn func(context.Context, *Lock) error, options ...AcquireOption) (err error) {
	if err := lk.doBegins(); err != nil {
		return err
	}
	defer lk.doEnds()
	l, err := lk.Acquire(ctx, name, append(options[:len(options):len(options)], ofDo)...)
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

// ofDo is AutoRenew for a lock that Do releases, so that no Warning says that its release was forgotten.
var ofDo AcquireOption = acquireOption(func(a *acquisition) { a.renewed, a.byDo = true, true })

// A call is a TryAcquire or an Acquire under way: what it asks for, and its operation of Hooks.Trace (nil: not traced).
type call struct {
	lk    *Locker
	ctx   context.Context
	trace *opTrace
	*acquisition
}

// call checks name and options; op names the operation in traces. It returns the call that is to acquire the lock; or, if a
// reentrant call joins a lock from whose context (Lock.Context) ctx was made, a new handle of it, without asking a node; or
// the error of an invalid call. The keys are planned by the set's settings if known, else by this Locker's Options. If the
// set's turn out to differ, the call starts over later (errAgain), with its rank among the waiters.
func (lk *Locker) call(ctx context.Context, op, name string, options []AcquireOption) (*call, *Lock, error) {
	if err := lk.made(); err != nil {
		return nil, nil, err
	}
	o := lk.settings()
	began := o.Clock.Now()
	a, err := o.acquisition(name, options)
	if err != nil {
		return nil, nil, err
	}
	a.began = began
	if a.renewed && !a.byDo && a.while == nil && a.maxHold == nil {
		var pc [1]uintptr
		runtime.Callers(3, pc[:]) // of Acquire or TryAcquire, which has called this
		a.place = pc[0]
	}
	if lk.isClosing() {
		return nil, nil, ErrClosed
	}
	if a.minHold != nil { // also of a call that joins a lock, and is not bounded by that lock's TTL
		if err := lk.bounds(ctx, a); err != nil {
			return nil, nil, err
		}
	}
	if l, err := lk.within(ctx, a); l != nil || err != nil {
		return nil, l, err
	}
	if err := lk.bounds(ctx, a); err != nil {
		return nil, nil, err
	}
	return &call{lk, ctx, lk.begins(ctx, op, a.name, nil), a}, nil, nil
}

// ends reports the result of the call to the trace, and to tests (Locker.watched). It returns l and err unchanged.
func (c *call) ends(l *Lock, err error) (*Lock, error) {
	if err == nil {
		c.lk.watched(l)
	}
	c.trace.ends(l, err)
	return l, err
}

// wait waits until the call has the lock; or returns why it ends without: its context has ended, or waiting does not help
// (see Acquire). The calls of this Locker for the same lock stand in a local queue, of which only the first asks the nodes.
func (c *call) wait() (*Lock, error) {
	if err := c.lk.enter(); err != nil {
		return nil, err
	}
	defer c.lk.leave()
	w := c.lk.waiting.Enter(c.want())
	defer func() { c.lk.waiting.Leave(w) }()
	c.shut = c.lk.shut.enter(c.queue)
	defer c.lk.shut.leave(c.queue)
	l, err := c.inTurn(w)
	for err == errAgain {
		if l, err = c.replan(); l == nil && err == nil {
			w = c.lk.waiting.Replace(w, c.want())
			l, err = c.inTurn(w)
		}
	}
	return l, err
}

// waitFor waits for the lock like wait, but for d at most (option Wait). When d is over, the error is a QuorumError whose
// Cause says so. With d = 0 it asks once, like try.
func (c *call) waitFor(d time.Duration) (*Lock, error) {
	if d == 0 {
		return c.try()
	}
	waited := fmt.Errorf("waited for %s", printable.Duration(d))
	ctx, cancel := context.WithTimeoutCause(c.ctx, d, waited)
	defer cancel()
	c.ctx = ctx
	l, err := c.wait()
	why := quorumError(err)
	switch {
	case why == nil && errors.Is(err, waited): // the time ended before a node was asked
		why = c.unasked(context.Background(), c.began)
	case why == nil || why.Cause != nil && !errors.Is(why.Cause, waited):
		return l, err
	case why.Cause == nil && context.Cause(ctx) != waited: // waiting does not help
		return nil, err
	}
	why.Cause = waited
	return nil, why
}

// inTurn waits until the call's waiter w is the first in its local queue, makes attempts, and then, with the lock or
// without, removes w from the nodes' queues, not from the local one. The error is attempts', or why w's turn never came.
func (c *call) inTurn(w *waitlist.Waiter) (*Lock, error) {
	if turn := w.Turn(); turn != nil {
		c.trace.wait(nil)
		select {
		case <-turn:
		case <-c.ctx.Done():
		case <-c.lk.closing:
		}
		c.lk.parts.Host.Woke(sim.Waiter, w.Name(), 0)
		if cause := c.lk.stops(c.ctx); cause != nil {
			return nil, c.unspoken(w, cause)
		}
	}
	l, err := c.attempts(w)
	w.Withdraw(err == nil)
	// ctx may end just after an attempt was decided: then the attempt's error does not say so yet.
	if why := quorumError(err); why != nil && c.ctx.Err() != nil && why.Cause == nil {
		why.Cause = ended(c.ctx)
	}
	return l, err
}

// manyCalls bounds the failed attempts in a row to which messages of nodes ("the lock may be free") have led. After that the
// next message does not end a pause at once. As a rule the first message leads to the lock; but anybody may publish one.
const manyCalls = 8

// attempts asks the nodes for the lock, with pauses, until it has the lock, the call's context ends, the Locker is closed,
// or another attempt has no point. The error says why; errAgain: plan the keys anew (replan). w is first in its local queue.
func (c *call) attempts(w *waitlist.Waiter) (*Lock, error) {
	w.Activate()
	if w.Turn() == nil {
		if l, err := c.plain(); !errors.Is(err, errNeedsScript) && (c.ctx.Err() != nil || quorumError(err) == nil) {
			return l, err
		}
	}
	var last *QuorumError
	slot, again := int64(0), c.others()
	vain := 0 // failed attempts in a row that messages have led to
	for try := 0; ; try++ {
		sent := c.lk.now()
		queues := w
		if !w.Ready() {
			queues = nil
		}
		l, err := c.attempt(slot, queues)
		if err != nil && c.ctx.Err() != nil && last != nil {
			// A round that was cut short knows less than the one before: nodes that had no time to answer are not why the call
			// was waiting.
			last.Cause = ended(c.ctx)
			return nil, last
		}
		why := quorumError(err)
		if why == nil || c.ctx.Err() != nil {
			return l, err
		}
		refusal := why.refusal()
		switch {
		case refusal.Hopeless():
			return nil, err
		case c.shutOut(why):
			return nil, why
		case c.concede(err), queues == nil && w.Ready(): // or the answers have told the nodes' time, so w may enter queues
			continue
		}
		last = why
		told := *why // a copy, since why.Cause may be set later
		c.lk.waiting.Failed(w, &told)
		if again > 0 {
			again--
			if slot = refusal.FreeSlot(); slot > 0 {
				continue
			}
		}
		again = c.others()
		if refusal.Held || errors.Is(err, errUnfenced) {
			w.Listen()
		} else {
			w.Withdraw(false) // its places in the queues would keep out others, for whom there may be a quorum
		}
		p := waitlist.Pause{Held: refusal.Held, Longest: refusal.RetryIn(try, c.ttl, c.lk.parts.Host), Key: why.token}
		var stopped bool
		if vain, stopped = c.rest(w, why, p, sent, vain); stopped {
			why.Cause = c.lk.stops(c.ctx)
			return nil, why
		}
		slot = cmp.Or(w.FreeSlot(), slot)
	}
}

// rest waits between two attempts, until messages of nodes say that the next one may succeed, or the pause p is over. The
// last attempt began at sent, and failed with why. vain counts the failed attempts in a row to which messages led: from
// manyCalls on, messages end a pause later. next: the new vain; 0: no message came. stopped: ctx ended, or Close.
func (c *call) rest(w *waitlist.Waiter, why *QuorumError, p waitlist.Pause, sent time.Time, vain int) (next int, stopped bool) {
	c.trace.wait(why)
	if vain >= manyCalls {
		p.Hold = waitlist.Backoff(vain-manyCalls, c.ttl, c.lk.parts.Host.Jitter())
	}
	p.Round = elapsed(sent, c.lk.now())
	called, stopped := w.Rest(c.ctx, c.lk.closing, p)
	if !called {
		return 0, stopped
	}
	return vain + 1, stopped
}

// shutOut records the nodes' answers to the last attempt, whose error is why, and reports whether waiting is of no use:
// without the nodes that have refused this client (a wrong password, say) for refusalPatience, no quorum is left. Then it
// changes why to say that, for the caller to return. The answer of a node that is down is the error of its last connection.
func (c *call) shutOut(why *QuorumError) bool {
	now := c.lk.now()
	for _, n := range why.Nodes() {
		c.shut.note(n.Node, n.Outcome, n.Err, now)
	}
	return c.shut.ends(why, c.lk.lanes.View(), now)
}

// try makes the attempts of a TryAcquire. It starts over with new keys, but the same deadline, if the set's separator or
// MaxTTL turns out to be another one (errAgain).
func (c *call) try() (*Lock, error) {
	l, err := c.tryOnce()
	for err == errAgain {
		if l, err = c.replan(); l == nil && err == nil {
			l, err = c.tryOnce()
		}
	}
	return l, err
}

// tryOnce asks by plain commands, then by the script as long as the answers say that another attempt may succeed, until
// c.until (which it sets if it is zero). If the votes are split, contend goes on. errAgain: start over (replan).
func (c *call) tryOnce() (*Lock, error) {
	if c.until.IsZero() {
		c.until = c.began.Add(c.lk.nodeTimeout(c.ttl))
	}
	l, err := c.plain()
	seen := seenWithQuorum(err)
	again := func(slot int64) { // if no time is left, the last error stays: it says more than that
		if quorumError(err) == nil || c.limit(c.lk.now()) > 0 {
			l, err = c.attempt(slot, nil)
			seen = seen || seenWithQuorum(err)
		}
	}
	if errors.Is(err, errNeedsScript) && !contested(err) {
		again(0)
	}
	for c.concede(err) {
		again(0)
	}
	if c.awaitVotes(err) {
		again(0)
	}
	for range c.others() {
		slot := freeSlot(err)
		if slot == 0 {
			break
		}
		again(slot)
	}
	if contested(err) {
		return c.contend(err, seen)
	}
	if why := quorumError(err); why != nil && errors.Is(err, errNeedsScript) {
		err = why
	}
	return l, err
}

// plain makes an attempt by plain commands (SET NX PX and ZADD), which cost a node half of what the script costs. It does so
// only for one exclusive key that no other client is known to want, in a set without Options.Separator. The error is
// errNeedsScript if that is not so, no attempt can be made, or the answers are no votes (wire.PlainAnswer): then try the
// script, which names the holder and puts a waiter into the queues. Other errors are those of round and settled.
//
// After a failed plain attempt, which may keep the lock from the first waiter of a queue for a round trip, another one soon
// would fail, too, and two attempts cost more than one. So for plainPause after it, plain returns errNeedsScript at once.
func (c *call) plain() (*Lock, error) {
	if c.modes != string(wire.ModeX) || c.separator != "" {
		return nil, errNeedsScript
	}
	if err := c.settled(); err != nil {
		return nil, err
	}
	now := c.lk.now()
	if !c.lk.mayPlain(c.key, now) {
		return nil, errNeedsScript
	}
	number, good := c.lk.lanes.Number(now)
	if !good {
		return nil, errNeedsScript
	}
	before := c.lk.lanes.View()
	l, err := c.round(number, 0, nil)
	if err == nil {
		c.trace.tries() // a failed one is not counted: it is the beginning of the next attempt
		return l, nil
	}
	c.lk.notPlain(c.key, c.lk.now())
	if !errors.Is(err, ErrClosed) && c.ctx.Err() == nil && c.lk.lanes.View().Description != before.Description {
		// The set's description was changed meanwhile. A node that learned of the later one after the round began, and before
		// its request arrived, granted by the later one, which is no vote in this round. All nodes may have done so.
		err = errNeedsScript
	}
	return l, err
}

// errNeedsScript means that plain commands did not get the lock. It says nothing about who has it.
var errNeedsScript = errors.New("not by plain commands")

// attempt asks the nodes for the lock by the script, and again if the set's description was changed meanwhile. slot is the
// slot to ask for; 0: any. w enters the queues of nodes that refuse; nil: nobody does. Errors are as for round and settled.
func (c *call) attempt(slot int64, w *waitlist.Waiter) (*Lock, error) {
	for {
		if err := c.settled(); err != nil {
			return nil, err
		}
		before := c.lk.lanes.View()
		l, err := c.round(0, slot, w)
		if err != nil && c.ctx.Err() == nil && c.lk.lanes.View().Description != before.Description {
			continue
		}
		if errors.Is(err, ErrHeld) {
			c.lk.notPlain(c.key, c.lk.now())
		}
		return l, err
	}
}

// limit is how long a step of the call may take that begins now: NodeTimeout, or what is left of the call's time if
// that is less. Zero or less: no time is left.
func (c *call) limit(now time.Time) time.Duration {
	limit := c.lk.nodeTimeout(c.ttl)
	if !c.until.IsZero() {
		limit = min(limit, left(c.until, now))
	}
	return limit
}

// round asks all nodes for the lock once, and returns it if a quorum granted it in time; else it gives back what was
// granted. The error is a QuorumError, errNeedsScript (only after plain commands), errAgain (replan), ErrClosed or ctx's. If
// number is 0 it uses the script, else plain commands, with number as the proposed fence. slot is that of a semaphore to ask
// for; 0: any. w enters the queues of nodes that refuse; nil: nobody does. Each round has a token of its own: late requests
// of an earlier round can neither take nor release this lock.
func (c *call) round(number, slot int64, w *waitlist.Waiter) (*Lock, error) {
	if err := c.lk.enter(); err != nil {
		return nil, err
	}
	defer c.lk.leave()
	if err := ended(c.ctx); err != nil {
		return nil, fmt.Errorf("redlock: acquire %q: %w", c.name, err)
	}
	if c.mustReplan() {
		return nil, errAgain
	}
	l := c.asking(number, slot, w)
	sent := c.lk.now()
	limit := c.limit(sent)
	if limit <= 0 {
		return nil, c.unasked(c.ctx, c.began)
	}
	if l.waiter = w; w != nil {
		w.Begin(&l.claim)
	}
	r := c.lk.newRound(wire.Acquire, l, nil)
	defer r.drop()
	r.trace, r.tries = c.trace, !c.until.IsZero()
	r.start(sent, sent.Add(limit))
	r.wait(c.ctx, limit)
	var unfenced error
	if r.decided() == won {
		unfenced = c.fence(r, sent, limit)
	}

	// The second look at the clock, after the last vote that was needed: the round may have taken all of the lock's TTL.
	now := c.lk.now()
	if err := c.failed(r, unfenced, now); err != nil {
		l.giveUp(err, c.ctx, now.Add(limit))
		return nil, err
	}
	l.since, l.claim.Before = now, nil
	if c.maxHold != nil {
		l.maxUntil = now.Add(*c.maxHold)
	}
	if c.minHold != nil {
		l.minHold, l.minUntil = *c.minHold, now.Add(*c.minHold)
	}
	l.until = l.validUntil(sent)
	if l.place = c.place; !c.lk.register(l) {
		return nil, ErrClosed
	}
	if c.renewed {
		l.renewed = true
		l.keep()
	}
	if c.while != nil {
		l.keepWhile(c.while)
	}
	return l, nil
}

// asking makes the Lock for one round, with a new token; number, slot and w are those of round. If w is the waiter of a
// contender (a TryAcquire that settles a split vote: contend), the token also says when the contender came.
func (c *call) asking(number, slot int64, w *waitlist.Waiter) *Lock {
	if number == 0 {
		c.trace.tries()
	}
	l := c.lk.newLock(c.acquisition, slot, c.lk.newToken(c.acquisition, c.trace.traceID()))
	if w != nil && w.Secret() != "" {
		l.claim.Token = c.lk.sign(w.Secret(), c.acquisition, c.trace.traceID())
	}
	l.trace = c.trace
	if l.claim.Plain = number > 0; l.claim.Plain {
		l.claim.Proposal = number
	}
	return l
}

// failed returns why the round r, which is over, has not acquired its lock; nil: it has. unfenced is why its fence does not
// count, or nil. now is a reading of the clock after the last vote that was needed.
func (c *call) failed(r *round, unfenced error, now time.Time) error {
	decided, err := r.decided(), ended(c.ctx)
	switch {
	case r.lock.claim.Plain && decided != won && err == nil && r.voids():
		if c.until.IsZero() {
			return errNeedsScript
		}
		return fmt.Errorf("%w: %w", errNeedsScript, r.explain(now, nil)) // TryAcquire looks at the answers, too (contested)
	case decided != won:
		return r.explain(now, err)
	case unfenced != nil:
		return unfenced
	case validFor(r.sent, now, c.ttl, c.lk.settings().drift(c.ttl)) <= 0:
		return r.tooLate(now)
	case err != nil:
		return fmt.Errorf("redlock: acquire %q: %w", c.name, err)
	case c.lk.isClosing():
		return ErrClosed
	}
	return nil
}

// giveUp ends a lock whose round has failed with err, and sends a release to the nodes that may have granted it; it does not
// wait. ctx is the call's. If the call goes on, its waiter keeps its place at nodes that get the release by until, in two
// cases: the lock is held; or its fence could not be stored, since a larger one was, for another attempt. That was refused
// as a rule (plain commands store a number before they know), and the waiter must not lose its turn to it.
func (l *Lock) giveUp(err error, ctx context.Context, until time.Time) {
	keep := l.waiter != nil && (errors.Is(err, ErrHeld) || errors.Is(err, errUnfenced)) && ended(ctx) == nil && !l.locker.isClosing()
	l.mu.Lock()
	l.endErr = errReleased
	if keep { // no release of this lock was submitted to a node yet
		l.claim.KeepPlace, l.claim.RetryBy = true, until
	}
	l.mu.Unlock()
	l.releaseAsync()
}

// newToken makes a token that no other attempt has, with a's names if they are several, and the caller's trace, if any.
func (lk *Locker) newToken(a *acquisition, trace string) string {
	return lk.sign(lk.parts.Host.Token(), a, trace)
}

func (lk *Locker) sign(secret string, a *acquisition, trace string) string {
	return wire.Sign(secret, lk.now(), a.names, trace, lk.settings().label)
}

// newLock makes a Lock for what a asks for, with this token; it asks no node. slot of a semaphore: 0 is any.
func (lk *Locker) newLock(a *acquisition, slot int64, token string) *Lock {
	l := &Lock{locker: lk, name: a.name, shut: a.shut}
	l.renewal = renew.NewEntry(item{l})
	l.claim = lane.Claim{
		Key:      a.key,
		Keys:     a.keys,
		Modes:    a.modes,
		Token:    token,
		TTL:      a.ttl,
		Millis:   a.ttl.Milliseconds(),
		Proposal: lk.now().UnixMicro(),
		Ahead:    a.ahead,
	}
	l.claim.Span(len(lk.lanes.View().Lanes))
	if a.reads() {
		l.claim.Proposal = 0
	}
	if a.slots != nil {
		takeSlot(&l.claim, slot, *a.slots)
	}
	return l
}

// errAgain means that no node was asked for the lock: the call made its keys with another separator than that of the set, or
// its TTL is longer than the set allows. The caller starts over (replan).
var errAgain = errors.New("the lock is another one by the settings of the set")

// mustReplan reports whether, by what the client knows of the set now, the keys of the call were made with another separator
// than the set's, or its TTL or MinHold is longer than the set allows. False if the set's settings are not known yet.
func (c *call) mustReplan() bool {
	o := c.lk.settings()
	return c.separator != o.Separator || o.over(c.longest())
}

// replan makes the call's keys anew, by what is known of the set now. The call keeps its rank among the waiters and its
// deadline. No Lock and no error: go on with the new keys. A Lock: the call has joined a lock of its context (within). An
// error: the call is invalid by the set's settings.
func (c *call) replan() (*Lock, error) {
	o := c.lk.settings()
	now, err := o.acquisition(c.asked, c.options)
	if err != nil {
		return nil, err
	}
	now.began, now.until, now.shut, now.place = c.began, c.until, c.shut, c.place
	*c.acquisition = *now
	if l, err := c.lk.within(c.ctx, c.acquisition); l != nil || err != nil {
		return l, err
	}
	return nil, o.bounds(c.acquisition)
}

// bounds returns an error if the lock's TTL or MinHold is longer than the set allows. Before it says so, it asks the members
// whether the set was changed, for a NodeTimeout at most; so the error may also be ErrClosed, or ctx's.
func (lk *Locker) bounds(ctx context.Context, a *acquisition) error {
	if lk.settings().bounds(a) == nil {
		return nil
	}
	if err := lk.enter(); err != nil {
		return err
	}
	defer lk.leave()
	lk.askMaxTTL(ctx, a.longest())
	if err := ended(ctx); err != nil {
		return fmt.Errorf("redlock: acquire %q: %w", a.asked, err)
	}
	return lk.settings().bounds(a)
}

// askMaxTTL asks the members for the set's MaxTTL if ttl is longer than the known one: a client learns of a change only with
// its next request. It waits for nodeTimeout(ttl) at most. An answer changes lk.settings(), which the caller then reads.
func (lk *Locker) askMaxTTL(ctx context.Context, ttl time.Duration) {
	if o := lk.settings(); o.Quarantine > 0 && o.over(ttl) {
		lk.lanes.Ask(ctx, lk.nodeTimeout(ttl))
	}
}

// settled waits until a quorum of the nodes keeps the description of the set (its members and settings): for a NodeTimeout
// (half of it, in a TryAcquire), and for another one while the first description is chosen. It returns nil also when that
// time is over: the attempt that follows says of each node what is wrong. It returns an error if this program cannot use the
// set, or ctx ends, and errAgain if the call must start over (replan).
func (c *call) settled() error {
	if !c.lk.lanes.Agreed() {
		began := c.lk.now()
		patience := c.limit(began)
		if !c.until.IsZero() {
			patience /= 2 // the rest is for the attempt
		}
		isNew, err := c.lk.agreeUnless(c.ctx, patience, c.mustReplan)
		if err != nil {
			return fmt.Errorf("redlock: acquire %q: %w", c.name, err)
		}
		if c.ctx.Err() != nil && !c.lk.lanes.Agreed() {
			return c.unasked(c.ctx, began)
		}
		if isNew { // on new nodes other programs probably begin at this moment, too
			now := c.lk.now()
			c.lk.notPlain(c.key, now)
			if limit := c.lk.nodeTimeout(c.ttl); c.until.Equal(c.began.Add(limit)) { // at most once
				c.until = now.Add(limit) // what tries need to settle a split vote
			}
		}
	}
	if c.mustReplan() {
		return errAgain
	}
	return nil
}

// unasked makes the error of a call that has asked no node for the lock when its time is over: its turn in the local queue
// did not come, the set's description was not known, or this client's clock was set forward. The error says why each node is
// away, and is ctx's, too, if ctx has ended; its Elapsed counts from began.
func (c *call) unasked(ctx context.Context, began time.Time) *QuorumError {
	r := c.lk.newRound(wire.Acquire, c.lk.newLock(c.acquisition, 0, c.lk.newToken(c.acquisition, "")), nil)
	r.sent = began
	for i, n := range r.view.Lanes {
		if why := n.Away(); why != nil {
			r.replied[i], r.reqs[i].Reply = true, wire.Reply{Status: why.Status, Err: why.Err}
			r.ballot.add(voteNone)
		}
	}
	return r.explain(c.lk.now(), ended(ctx))
}

// awaitVotes is for a TryAcquire that failed with err as nodes had no vote: they did not keep the description of the set
// (members, settings) by which this client goes. Either a node has lost its data, and gets the description again once enough
// others have answered (mayTell in internal/set/members.go). Or the set was changed: nodes that keep the next description
// never vote by the one before, and too few have answered for the client to go by the next.
//
// awaitVotes asks all for their markers (a key that names one life of a node's data), which a refusal does not show. If
// it is the marker that the client knows, the node has lost nothing, as mayTell must know. awaitVotes returns true when one
// of these nodes votes, or the client goes by another description: try again. It returns false if err names no such node, at
// the call's deadline, or when the call's ctx ends: then the Cause of err, a QuorumError, becomes ctx's error.
func (c *call) awaitVotes(err error) bool {
	why := quorumError(err)
	if why == nil || !slices.ContainsFunc(why.Nodes(), (*NodeError).untold) {
		return false
	}
	view := c.lk.lanes.View()
	about := &lane.Claim{Key: c.key, Keys: c.keys[:1]}
	now := c.lk.now()
	for _, n := range view.Lanes {
		n.Submit(&lane.Request{Op: wire.Inspect, Claim: about, Deadline: c.until, To: lane.Nobody{}}, now)
	}
	look := time.NewTicker(max(c.lk.settings().NodeTimeout/64, time.Millisecond))
	defer look.Stop()
	for c.lk.now().Before(c.until) {
		known := c.lk.lanes.View().Description
		for _, n := range why.Nodes() {
			if n.votes() || n.outdated(known) {
				return true
			}
		}
		select {
		case <-look.C:
		case <-c.ctx.Done():
		}
		c.lk.parts.Host.Woke(sim.Caller, why.token, -1)
		if err := ended(c.ctx); err != nil {
			why.Cause = err
			return false
		}
	}
	return false
}
