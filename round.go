package redlock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/aside"
	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/quorumlock/redlock/redlocktrace"
)

// A round puts one step (acquire, raise, extend, release) of one lock to all nodes, and ends the moment its ballot is
// decided. Later votes count for the lock (a late grant is part of it, and see confirmLate), but not for the round.
//
// A round is used again once all nodes have answered. A round that a hung node has not answered stays with that node's
// lane (the client's queue and connection for the node) until then.
type round struct {
	locker *Locker
	lock   *Lock
	trace  *opTrace // the operation of which it is a step; nil: not traced
	op     wire.Op
	number int32          // of the lock's extensions, from 1 on
	caller string         // names the waiting goroutine to a simulator (sim.Host)
	sent   time.Time      // from just before the first request left
	view   *set.View      // the nodes that are asked, and how many must say yes
	reqs   []lane.Request // in the order of the nodes in the view
	done   chan struct{}  // gets one value when the ballot is decided, if then is nil
	timer  *time.Timer    // of wait; nil: it was not used yet
	refs   atomic.Int32   // votes still to come, and one for the owner

	mu      sync.Mutex // protects what follows, and the replies of the requests that replied has
	ballot  ballot
	verdict verdict
	closed  bool         // the owner has stopped waiting: nothing is decided any more
	all     bool         // of a release: it is not decided before all nodes have answered
	tries   bool         // of a TryAcquire, which goes on if no client is seen to have a quorum (contend)
	replied []bool       // in the same order: the node has answered
	then    func(*round) // called when the ballot is decided; nil: done gets a value
}

// newRound makes a round that puts this step of l to all nodes; start begins it. When it is decided, wait returns. Or, if
// then is not nil, Deliver calls it, once and without r.mu, and nobody calls wait. The caller calls drop at the end.
func (lk *Locker) newRound(step wire.Op, l *Lock, then func(*round)) *round {
	view := lk.lanes.View()
	r, _ := lk.rounds.Get().(*round)
	if r == nil || len(r.reqs) < len(view.Lanes) {
		r = &round{locker: lk, reqs: make([]lane.Request, len(view.Lanes)), replied: make([]bool, len(view.Lanes)), done: make(chan struct{}, 1)}
	}
	r.lock, r.op, r.trace, r.number, r.then, r.view, r.caller = l, step, nil, 0, then, view, l.claim.Token
	r.ballot = ballot{n: len(view.Lanes), need: view.Quorum}
	if step == wire.Extend {
		r.ballot.blocking = r.ballot.n - r.ballot.need + 1
	}
	r.verdict, r.closed, r.all, r.tries = pending, false, false, false
	clear(r.replied)
	return r
}

// start sends all requests before it returns, so that nothing which the caller does next can overtake any of them. Validity
// counts from sent, a reading of the clock just before. After deadline, answers are of no use; zero: there is none. Once a
// round is lost because too many nodes are known to be down, start asks no further node, unless a waiter wants its place in
// their queues. A release goes to all nodes in any case: each may have the token.
func (r *round) start(sent, deadline time.Time) {
	r.sent = sent
	native := r.native(sent)
	r.refs.Store(int32(len(r.view.Lanes)) + 1)
	for i, n := range r.view.Lanes {
		q := &r.reqs[i]
		q.Op, q.Claim, q.Deadline, q.To, q.Ticket, q.Native, q.Reply = r.op, &r.lock.claim, deadline, r, r.lock.claim.Ticket, native, wire.Reply{}
		q.By = r.view.Description
		if r.op != wire.Release && r.lock.waiter == nil && r.decided() == lost {
			r.drop()
			continue
		}
		if n.Submit(q, sent) {
			r.Deliver(n, q)
		}
	}
}

