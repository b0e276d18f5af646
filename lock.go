package redlock

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

// The mutexes of the library, in the order in which they are taken. A goroutine that has one takes
// none above it, and below it none but those that its line names.
//
//	List.mu         the local queues, and who listens (package waitlist); then Group.mu
//	Waiter.mu       what a waiter knows of itself at each node (package waitlist)
//	Lock.mu         of a hold: until, endErr, watchers, the handles that have joined; then Lock.mu of
//	                such a handle (join), Scheduler.mu (watch), Lane.mu (refill, dropLate), or round.mu
//	                (confirmLate)
//	Lock.mu         of a handle that has joined: its endErr, its watchers
//	Scheduler.mu    the schedules, what is live, and Lock.renewal (package renew)
//	Set.mu          what the nodes keep of their set, and the view; then Node.mu, Lane.mu, and
//	                Group.mu (package set)
//	Node.mu         what a node may have forgotten (package vote)
//	Lane.mu         the queue, what is under way, the pending releases, and where tokens are (package lane)
//	round.mu, Locker.mu, census.mu, Group.mu, Registry.mu    what they are in
//
// Under none of them are votes delivered, contexts cancelled, connections written to or closed, or
// hooks called. What is called is the Clock; the Host, for a token; a lane's Server, whether its connection is to be
// replaced (lane.Server.Outdated); the Locker, whether it accepts a description (set.Config.Accept); and a lock, for a new
// round (renew.Item). None of these takes a mutex of the library.

// A Lock is one acquisition of a name. Its name and token never change, it is
// never acquired again, and all its methods may be called from any goroutine.
//
// It ends when it is released or detached, when its validity does, or as soon as it is
// known that a quorum of nodes does not have it any more, whichever comes first.
type Lock struct {
	claim    lane.Claim
	locker   *Locker
	name     string
	waiter   *waitlist.Waiter // whose attempt it is; nil: the call does not wait
	shut     *shutOut         // what the call knows of refusals; nil: it does not wait
	hold     *Lock            // whose hold it has joined; nil: it has one of its own
	maxUntil time.Time        // MaxHold: it ends by then; zero: no such limit
	since    time.Time        // when it was acquired
	trace    *opTrace         // how it was acquired; nil: no hook wants to know

	mu         sync.Mutex // protects what follows, less renewal; and claim.KeepPlace and RetryBy
	until      time.Time  // the end of validity
	endErr     error      // why it has ended; nil while it has not
	done       chan struct{}
	watchers   map[*watcher]struct{}
	alarm      *time.Timer // at until, once somebody wants to be told
	released   chan struct{}
	releaseErr error // what Release returned; once released is closed
	extendSem  chan struct{}
	rounds     int32     // extensions begun
	confirmed  int32     // the last of them that a quorum confirmed
	records    []tokenAt // of the nodes that have one
	joined     map[*Lock]struct{}
	attached   bool // it came from another process: no node is given it anew
	ownerDone  bool // released by its owner, but not by all handles that have joined
	renewed    bool // of a handle that has joined: it asked for renewal

	trouble *renewalTrouble // the renewals that have failed since the last success; nil: none

	renewal renew.Entry
}

// A tokenAt is what a lock knows of its token at a node. Zero: nothing. It is of a lane, and so of one node: what is
// known of a node that was replaced never counts for, or against, the one that came in its place, or for
// the same one when it is a member again, over another lane.
type tokenAt struct {
	lane   *lane.Lane
	filled int32 // the last extension that began before the node was known to be filled anew; or filling
	denied int32 // the last extension by when it said that it does not have the token
}

// record gives what is known of the token at a node, and makes room for it if nothing is. What was known of a lane that has
// ended makes room: no extension asks such a lane any more, and its yes to an earlier one does not count late (confirmed).
// So there are no more records than lanes that live at the same time. Under the mutex.
func (l *Lock) record(n *lane.Lane) *tokenAt {
	gone := -1
	for i := range l.records {
		switch m := &l.records[i]; {
		case m.lane == n:
			return m
		case m.lane.Ended():
			gone = i
		}
	}
	if gone < 0 {
		gone = len(l.records)
		l.records = append(l.records, tokenAt{})
	}
	m := &l.records[gone]
	*m = tokenAt{lane: n}
	return m
}

// recorded gives the same, and makes nothing. Under the mutex.
func (l *Lock) recorded(n *lane.Lane) tokenAt {
	for i := range l.records {
		if l.records[i].lane == n {
			return l.records[i]
		}
	}
	return tokenAt{}
}

