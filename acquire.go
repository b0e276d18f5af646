package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

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
	return lk.call(ctx, "try-acquire", name, options, lk.try)
}

// call runs do for what a call asks for, as one operation of the trace. It returns at once for a name that the context's
// lock takes in.
func (lk *Locker) call(ctx context.Context, op, name string, options []AcquireOption, do func(context.Context, *opTrace, *acquisition) (*Lock, error)) (*Lock, error) {
	if err := lk.made(); err != nil {
		return nil, err
	}
	a, err := lk.acquisition(name, options)
	if err != nil {
		return nil, err
	}
	if l, err := lk.within(ctx, a); l != nil || err != nil {
		return l, err
	}
	if err := lk.bounds(ctx, a); err != nil {
		return nil, err
	}
	t := lk.begins(ctx, op, a.name, nil)
	l, err := do(ctx, t, a)
	if err == nil {
		lk.watched(l)
	}
	t.ends(l, err)
	return l, err
}

func (lk *Locker) try(ctx context.Context, t *opTrace, a *acquisition) (*Lock, error) {
	l, err := lk.tryOnce(ctx, t, a)
	for err == errRenamed {
		if l, err = lk.replan(ctx, a); l == nil && err == nil {
			l, err = lk.tryOnce(ctx, t, a)
		}
	}
	return l, err
}

func (lk *Locker) tryOnce(ctx context.Context, t *opTrace, a *acquisition) (*Lock, error) {
	if a.until.IsZero() {
		a.until = a.began.Add(lk.nodeTimeout(a.ttl))
	}
	l, err := lk.first(ctx, t, a)
	seen := seenWithQuorum(err)
	again := func(slot int64) { // while there is time: the answers so far say more than that there was none
		if quorumError(err) == nil || lk.limit(a, lk.now()) > 0 {
			l, err = lk.attempt(ctx, t, a, slot, nil)
			seen = seen || seenWithQuorum(err)
		}
	}
	if errors.Is(err, errVoid) && !contested(err) {
		again(0)
	}
	for a.concede(err) {
		again(0)
	}
	if lk.awaitVotes(ctx, a, err, a.until) {
		again(0)
	}
	for range a.others() {
		slot := freeSlot(err)
		if slot == 0 {
			break
		}
		again(slot)
	}
	if contested(err) {
		return lk.contend(ctx, t, a, err, seen)
	}
	if why := quorumError(err); why != nil && errors.Is(err, errVoid) {
		err = why
	}
	return l, err
}

// first is the first attempt: by plain commands, which cost a node half of what the script costs. It
// is for a name that no other client is known to want at the moment, and for sets whose names are no paths
// (wire.PlainAnswer). If the nodes' answers are no votes, or the attempt cannot be made, the error is errVoid,
// and the next attempt is by the script, which names the holder and puts a waiter in the queues.
//
// Where an attempt has come to nothing another one soon would, too, and two attempts cost more than
// one. So there is one for each name and Locker in plainPause at most. It may keep the lock from the
// first waiter of a queue for a round trip.
func (lk *Locker) first(ctx context.Context, t *opTrace, a *acquisition) (*Lock, error) {
	if a.modes != string(wire.ModeX) || a.separator != "" {
		return nil, errVoid
	}
	if err := lk.settled(ctx, a); err != nil {
		return nil, err
	}
	now := lk.now()
	if !lk.mayPlain(a.key, now) {
		return nil, errVoid
	}
	number, good := lk.lanes.Number(now)
	if !good {
		return nil, errVoid
	}
	before := lk.lanes.View()
	l, err := lk.ask(ctx, t, a, number, 0, nil)
	if err == nil {
		t.tries() // otherwise it is no more than the beginning of the next one
		return l, nil
	}
	lk.notPlain(a.key, lk.now())
	if !errors.Is(err, ErrClosed) && ctx.Err() == nil && lk.lanes.View().Description != before.Description {
		// The set was changed meanwhile: another lane has joined a node after the round had begun, and before its
		// request left, so the node granted by a later description. All nodes may have done so.
		err = errVoid
	}
	return l, err
}