// native reports whether a server that can extend or release (r.op) by a command of its own may do so, without the script
// (wire.NativeAnswer). After contention (mayPlain is false at now) a release is by the script, which makes one waiter try.
func (r *round) native(now time.Time) bool {
	l := r.lock
	switch r.op {
	case wire.Extend:
		return l.claim.Modes == string(wire.ModeX)
	case wire.Release:
		return l.claim.Plain && !l.since.IsZero() && r.locker.mayPlain(l.claim.Key, now)
	}
	return false
}

func (r *round) decided() verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verdict
}

// voids reports whether a node has answered plain commands (SET NX PX and ZADD) with "held", or with what is no vote
// (wire.Void). The script gets better answers from such nodes, and perhaps a vote.
func (r *round) voids() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.reqs {
		if a := &r.reqs[i].Reply; r.replied[i] && (a.Status == wire.Void || a.Status == wire.Held) {
			return true
		}
	}
	return false
}

// votesNow reports whether a node that had no vote when it answered, as it did not keep the set's description, has one now.
func (r *round) votesNow() bool {
	var untold []vote.UntoldError
	r.mu.Lock()
	for i := range r.reqs {
		if !r.replied[i] {
			continue // its lane may be writing the reply
		}
		if why, is := r.reqs[i].Reply.Err.(vote.UntoldError); is {
			untold = append(untold, why)
		}
	}
	r.mu.Unlock()
	return slices.ContainsFunc(untold, vote.UntoldError.Votes)
}

// released reports whether the release r has succeeded: a quorum has answered, and the nodes that did not have the token any
// more are so few that a quorum may have had it until then.
func (r *round) released() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := &r.ballot
	return b.yes+b.no >= b.need && !b.refused()
}

// Deliver takes the answer of one node, n, in q, its request in this round. It runs once for each node, on the goroutine of
// the node's lane, or on that of start if the lane itself answers, and must not block. In the round's view each lane has one
// place, so a late answer counts for the node that was asked and for no other, even if that node is no member any more.
func (r *round) Deliver(n *lane.Lane, q *lane.Request) {
	v := r.lock.react(r, n, q)
	r.mu.Lock()
	r.replied[r.view.At(n)] = true
	var then func(*round)
	late := r.verdict != pending || r.closed
	confirms := late && r.verdict == pending && r.op == wire.Extend && v == voteYes
	if !late {
		r.ballot.add(v)
		r.verdict = r.ballot.verdict()
		if r.op == wire.Release {
			if v != voteNone && q.Reply.NoVote {
				r.ballot.voteless++
			}
			if r.verdict = r.ballot.answered(); r.all && r.ballot.open() > 0 {
				r.verdict = pending
			}
		}
		if r.verdict == lost && r.op == wire.Acquire && (r.ahead() || r.unproven()) {
			r.verdict = pending
		}
		switch {
		case r.verdict == pending:
		case r.then != nil:
			then = r.then
		default:
			r.done <- struct{}{} // under the mutex, so that close finds it, and a round that is used again has none
		}
	}
	r.mu.Unlock()
	if confirms {
		r.lock.confirmLate(r)
	}
	r.trace.answer(r, n, &q.Reply, late) // after the owner was woken, who need not wait for a hook
	if then != nil {
		then(r)
	}
	r.drop()
}

// ahead reports whether r must wait for more answers although it is lost: a grant was no vote since its fence is far ahead
// of the nodes' clocks (vote.PoisonError), and nodes have not answered yet. Their answers show whether that is so at a
// majority, where the next attempt counts such grants (concede). Caller holds r.mu.
func (r *round) ahead() bool {
	if r.ballot.open() == 0 {
		return false
	}
	for i := range r.reqs {
		if !r.replied[i] {
			continue
		}
		if _, is := r.reqs[i].Reply.Err.(vote.PoisonError); is {
			return true
		}
	}
	return false
}

// unproven reports whether r, of a TryAcquire, goes on though it is lost: nodes refused it, and open votes may show that
// another client has a quorum. Two refusals of four nodes end a round, but only three show that. Caller holds r.mu.
func (r *round) unproven() bool {
	b := &r.ballot
	return r.tries && b.no > 0 && b.no < b.need && b.no+b.open() >= b.need
}