// A renewalTrouble is a series of extensions that a quorum did not confirm.
type renewalTrouble struct {
	failed       int
	since        time.Time // when the first of them began
	last         *QuorumError
	lastBlocking int32             // the last extension that showed that nobody else can have a quorum (counts)
	by           *wire.Description // by which it did
	warned       bool              // by Hooks.RenewalFailed
	over         bool              // one has succeeded since, which Hooks.RenewalRecovered is to tell
}

type watcher struct{ cancel context.CancelCauseFunc }

// acquired reports whether the Lock is neither nil nor zero.
func (l *Lock) acquired() bool { return l != nil && l.locker != nil }

// Name is what was locked, without Options.Prefix.
func (l *Lock) Name() string {
	if !l.acquired() {
		return ""
	}
	return l.name
}

// Token is what the nodes hold while the lock is ours: hard to guess, and different for
// each attempt to acquire a lock.
func (l *Lock) Token() string {
	if !l.acquired() {
		return ""
	}
	return l.claim.Token
}

// Fence is the lock's fencing token: a number that is larger than that of every earlier lock
// on this name, whatever clocks, pauses and lost messages have done, and below 2^53. A resource
// that remembers the largest one it has seen, and rejects a smaller one, is safe even from a
// holder that does not know yet that its lock has ended: package fence has guards for SQL, Redis,
// HTTP and memory. Extending does not change it. It is 0 for a Lock that was never acquired. A shared
// lock has as a rule the fence of the exclusive lock before it, and those of slots have no order.
func (l *Lock) Fence() int64 {
	if !l.acquired() {
		return 0
	}
	return l.claim.Fence
}

// Since is when the lock was acquired, by Options.Clock.
func (l *Lock) Since() time.Time {
	if !l.acquired() {
		return time.Time{}
	}
	if l.hold != nil {
		return l.hold.since
	}
	return l.since
}