// errVoid is why there is no lock by plain commands. It says nothing about who has it.
var errVoid = errors.New("not by plain commands")

// attempt is one round for a new lock, with a token of its own: whatever became
// of an earlier attempt's requests, they can neither take nor release this one.
func (lk *Locker) attempt(ctx context.Context, t *opTrace, a *acquisition, slot int64, w *waitlist.Waiter) (*Lock, error) {
	for {
		if err := lk.settled(ctx, a); err != nil {
			return nil, err
		}
		before := lk.lanes.View()
		l, err := lk.ask(ctx, t, a, 0, slot, w)
		if err != nil && ctx.Err() == nil && lk.lanes.View().Description != before.Description {
			continue // the set was changed meanwhile
		}
		if errors.Is(err, ErrHeld) {
			lk.notPlain(a.key, lk.now())
		}
		return l, err
	}
}

// limit is how long a step of an acquisition may take that begins now: a NodeTimeout, or what is left of the call's
// time. Zero or less: nothing is.
func (lk *Locker) limit(a *acquisition, now time.Time) time.Duration {
	limit := lk.nodeTimeout(a.ttl)
	if !a.until.IsZero() {
		limit = min(limit, left(a.until, now))
	}
	return limit
}

// ask is an attempt: by plain commands with this number, or by the script if there is none.
func (lk *Locker) ask(ctx context.Context, t *opTrace, a *acquisition, number, slot int64, w *waitlist.Waiter) (*Lock, error) {
	if err := lk.enter(); err != nil {
		return nil, err
	}
	defer lk.leave()
	if err := ended(ctx); err != nil {
		return nil, fmt.Errorf("redlock: acquire %q: %w", a.name, err)
	}
	if lk.renamed(a) {
		return nil, errRenamed
	}
	if number == 0 {
		t.tries()
	}
	l := lk.newLock(a, slot, lk.newToken(a, t.traceID()))
	if w != nil && w.Secret() != "" {
		l.claim.Token = lk.sign(w.Secret(), a, t.traceID())
	}
	l.trace = t
	if l.claim.Plain = number > 0; l.claim.Plain {
		l.claim.Proposal = number
	}
	sent := lk.now()
	limit := lk.limit(a, sent)
	if limit <= 0 {
		return nil, lk.unasked(ctx, a, a.began)
	}
	if l.waiter = w; w != nil {
		w.Begin(&l.claim)
	}
	r := lk.newRound(wire.Acquire, l, nil)
	defer r.drop()
	r.trace, r.tries = t, !a.until.IsZero()
	r.start(sent, sent.Add(limit))
	r.wait(ctx, limit)
	decided, unfenced := r.decided(), error(nil)
	if decided == won {
		number, stored := r.fence()
		// A node that answered before a majority was heard of could not be judged by it.
		if ahead := lk.lanes.Beyond(number, lk.now()); ahead > a.ahead {
			unfenced = r.poisoned(lk.now(), ahead)
		} else if l.claim.Fence = number; !stored {
			unfenced = lk.raise(ctx, l, sent, limit)
		}
	}

	// The second look at the clock, after the last vote that was needed: a lock
	// that took its whole life to acquire is none.
	now := lk.now()
	drift := lk.settings().drift(a.ttl)
	err := ended(ctx)
	switch {
	case l.claim.Plain && decided != won && err == nil && r.voids():
		if err = errVoid; !a.until.IsZero() {
			err = fmt.Errorf("%w: %w", errVoid, r.explain(now, nil)) // see contested
		}
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
		// An attempt whose fence could not be stored has lost to a number: another attempt's, which has
		// been refused as a rule (plain commands count before they know). It must not lose its turn.
		keep := w != nil && (errors.Is(err, ErrHeld) || errors.Is(err, errUnfenced)) && ended(ctx) == nil && !lk.isClosing()
		l.mu.Lock()
		l.endErr = errReleased
		if keep { // and no release of the lock is in a lane yet
			l.claim.KeepPlace, l.claim.RetryBy = true, now.Add(limit)
		}
		l.mu.Unlock()
		l.releaseAsync()
		return nil, err
	}
	l.since, l.claim.Before = now, nil
	if a.maxHold != nil {
		l.maxUntil = now.Add(*a.maxHold)
	}
	l.until = l.validUntil(sent)
	if a.renewed {
		l.keep()
	}
	return l, nil
}