// confirmLate moves the end of validity if a quorum has said yes to the extension r by now, as if they all had said so in
// time. It is called with each yes that comes after the goroutine that waits for r has given up. So a network that is slow
// for a moment, now to one node and now to another, takes no lock away.
//
// A yes is about when the node carried out the request, and not about when the client receives the answer. Let the extension
// be sent at t. The node carried it out at some e >= t, had the token until e, and set its TTL: so from e on it keeps the
// token, and all others out, until e + TTL >= t + TTL. Whether its answer takes longer than a NodeTimeout changes nothing on
// the node. Validity counts from t, as always, and never from the answer, which comes after e.
//
// Three things may have changed since:
//
//   - The lock has ended, or its validity is over. Its token was given back, or the holder has been told of the end, or is
//     about to be. Nothing brings it back.
//   - A later extension was confirmed. It reaches further than r, and r changes nothing.
//   - A node that said yes to r has denied a later extension: it has forgotten the token, or another client has it there.
//     Its yes is out of date then, and does not count (tokenAt.denied). A lane never has two extensions of one key under
//     way, so a node's answers come in the order in which it gave them, and its no to the later extension is what is true
//     now. A no that is still under way, or that no request has asked for yet, changes as little as one that comes after a
//     quorum has answered in time: what keeps other clients out meanwhile is the quarantine of a node that has forgotten.
func (l *Lock) confirmLate(r *round) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch now := l.locker.now(); {
	case l.endErr != nil, left(l.until, now) <= 0:
	case r.number <= l.confirmed:
	case !r.confirmed():
	default:
		l.until, l.confirmed = l.validUntil(r.sent), r.number // the renewal has failed all the same: the next one may have no such luck
	}
}

// confirmed reports whether a quorum of nodes has said yes to the extension r, in time or late. It does not count a node
// that has denied a later extension; nor one whose lane has ended, since the record of such a denial may be gone. Caller
// holds r.lock.mu.
func (r *round) confirmed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	yes := 0
	for i, n := range r.view.Lanes {
		if r.replied[i] && r.reqs[i].Reply.Status == wire.Granted && r.lock.recorded(n).denied <= r.number && !n.Ended() {
			yes++
		}
	}
	return yes >= r.ballot.need
}

// wait returns when the round is decided, ctx has ended, or limit is over, and closes the round. A TryAcquire without a
// place in queues waits only for half of limit if the round is lost by then (r.lost): a node that hangs must leave time for
// what follows from the other answers.
func (r *round) wait(ctx context.Context, limit time.Duration) {
	first := limit
	early := r.tries && r.lock.waiter == nil
	if early {
		first = limit / 2
	}
	if r.timer == nil {
		r.timer = time.NewTimer(first)
	} else {
		r.timer.Reset(first)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	case <-r.timer.C:
		if early && !r.lost() {
			r.timer.Reset(limit - first)
			select {
			case <-r.done:
			case <-ctx.Done():
			case <-r.timer.C:
			}
		}
	}
	r.timer.Stop()
	r.locker.parts.Host.Woke(sim.Caller, r.caller, int(r.op)+int(r.number)<<3)
	r.close()
}

// lost reports whether r cannot be won any more, or another attempt may win sooner than r: some answers to plain commands
// were no votes (voids), or a node votes now that did not when it answered (votesNow). It takes r.mu.
func (r *round) lost() bool {
	r.locker.parts.Host.Woke(sim.Caller, r.caller, -1-int(r.op))
	if r.lock.claim.Plain && r.voids() || r.votesNow() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ballot.verdict() == lost
}

// close ends the round, decided or not: votes that come later decide nothing.
func (r *round) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	select {
	case <-r.done: // decided after wait had given up
	default:
	}
}

