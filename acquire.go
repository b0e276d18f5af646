package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

// The way of an Acquire, from the call to the nodes: wait takes its turn in the local queue, attempts asks until the lock is
// there, attempt asks by what is known of the set, and round asks all nodes, with a token of its own. A TryAcquire goes by
// try in the place of wait and attempts.

// TryAcquire acquires the lock if no other client has it. It returns after Options.NodeTimeout at
// the latest (after half of the TTL, if that is shorter), or when ctx ends. The first call on nodes
// that keep no description of their set yet has it chosen first, which adds one and a half times that at most.
//
// If another client has the lock, TryAcquire returns at once; or soon after the middle of that time, if so many of the
// holder's nodes are down that it may be a client whose attempt is under way. If several clients ask in the same
// instant, as cron jobs do, each may get some of the nodes, and none a quorum. They settle that among
// themselves: one of them gets the lock, in the order in which they came. That takes three to five
// round trips, so a longer NodeTimeout is needed where a round trip takes more than a fifth of it.
//
// The error is ErrHeld or ErrNoQuorum, with the details in a [QuorumError], and
// also ctx's error if that has ended; nothing is left behind then.
func (lk *Locker) TryAcquire(ctx context.Context, name string, options ...AcquireOption) (*Lock, error) {
	c, l, err := lk.call(ctx, "try-acquire", name, options)
	if c == nil {
		return l, err
	}
	return c.ends(c.try())
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
	c, l, err := lk.call(ctx, "acquire", name, options)
	if c == nil {
		return l, err
	}
	return c.ends(c.wait())
}

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

// A call is a TryAcquire or an Acquire that is under way: an operation of the trace, and what it asks for.
type call struct {
	lk    *Locker
	ctx   context.Context
	trace *opTrace
	*acquisition
}

// call makes a call, by what is known of the set. If nothing is, it goes by the program's own options. It takes its place in
// the order of waiters at once all the same, and is planned anew when the set turns out to have another separator, or
// another MaxTTL (errAgain). Nil: there is nothing to ask for, since the call is invalid, or joins the context's lock.
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
	if l, err := lk.within(ctx, a); l != nil || err != nil {
		return nil, l, err
	}
	if err := lk.bounds(ctx, a); err != nil {
		return nil, nil, err
	}
	return &call{lk, ctx, lk.begins(ctx, op, a.name, nil), a}, nil, nil
}

// ends tells the trace what has become of the call.
func (c *call) ends(l *Lock, err error) (*Lock, error) {
	if err == nil {
		c.lk.watched(l)
	}
	c.trace.ends(l, err)
	return l, err
}

// wait waits in the local queue, and speaks to the nodes when it is the first there.
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

// inTurn waits for the calls before it in the local queue, then makes attempts.
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
	// ctx may end in the moment after an attempt was decided: then the attempt's error does not say so yet.
	if why := quorumError(err); why != nil && c.ctx.Err() != nil && why.Cause == nil {
		why.Cause = ended(c.ctx)
	}
	return l, err
}

// manyCalls is after how many attempts in a row that messages have led to in vain the next message
// is not obeyed at once. As a rule the first one leads to the lock; but anybody may publish.
const manyCalls = 8