// Until is the end of validity: nobody else can have the lock before then. Extending the lock
// moves it.
func (l *Lock) Until() time.Time {
	if !l.acquired() {
		return time.Time{}
	}
	if l.hold != nil {
		return l.hold.Until()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// left is how long the lock is still valid.
func (l *Lock) left() time.Duration { return max(0, left(l.Until(), l.locker.now())) }

// validUntil is the end of validity, when a quorum has confirmed requests of which the
// first byte left then. MaxHold began later. Between the two readings the wall clock may have been set, or the monotonic one
// have stood still, so that each of two ends is the earlier one by one of the clocks. What counts is which of them is over
// first by any clock from now on.
func (l *Lock) validUntil(sent time.Time) time.Time {
	until := sent.Add(l.claim.TTL - l.locker.settings().drift(l.claim.TTL))
	if l.maxUntil.IsZero() {
		return until
	}
	now := l.locker.now()
	if rest := left(l.maxUntil, now); rest < left(until, now) {
		return now.Add(rest)
	}
	return until
}

// String is the lock's name, its fence, and how long it is still valid.
func (l *Lock) String() string {
	if !l.acquired() {
		return "<nil>"
	}
	return fmt.Sprintf("%q (fence %d, valid for %s)", l.name, l.claim.Fence, printable.Duration(l.left()))
}

// Format prints String, whatever the verb. Nothing that prints a Lock shows its token: with that,
// anybody could release it.
func (l *Lock) Format(f fmt.State, _ rune) { io.WriteString(f, l.String()) }

// LogValue shows name, fence and remaining validity to a structured logger.
func (l *Lock) LogValue() slog.Value {
	if !l.acquired() {
		return slog.StringValue(l.String())
	}
	return slog.GroupValue(
		slog.String("name", l.name),
		slog.Int64("fence", l.claim.Fence),
		slog.Float64("left_ms", printable.Millis(l.left())),
	)
}

// Context returns a context that is done when parent is, or when the lock ends.
// [context.Cause] then says why; a cause that is ErrLost means that somebody else
// may have the lock from now on. A local timer ends the context, so it ends in time
// whatever the network does.
//
// The context takes some 700 bytes until parent is done or the lock ends. So where a lock is
// held for long, make one context of it, or give each call a parent that ends with the call.
func (l *Lock) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	if !l.acquired() {
		cancel(errNoLock)
		return ctx
	}
	ctx = &lockContext{ctx, l, cancel}
	w := &watcher{cancel}
	l.mu.Lock()
	if why := l.endErrLocked(); why != nil {
		l.mu.Unlock()
		cancel(why)
		return ctx
	}
	if l.watchers == nil {
		l.watchers = make(map[*watcher]struct{})
	}
	l.watchers[w] = struct{}{}
	alive := l.hold != nil || l.watch()
	l.mu.Unlock()
	if !alive {
		l.end(errShut)
	}
	context.AfterFunc(ctx, func() { // a parent that ends first leaves nothing behind
		l.mu.Lock()
		delete(l.watchers, w)
		l.mu.Unlock()
	})
	return ctx
}

// A lockContext ends with its lock. Err looks at the lock itself: so it is right also while
// the alarm is still on its way, or while the contexts are being cancelled one after another.
// A process that was stopped, or suspended with its machine, is told at its first look.
type lockContext struct {
	context.Context
	lock   *Lock
	cancel context.CancelCauseFunc
}

func (c *lockContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	why := c.lock.why()
	if why == nil && left(c.lock.Until(), c.lock.locker.now()) <= 0 {
		why = c.lock.expire()
	}
	if why != nil {
		c.cancel(why)
	}
	return c.Context.Err()
}

// watch sets the alarm for the end of validity, and has Close end the lock, too.
// It reports false when the Locker is closed already. Under the mutex.
func (l *Lock) watch() bool {
	if l.alarm == nil {
		l.alarm = time.AfterFunc(left(l.until, l.locker.now()), l.ring)
	}
	return l.locker.renewals.Add(&l.renewal)
}

// ring ends the lock, unless its validity was extended while the alarm was on
// its way.
func (l *Lock) ring() {
	l.locker.parts.Host.Woke(sim.Alarm, l.claim.Token, 0)
	l.mu.Lock()
	if rest := left(l.until, l.locker.now()); rest > 0 && l.endErr == nil {
		l.alarm.Reset(rest)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.expire()
}

// expire ends a lock whose validity is over.
func (l *Lock) expire() error {
	if l.hold != nil {
		l.hold.expire()
		return l.why()
	}
	if l.spent() {
		return l.fail(l.lost(errMaxHold))
	}
	return l.fail(l.lost(errExpired))
}

// lost makes the error of a lock whose validity is over. If renewals have failed, it is a QuorumError
// with what each node said to the last one.
func (l *Lock) lost(kind error) error {
	now := l.locker.now()
	l.mu.Lock()
	why := &loss{name: l.name, kind: kind, rounds: l.rounds}
	until, trouble := l.until, l.trouble
	if trouble != nil && trouble.over {
		trouble = nil
	}
	if trouble != nil {
		why.failed, why.since = trouble.failed, elapsed(trouble.since, until)
	}
	l.mu.Unlock()
	if kind == errMaxHold {
		return why
	}
	why.stalled = l.locker.renewals.Stalled(until, now)
	if trouble == nil {
		return why
	}
	e := *trouble.last
	e.Kind, e.Cause = ErrLost, why
	return &e
}

// spent reports whether an extension would gain nothing, since MaxHold ends the lock before.
func (l *Lock) spent() bool {
	now := l.locker.now()
	return !l.maxUntil.IsZero() && left(l.maxUntil, now)-left(l.Until(), now) < sameInstant
}

// sameInstant is by how much two ends may differ that are the same one. A reading of the time is one of each clock, and some
// nanoseconds lie between them, more or less each time.
const sameInstant = time.Millisecond

// fail ends a lock that its holder has not given back, and returns the cause for
// which it ended first. The nodes that still have it are told to drop it.
func (l *Lock) fail(cause error) error {
	if first, ok := l.end(cause); !ok {
		return first
	}
	l.releaseAsync()
	l.locker.settings().callbacks.lost(l, cause)
	return cause
}

// end tells everybody who holds a context of the lock that it has ended, once.
func (l *Lock) end(cause error) (first error, ok bool) {
	l.mu.Lock()
	if l.endErr != nil {
		defer l.mu.Unlock()
		return l.endErr, false
	}
	l.endErr = cause
	if l.alarm != nil {
		l.alarm.Stop()
	}
	if l.done != nil && !l.ownerDone {
		close(l.done)
	}
	watchers, joined := l.watchers, l.joined
	l.watchers, l.joined = nil, nil
	l.mu.Unlock()
	for w := range watchers {
		w.cancel(cause)
	}
	for j := range joined {
		j.end(cause)
	}
	l.locker.renewals.Remove(&l.renewal)
	if ended := l.locker.parts.Ended; ended != nil {
		ended(l)
	}
	return cause, true
}

// watched tells a test that watches all locks of one more.
func (lk *Locker) watched(l *Lock) {
	if held := lk.parts.Held; held != nil {
		held(l)
	}
}

// ended is closed when the lock ends.
func (l *Lock) ended() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.endErrLocked() != nil {
			close(l.done)
		}
	}
	return l.done
}