// drop gives up one of the references (refs) to r: the owner's, or a vote's. After the last one the round is used again.
func (r *round) drop() {
	if r.refs.Add(-1) == 0 {
		r.lock, r.trace, r.then, r.view = nil, nil, nil, nil
		for i := range r.reqs {
			r.reqs[i] = lane.Request{}
		}
		r.locker.rounds.Put(r)
	}
}

// tooLate makes the error, an ErrNoQuorum, of a round that was won when the lock's validity was over already, at now.
func (r *round) tooLate(now time.Time) *QuorumError {
	ttl := r.lock.claim.TTL
	late := r.explain(now, fmt.Errorf("the votes took %v, and the lock lives for %v", elapsed(r.sent, now), ttl-r.locker.settings().drift(ttl)))
	late.Kind = ErrNoQuorum
	return late
}

// poisoned makes the error, an ErrNoQuorum, of a round that was won with a fence ahead of the nodes' clocks by too much.
func (r *round) poisoned(now time.Time, ahead time.Duration) *QuorumError {
	e := r.explain(now, vote.PoisonError(ahead))
	e.Kind = ErrNoQuorum
	return e
}

// explain makes the error of a closed round that was not won, or was won in vain. cause is why the caller stopped waiting,
// or why winning was in vain; nil: there are only the votes. A node that has not answered by now counts as OutcomeTimeout,
// unless the round was decided without it.
func (r *round) explain(now time.Time, cause error) *QuorumError {
	r.mu.Lock()
	defer r.mu.Unlock()
	step := r.op
	if step == wire.Raise { // it is part of acquiring
		step = wire.Acquire
	}
	e := &QuorumError{Op: step.String(), Name: r.lock.name, N: r.ballot.n, Need: r.ballot.need, Cause: cause, token: r.lock.claim.Token}
	b := r.ballot
	for i, n := range r.view.Lanes {
		answer := NodeError{Node: n.Name, Outcome: OutcomeTimeout, Elapsed: elapsed(r.sent, now)}
		switch {
		case r.replied[i]:
			answer = nodeError(n.Name, &r.reqs[i].Reply, answer.Elapsed)
		case r.verdict != pending:
			continue
		default:
			b.add(voteNone)
		}
		if answer.Outcome != OutcomeGranted {
			e.note(&answer)
		}
	}
	e.Granted, e.Held, e.Failed = b.yes, b.no, b.none
	switch {
	case r.op == wire.Acquire && !b.unreachable() && b.no > 0: // without a no, some votes came too late
		e.Kind = ErrHeld
	case step != wire.Acquire && b.refused():
		e.Kind = ErrLost
	default:
		e.Kind = ErrNoQuorum
	}
	return e
}

// react does what a node's answer asks for, whatever the result of the round: refill a node, give back a late grant, tell
// the waiter. It returns which vote the answer, q.Reply, is; the Status of a yes that does not count becomes wire.Refilled.
func (l *Lock) react(r *round, n *lane.Lane, q *lane.Request) say {
	a := &q.Reply
	if r.op == wire.Acquire && l.shut != nil {
		l.shut.note(n.Name, Outcome(a.Status), a.Err, r.locker.now())
	}
	if q.Step() == wire.Plain && q.Number > 0 && (a.Status == wire.Timeout || a.Status == wire.Unreachable) {
		l.lostSight(n) // it was sent: Node.Bind has set the number
	}
	switch {
	case a.Err == wire.ErrOvertaken:
		// Its number was too small on this node. A look at the node shows whether the node's number is far ahead, from a time
		// when its clock was: then it has no vote, and a Warning says so (poisoned).
		n.Submit(&lane.Request{Op: wire.Inspect, Claim: l.claim.ReadOnly(), To: lane.Nobody{}}, r.sent)
	case a.Status == wire.Void && (a.Time == 0 || a.Time > q.Latest):
		l.dropLate(n)
	case r.op == wire.Acquire && l.waiter != nil:
		l.releaseLateGrant(n) // before OnReply, which may take back the place in the queue for which this gives back the grant
		l.waiter.OnReply(n, &l.claim, a.Status)
	case r.op == wire.Extend && a.Status == wire.Expired:
		l.refill(n)
	case (r.op == wire.Extend || r.op == wire.Raise) && a.Status == wire.Granted && !l.counts(n, r.view.Description):
		a.Status = wire.Refilled
		l.landed(n) // the answer to the refill may have been lost
	}
	v := classify(r.op, a.Status)
	if r.op == wire.Extend && v == voteNo && a.Status != wire.Refilled {
		l.mu.Lock()
		l.record(n).denied = l.rounds
		l.mu.Unlock()
	}
	return v
}