// attempts makes attempts until one has the lock, or there is no point in another one.
func (c *call) attempts(w *waitlist.Waiter) (*Lock, error) {
	w.Activate()
	if w.Turn() == nil {
		if l, err := c.plain(); !errors.Is(err, errNeedsScript) && (c.ctx.Err() != nil || quorumError(err) == nil) {
			return l, err
		}
	}
	var last *QuorumError
	slot, again := int64(0), c.others()
	vain := 0 // attempts one after another that messages have led to in vain
	for try := 0; ; try++ {
		sent := c.lk.now()
		queues := w
		if !w.Ready() {
			queues = nil
		}
		l, err := c.attempt(slot, queues)
		if err != nil && c.ctx.Err() != nil && last != nil {
			// A round that was cut short knows less than the one before: nodes that
			// had no time to answer are not why the call was waiting.
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
		case c.concede(err), queues == nil && w.Ready(): // or the answers have told the time
			continue
		}
		last = why
		told := *why // the waiter's will say what ended it
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
			w.Withdraw(false) // it would keep the places of others for whom there may be a quorum
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

// rest waits until there is a point in another attempt: a message has called the waiter, or the pause is over. vain is how
// many attempts in a row messages have led to in vain; rest returns that number for the next attempt, 0 if no message came.
// Stopped: the call is to return.
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

// shutOut reports whether so many nodes have refused this client for so long that waiting is of no use, and has the error
// say so. Nodes that were not asked, since they are away, count with what they have said.
func (c *call) shutOut(why *QuorumError) bool {
	now := c.lk.now()
	for _, n := range why.Nodes() {
		c.shut.note(n.Node, n.Outcome, n.Err, now)
	}
	return c.shut.ends(why, c.lk.lanes.View(), now)
}

// try makes attempts as long as their answers say that there is a point in another one, within the call's time.
func (c *call) try() (*Lock, error) {
	l, err := c.tryOnce()
	for err == errAgain {
		if l, err = c.replan(); l == nil && err == nil {
			l, err = c.tryOnce()
		}
	}
	return l, err
}

func (c *call) tryOnce() (*Lock, error) {
	if c.until.IsZero() {
		c.until = c.began.Add(c.lk.nodeTimeout(c.ttl))
	}
	l, err := c.plain()
	seen := seenWithQuorum(err)
	again := func(slot int64) { // while there is time: the answers so far say more than that there was none
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

// plain is an attempt by plain commands, which cost a node half of what the script costs. It
// is for a name that no other client is known to want at the moment, and for sets whose names are no paths
// (wire.PlainAnswer). If the nodes' answers are no votes, or the attempt cannot be made, the error is errNeedsScript,
// and the next attempt is by the script, which names the holder and puts a waiter in the queues.
//
// Where an attempt has come to nothing another one soon would, too, and two attempts cost more than
// one. So there is one for each name and Locker in plainPause at most. It may keep the lock from the
// first waiter of a queue for a round trip.
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
		c.trace.tries() // otherwise it is no more than the beginning of the next one
		return l, nil
	}
	c.lk.notPlain(c.key, c.lk.now())
	if !errors.Is(err, ErrClosed) && c.ctx.Err() == nil && c.lk.lanes.View().Description != before.Description {
		// The set was changed meanwhile: another lane has joined a node after the round had begun, and before its
		// request left, so the node granted by a later description. All nodes may have done so.
		err = errNeedsScript
	}
	return l, err
}

// errNeedsScript is why there is no lock by plain commands. It says nothing about who has it.
var errNeedsScript = errors.New("not by plain commands")

// attempt asks the nodes for a new lock by the script. If the set is changed meanwhile, it asks again.
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

// limit is how long a step of an acquisition may take that begins now: a NodeTimeout, or what is left of the call's
// time. Zero or less: nothing is.
func (c *call) limit(now time.Time) time.Duration {
	limit := c.lk.nodeTimeout(c.ttl)
	if !c.until.IsZero() {
		limit = min(limit, left(c.until, now))
	}
	return limit
}

// round asks all nodes once, by plain commands with this number, or by the script if there is none. Each round has a token
// of its own: whatever becomes of an earlier one's requests, they can neither take nor release this lock.
func (c *call) round(number, slot int64, w *waitlist.Waiter) (*Lock, error) {
	if err := c.lk.enter(); err != nil {
		return nil, err
	}
	defer c.lk.leave()
	if err := ended(c.ctx); err != nil {
		return nil, fmt.Errorf("redlock: acquire %q: %w", c.name, err)
	}
	if c.renamed() {
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

	// The second look at the clock, after the last vote that was needed: a lock
	// that took its whole life to acquire is none.
	now := c.lk.now()
	if err := c.failed(r, unfenced, now); err != nil {
		l.giveUp(err, c.ctx, now.Add(limit))
		return nil, err
	}
	l.since, l.claim.Before = now, nil
	if c.maxHold != nil {
		l.maxUntil = now.Add(*c.maxHold)
	}
	l.until = l.validUntil(sent)
	if c.renewed {
		l.keep()
	}
	return l, nil
}

// asking makes the Lock for one round, with a token of its own, made from the waiter's secret if there is one. number is that of
// an acquire by plain commands, and its proposed fence; 0: the round uses the script. slot is the one to ask for; 0: any.
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

// failed is why a round has not acquired its lock; nil: it has. Unfenced says why its fence does not count.
func (c *call) failed(r *round, unfenced error, now time.Time) error {
	decided, err := r.decided(), ended(c.ctx)
	switch {
	case r.lock.claim.Plain && decided != won && err == nil && r.voids():
		if c.until.IsZero() {
			return errNeedsScript
		}
		return fmt.Errorf("%w: %w", errNeedsScript, r.explain(now, nil)) // see contested
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

// giveUp releases what a round that has failed was granted. A waiter that will ask again keeps its place in the queues,
// until that time; also one whose fence could not be stored: it has lost to a number, which another attempt has that has
// been refused as a rule (plain commands count before they know), and must not lose its turn.
func (l *Lock) giveUp(err error, ctx context.Context, until time.Time) {
	keep := l.waiter != nil && (errors.Is(err, ErrHeld) || errors.Is(err, errUnfenced)) && ended(ctx) == nil && !l.locker.isClosing()
	l.mu.Lock()
	l.endErr = errReleased
	if keep { // and no release of the lock is in a lane yet
		l.claim.KeepPlace, l.claim.RetryBy = true, until
	}
	l.mu.Unlock()
	l.releaseAsync()
}

// newToken makes a token that no other attempt has. Trace is the id of the trace that the attempt belongs to; "":
// none.
func (lk *Locker) newToken(a *acquisition, trace string) string {
	return lk.sign(lk.parts.Host.Token(), a, trace)
}

func (lk *Locker) sign(secret string, a *acquisition, trace string) string {
	return wire.Sign(secret, lk.now(), a.names, trace, lk.settings().label)
}

// newLock makes a Lock with this token. No node has been asked for it yet. slot is the one to ask for; 0: any.
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

// errAgain says that no node was asked for a lock: the call made its keys with another separator than that of the set,
// or its TTL is longer than the set allows. The caller plans it again (replan).
var errAgain = errors.New("the lock is another one by the settings of the set")

// renamed reports whether the call has to be planned again (errAgain).
func (c *call) renamed() bool {
	o := c.lk.settings()
	return c.separator != o.Separator || o.over(c.ttl)
}

// replan makes the call ask for what it was made for by what the set says now. It keeps its place, and its bound.
// If the call turns out to be within a lock of its context, replan returns what within does.
func (c *call) replan() (*Lock, error) {
	o := c.lk.settings()
	now, err := o.acquisition(c.asked, c.options)
	if err != nil {
		return nil, err
	}
	now.began, now.until, now.shut = c.began, c.until, c.shut
	*c.acquisition = *now
	if l, err := c.lk.within(c.ctx, c.acquisition); l != nil || err != nil {
		return l, err
	}
	return nil, o.bounds(c.acquisition)
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

// settled waits until a quorum keeps the set's description: for a NodeTimeout, and for another one while it is chosen.
// After that an attempt says of each node what is wrong. settled returns an error if the program cannot use the set, if
// ctx ends, or errAgain.
func (c *call) settled() error {
	if !c.lk.lanes.Agreed() {
		began := c.lk.now()
		patience := c.limit(began)
		if !c.until.IsZero() {
			patience /= 2 // the rest is for the nodes' answers
		}
		isNew, err := c.lk.agreeUnless(c.ctx, patience, c.renamed)
		if err != nil {
			return fmt.Errorf("redlock: acquire %q: %w", c.name, err)
		}
		if c.ctx.Err() != nil && !c.lk.lanes.Agreed() {
			return c.unasked(c.ctx, began)
		}
		if isNew { // other programs have just begun, too
			now := c.lk.now()
			c.lk.notPlain(c.key, now)
			if limit := c.lk.nodeTimeout(c.ttl); c.until.Equal(c.began.Add(limit)) { // at most once
				c.until = now.Add(limit) // what tries need to settle a split vote
			}
		}
	}
	if c.renamed() {
		return errAgain
	}
	return nil
}

// unasked makes the error of a call whose time was over before a node was asked for the lock, since the set's
// description was not known, or the clock was set: what each node has to do with that.
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

// awaitVotes waits until a node votes that did not keep the description of the set when it was asked, and reports
// whether one does. A client that asks after a long time may find that a node has lost its data meanwhile. Whether it
// may tell that node the description is decided by the answers of the others (mayTell in internal/set/members.go),
// which may come a moment later. The others are asked for their markers, which a refusal does not show.
//
// Or the set was changed meanwhile, and too few of its nodes have answered to go by the next description: the nodes that
// keep that one never vote by the one before. Then awaitVotes waits until the client goes by another description.
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