// why gives the cause for which the lock has ended; nil: it has not.
func (l *Lock) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endErrLocked()
}

// endErrLocked is why, under the mutex.
func (l *Lock) endErrLocked() error {
	if l.ownerDone {
		return cmp.Or(l.endErr, errReleased)
	}
	return l.endErr
}

// over reports whether the lock has ended, and not for another process to take up.
func (l *Lock) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endErr != nil && l.endErr != errDetached
}

// releaseAsync has all nodes that may have the token delete it, now or as soon as
// they can be told, and waits for none of them.
func (l *Lock) releaseAsync() {
	r := l.locker.newRound(wire.Release, l, nil)
	r.close()
	r.start(l.locker.now(), time.Time{})
	r.drop()
}

// Release gives the lock back. It returns when a quorum of the nodes that have a vote
// has confirmed that they do not hold it for us any more, or all nodes have answered; at
// the latest after Options.NodeTimeout. Ending ctx does not stop it. The other nodes are told as
// soon as they can be reached, and the TTL is the backstop for those that cannot.
//
// The error is nil; or ErrLost if the lock had ended before, or the answers show
// that a quorum of nodes had lost it; or ErrNoQuorum if too few nodes confirmed in
// time. In each case the lock has ended and its contexts are done; a second call changes
// nothing and returns the same. A lock that joined another one (it was acquired under its
// context) is released with the last of them.
func (l *Lock) Release(ctx context.Context) error {
	if !l.acquired() {
		return errNoLock
	}
	l.mu.Lock()
	if l.released != nil { // another call is at it, or has been
		l.mu.Unlock()
		<-l.released
		return l.releaseErr
	}
	l.released = make(chan struct{})
	l.mu.Unlock()
	defer close(l.released)
	switch {
	case l.hold != nil:
		l.releaseErr = l.releaseJoined(ctx)
	case !l.retireOwner():
		l.releaseErr = l.release(ctx)
	}
	return l.releaseErr
}

func (l *Lock) release(ctx context.Context) error {
	lk := l.locker
	if err := lk.enter(); err != nil {
		return cmp.Or(l.why(), err)
	}
	defer lk.leave()
	now := lk.now()
	if left(l.Until(), now) <= 0 {
		return l.expire()
	}
	if first, ok := l.end(errReleased); !ok {
		return first
	}
	t := lk.begins(ctx, "release", l.name, l)
	r := lk.newRound(wire.Release, l, nil)
	defer r.drop()
	r.trace = t
	r.start(now, time.Time{}) // no deadline: a lane keeps it until it can be sent
	r.wait(context.Background(), lk.nodeTimeout(l.claim.TTL))
	if r.released() {
		t.ends(l, nil)
		return nil
	}
	err := r.explain(lk.now(), nil)
	t.ends(l, err)
	lk.settings().callbacks.unreleased(l, err)
	return err
}

// releaseJoined releases a handle that has joined a hold, and the lock with the last handle.
func (l *Lock) releaseJoined(ctx context.Context) error {
	first, ok := l.end(errReleased)
	l.hold.mu.Lock()
	delete(l.hold.joined, l)
	last := l.hold.ownerDone && len(l.hold.joined) == 0
	l.hold.mu.Unlock()
	if l.renewed {
		l.locker.renewals.Unkeep(&l.hold.renewal)
	}
	switch {
	case last:
		return l.hold.release(ctx)
	case !ok:
		return first
	}
	return nil
}

// retireOwner ends the handle that acquired the lock and reports true, if other handles have joined.
func (l *Lock) retireOwner() bool {
	l.mu.Lock()
	if l.endErr != nil || len(l.joined) == 0 {
		l.mu.Unlock()
		return false
	}
	l.ownerDone = true
	watchers := l.watchers
	l.watchers = nil
	if l.done != nil {
		close(l.done)
	}
	l.mu.Unlock()
	for w := range watchers {
		w.cancel(errReleased)
	}
	return true
}