// classify returns the vote (yes, no or none) that the status of a node's answer to a step stands for.
func classify(op wire.Op, s wire.Status) say {
	switch s {
	case wire.Granted:
		return voteYes
	case wire.Expired, wire.Refilled, wire.Held, wire.Reserved, wire.Stolen:
		return voteNo
	case wire.Foreign:
		if op != wire.Acquire {
			return voteNo
		}
	}
	return voteNone
}

// counts reports whether an extension that the node n confirms is a vote. by is the description of the set by which the
// extension was made. A node that lost the token and got it again (refill) only says that the token is there now. It cannot
// say whether the token was there all the time since the last extension, and not a rival's in between. It can again after
// two steps. First, the token is known to be there (landed). Then an extension that begins later shows that no rival can
// have had a quorum: the nodes that do not confirm it, this one included, are no quorum. Those that do have had the token
// all along, and this node has kept it since. Its yes to the extensions after that one is a vote.
//
// A quorum of other votes is always enough. Where a quorum is a majority of an odd number of nodes, it takes a quorum; of
// four nodes it takes two. So a lock that two of three nodes have stays when a fourth node becomes a member: two extensions
// are not confirmed, and the third one is. What an unconfirmed extension has shown under one description of the set shows
// nothing under the next, where fewer nodes may be a quorum; what a quorum has confirmed does.
//
// A node that had no vote when it granted the lock is no such case: what it may have forgotten had been granted before, and
// an acquisition that takes longer than a lock can live gives no lock (VOUCHES in docs/model). A node that has not answered
// the acquire never counts (lostSight). counts takes l.mu.
func (l *Lock) counts(n *lane.Lane, by *wire.Description) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.confirmed
	if t := l.trouble; t != nil && t.by == by {
		last = max(last, t.lastBlocking)
	}
	return l.counted(n, last)
}

// counted reports whether a yes of the node n to an extension is a vote (counts has the reasons): n has never lost the
// token, or was known to have it again when extension number last began. last is the latest extension that has shown that no
// rival has a quorum. Caller holds l.mu.
func (l *Lock) counted(n *lane.Lane, last int32) bool {
	filled := l.recorded(n).filled
	return filled == 0 || filled < last
}

// refill gives the lock's token to a node that has lost it, or never had it, and does not wait for that. The more nodes have
// the token, the more of them may fail; but see counts. The record says filling before the node is asked, so that the node
// does not count if its reply gets lost. Under l.mu no release comes between the look at endErr and the request: a later one
// follows it in the lane.
func (l *Lock) refill(n *lane.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endErr != nil || l.attached {
		return
	}
	m := l.record(n)
	m.filled = max(m.filled, filling)
	now := l.locker.now()
	q := &lane.Request{Op: wire.Acquire, Claim: &l.claim, Deadline: now.Add(l.locker.settings().NodeTimeout), To: refilling{l}, Ticket: lane.Ours, By: l.locker.lanes.View().Description}
	n.Submit(q, now) // an answer at once is the lane's own, and asks for nothing
}

// A refilling receives the answer to the request of refill.
type refilling struct{ *Lock }

func (f refilling) Deliver(n *lane.Lane, q *lane.Request) {
	if q.Reply.Status == wire.Granted || q.Reply.Fence > 0 { // whether that would be a vote or not
		f.landed(n)
	}
	f.releaseLateGrant(n)
}