// newToken makes a token that no other attempt has. Trace is the id of the trace that the attempt belongs to; "":
// none.
func (lk *Locker) newToken(a *acquisition, trace string) string {
	return lk.sign(lk.parts.Host.Token(), a, trace)
}

func (lk *Locker) sign(secret string, a *acquisition, trace string) string {
	return wire.Sign(secret, lk.now(), a.names, trace, lk.settings().label)
}

// newLock makes one that nobody has yet. Slot is the one to ask for; 0: any.
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

// awaitVotes waits until a node votes that did not keep the description of the set when it was asked, and reports
// whether one does. A client that asks after a long time may find that a node has lost its data meanwhile. Whether it
// may tell that node the description is decided by the answers of the others (mayTell in internal/lane/members.go),
// which may come a moment later. The others are asked for their markers, which a refusal does not show.
//
// Or the set was changed meanwhile, and too few of its nodes have answered to go by the next description: the nodes that
// keep that one never vote by the one before. Then awaitVotes waits until the client goes by another description.
func (lk *Locker) awaitVotes(ctx context.Context, a *acquisition, err error, until time.Time) bool {
	why := quorumError(err)
	if why == nil || !slices.ContainsFunc(why.Nodes(), (*NodeError).untold) {
		return false
	}
	view := lk.lanes.View()
	about := &lane.Claim{Key: a.key, Keys: a.keys[:1]}
	now := lk.now()
	for _, n := range view.Lanes {
		n.Submit(&lane.Request{Op: wire.Inspect, Claim: about, Deadline: until, To: lane.Nobody{}}, now)
	}
	look := time.NewTicker(max(lk.settings().NodeTimeout/64, time.Millisecond))
	defer look.Stop()
	for lk.now().Before(until) {
		known := lk.lanes.View().Description
		for _, n := range why.Nodes() {
			if n.votes() || n.outdated(known) {
				return true
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
		lk.parts.Host.Woke(sim.Caller, why.token, -1)
		if err := ended(ctx); err != nil {
			why.Cause = err
			return false
		}
	}
	return false
}

// A fence is a number for each acquisition of a name, larger than those of all
// earlier ones. To count on each node and take the largest number of a quorum is not
// enough: two that overlap on a node which has counted less may come to the same
// number. What a quorum has not stored, the next one need not see.
//
// So a number is a fence when a quorum of nodes has it stored as that of the grant
// which they gave to this very attempt. On one node grants come one after another,
// each with a token of its own, and the counter only grows. A commit is an instant
// in the time of its grant. Take two acquisitions, of which one was complete before
// the other began: their quorums share a node. There the commit of the first came
// before the grant of the second, which therefore was numbered higher; and the
// second's fence is the largest number of its quorum. No clock is in this. It needs
// a node that kept its counter, of the two quorums' common ones.
//
// A node keeps its numbers in a table of counters without a TTL, of which several names
// share one (internal/script/table.go). That changes nothing in the argument: the counter
// still only grows, and the grants of all names of a bucket come one after another. What
// another name does makes the counter larger between a grant and its raise, and then the
// raise says no, and the attempt has failed; and between a grant and a copy of its request,
// which is told what is stored by then: more than the number of the grant, and stored while
// the key is lane.Ours, so it may be committed as well. A grant leaves a counter there. Where
// there is none the node has lost its table, and what that said may have been past the number:
// nothing is raised there, and a copy has no grant. No step of a clock, no idle time and no
// expiry is in this.
//
// Where no node kept its counter, time steps in. The number that is proposed is the client's
// time, and the node takes it only within S, half a second, of its own. So a node that starts
// again with no counter starts above all that it had given out, if that was near the time. Let
// K be Options.MaxNodeSkew: a node has a vote while its clock is within K of the middle of
// the nodes' clocks. A number that is not below middle + K + 2S is no vote (clocks.beyond): its
// grant is given back, and nothing is raised to it. So when a node whose time was T lost its
// table, what was a fence on it was below T + 2K + 2S; and when it has a vote again it numbers
// nothing below T + Q - S, with Q the quarantine. Hence Q >= 2K + 3S is asked for. A number that is
// acquired by plain commands is not bent, and so it counts only where it is not below the node's
// time - S. It may be further above that, by
// K and what is not known of the middle, which is less than 2S.
//
// That rule also keeps the numbers of a clock that is far ahead where they are. A minority
// of such nodes cannot move the middle, costs its own votes, and nothing else, also when
// their clocks are right again and their counters are not. That a client proposes a number
// which is far ahead needs no rule: the nodes bend it to their time.
//
// Who holds a lock shared has no number of its own, but the largest of the past: so large
// as that of every earlier writer, and less than that of every later one. Time cannot step in
// with a number for each, as those who read the same would have different ones. But what a
// node has lost was below the T + Q - S of when its marker was written, and what it numbers
// from then on, with a vote, is not (floor in package vote). So that is the least number of a reader
// there, and it is stored like any.
//
// The same number is proposed to all nodes. As a rule all take it, and the fence is
// stored with the grants, in one round trip. Else a second one raises the counters
// that are behind ("if the lock is still mine and the counter is not past it").

// errUnfenced is what ended an attempt that had a quorum of grants.
var errUnfenced = errors.New("the fence could not be stored on a quorum of nodes")

// fence gives the largest number of the grants of a round that was won, and whether a
// quorum has stored it.
func (r *round) fence() (number int64, stored bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := 0
	for i := range r.reqs {
		if a := &r.reqs[i].Reply; r.told[i] && a.Status == wire.Granted {
			switch {
			case a.Fence > number:
				number, same = a.Fence, 1
			case a.Fence == number:
				same++
			}
		}
	}
	return number, same >= r.ballot.need
}

// raise has a quorum of nodes store the fence of a lock that a quorum has granted. It
// asks all nodes: one whose grant is still under way gets to it first, in its lane,
// and one that has not granted says no. A node that has the number already says yes
// once more. One that has no vote stores it, too, but does not count: it may have
// forgotten a higher one (RAISE_ALL in docs/model).
func (lk *Locker) raise(ctx context.Context, l *Lock, sent time.Time, limit time.Duration) error {
	r := lk.newRound(wire.Raise, l, nil)
	defer r.drop()
	r.trace = l.trace
	r.start(sent, sent.Add(limit))
	r.wait(ctx, limit-elapsed(sent, lk.now()))
	if r.decided() == won {
		return nil
	}
	err := r.explain(lk.now(), ended(ctx))
	if err.Cause == nil {
		err.Cause = errUnfenced
	}
	return err
}

// concede reports whether an attempt came to nothing since a majority of the nodes, or so many
// that the others are no quorum, numbers far ahead of the time; and has the next attempt take
// as much of that as a quorum needs, and no more. A minority that is ahead costs its votes, so
// that it leads nobody astray. But where all clocks were wrong together, and are right now,
// their numbers are those of the locks there were, and the next has to be larger: no order is
// in danger that a quorum of counters keeps. It takes a node to lose its table, and another
// to share its quorum, for numbers to be of any time at all.
func (a *acquisition) concede(err error) bool {
	why := quorumError(err)
	if why == nil {
		return false
	}
	var ahead []time.Duration
	nodes := why.Nodes()
	for _, node := range nodes {
		if by, is := node.Err.(vote.PoisonError); is {
			ahead = append(ahead, time.Duration(by))
		}
	}
	slices.Sort(ahead)
	lacks := why.Need - (why.N - len(nodes)) // of a quorum, if those who said nothing grant it
	if lacks <= 0 || lacks > len(ahead) || a.ahead == 0 && len(ahead) <= why.N-why.Need {
		return false // or a minority, unless others of the majority have been conceded already
	}
	most := ahead[lacks-1]
	if most <= a.ahead {
		return false
	}
	a.ahead = most + time.Second // a number may be one more by then
	return true
}