// lostSight records that an acquire by plain commands was sent and not answered. The node may carry it out after the
// connection was given up, at any time, and though it has lost its data: only scripts compare deadline and marker first. So
// if an extension finds the token there, it may have come a moment ago, after a rival's grant that the node has forgotten;
// also when the node had been refilled, and had counted. The node never counts for the lock.
func (l *Lock) lostSight(n *lane.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record(n).filled = never
}

// landed records that the token is at a node again, after a refill. From then on the node counts once an extension that
// begins later was confirmed by enough others.
//
// The time of the refill's request would not do, since the token may arrive a NodeTimeout later. Three nodes, of which node
// 0 has lost the token. It is asked to take it again, and the next extension is confirmed by 1 and 2. A rival is granted
// node 0, where the token has not arrived, and its request to node 1 is slow. Node 0 loses its data and so the rival's
// token, the holder's token arrives, and the next extension is confirmed by 0 and 2. Node 1, which was not reached, drops
// the token at its TTL, and the rival is granted it: there are two holders.
func (l *Lock) landed(n *lane.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.record(n); m.filled == filling {
		m.filled = max(l.rounds, 1)
	}
}

// releaseLateGrant releases the lock at a node that has granted it, if the lock has ended already, and does not wait for the
// answer: the release that ended the lock may have left out the node, to which no request had gone. A detached lock stays.
func (l *Lock) releaseLateGrant(n *lane.Lane) {
	if l.over() {
		l.giveBack(n, l.locker.now())
	}
}

// dropLate releases a key that a node has set, or may have, after the deadline of an acquire by plain commands
// (wire.ErrLateKey). Other nodes may have granted the lock, and it may be extended. An extension that is under way to the
// node, ahead of the release, still finds the key. If its yes counted, the key would be gone afterwards, and another client
// could have the lock with this node. So the node does not count until it has confirmed the release, and been refilled. It
// is sent no extension as long as it owes the release (Lane.admit). If the release is not answered, the node may carry it
// out after the connection was given up, at any time: then it never counts.
//
// A lock that was detached keeps the key, as in releaseLateGrant. If it is detached after this, its Handle lists the node
// among those that have no vote on the lock (Healed). (late.pml in docs/model has these rules.)
func (l *Lock) dropLate(n *lane.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endErr != errDetached {
		l.record(n).filled = never
		n.Submit(&lane.Request{Op: wire.Release, Claim: &l.claim, To: dropping{l}}, l.locker.now()) // under the mutex: no extension begins in between
	}
}

// A dropping receives the answer to the request of dropLate.
type dropping struct{ *Lock }

func (d dropping) Deliver(n *lane.Lane, q *lane.Request) {
	if q.Reply.Status.SettlesRelease() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.record(n).filled = filling
	}
}

// giveBack releases the lock at one node, at now, whether it has ended or not, and does not wait for the answer.
func (l *Lock) giveBack(n *lane.Lane, now time.Time) {
	n.Submit(&lane.Request{Op: wire.Release, Claim: &l.claim, To: lane.Nobody{}}, now)
}

// answer reports to Trace.Node what a node said in a round. The node's lane calls it, perhaps after the operation's end, and
// at the same time as other lanes. late: the answer came after the round was over. t may be nil, and a is not kept.
func (t *opTrace) answer(r *round, n *lane.Lane, a *wire.Reply, late bool) {
	if t == nil || t.trace.Node == nil {
		return
	}
	now := t.clock.Now()
	reply := redlocktrace.Reply{
		Step: r.op.String(), Name: r.lock.name, Node: n.Name, Outcome: a.Status.String(),
		At: now, Elapsed: elapsed(r.sent, now), Late: late,
	}
	if a.Status != wire.Granted {
		why := nodeError(reply.Node, a, reply.Elapsed)
		reply.Err = &why
	}
	t.callbacks.queue.Add(aside.Detail, "Trace.Node", func() { t.trace.Node(t.ctx, reply) })
}
