package redlock

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

// The mutexes of the library, in the order in which they are taken. A goroutine that has one takes none above it, and
// below it none but those that its line names.
//
//	registry.mu     the locks that are held; then Lock.mu
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
// A goroutine that holds one of them delivers no votes, cancels no contexts, neither writes to connections nor closes
// them, and calls no hooks. It may call the Clock; the Host, for a token; a lane's Server, whether its connection is to
// be replaced (lane.Server.Outdated); the Locker, whether it accepts a description (set.Config.Accept); and a lock, for
// a new round (renew.Item). None of these takes a mutex of the library.

// A Lock is one acquisition of a name. Its name and token never change, it is never acquired again, and all its methods
// may be called from any goroutine.
//
// It ends when it is released or detached, when its validity ends, or as soon as it is known that a quorum of nodes
// does not have it any more, whichever comes first.
type Lock struct {
	claim    lane.Claim
	locker   *Locker
	name     string
	waiter   *waitlist.Waiter // that makes the attempt; nil: no place in queues is wanted
	shut     *shutOut         // records refusals for the call; nil: the call does not wait
	hold     *Lock            // the lock that it has joined (Reentrant); nil: none
	maxUntil time.Time        // MaxHold: it ends by then; zero: no such limit
	place    uintptr          // where in the program it was acquired; 0: no Warning is wanted (forgotten)
	since    time.Time        // when it was acquired
	trace    *opTrace         // of its acquisition; nil: not traced

	mu         sync.Mutex            // protects what follows, except renewal; and claim.KeepPlace and RetryBy
	until      time.Time             // the end of validity
	minUntil   time.Time             // MinHold: a release keeps it until then; zero: the release deletes its keys
	minHold    time.Duration         // from when to minUntil
	stays      bool                  // it was released, and is kept until minUntil
	used       time.Time             // when a context of it was last made; zero: never, or place is 0
	endErr     error                 // why it has ended; nil while it has not
	done       chan struct{}         // closed when it ends, or this handle does; nil: nobody waits for that
	watchers   map[*watcher]struct{} // one for each of its contexts
	alarm      *time.Timer           // at until, if there is a context or a renewal to end; nil: there is none yet
	unbind     func() bool           // stops waiting for the end of RenewWhile's context; nil: there is none
	released   chan struct{}         // closed when Release is over; nil: it was not called
	releaseErr error                 // what Release returned; once released is closed
	extendSem  chan struct{}         // a semaphore: extensions of the lock take turns
	rounds     int32                 // extensions begun
	confirmed  int32                 // the last of them that a quorum confirmed
	records    []tokenAt             // of the nodes of which something is known
	joined     map[*Lock]struct{}    // the handles that have joined it (Reentrant)
	attached   bool                  // it came from another process: a node that lost it does not get it again
	ownerDone  bool                  // its own handle was released, but not all that have joined
	renewed    bool                  // this handle asked for renewal, and unkeep has not ended that

	trouble *renewalTrouble // the renewals that have failed since the last success; nil: none

	renewal renew.Entry // protected by Scheduler.mu
}

// A tokenAt is what a lock knows of its token at a node; zero: nothing. It is kept by lane, the client's connection to
// a node. What is known of a node that was replaced never counts for, or against, the one that came in its place; nor
// for the same node when it is a member again, over another lane, unless it never counts.
type tokenAt struct {
	lane   *lane.Lane
	filled int32 // the last extension begun before the node was known to have the token again after a refill; or filling, or never; 0: no refill
	denied int32 // the last extension begun when the node said that it does not have the token
}

const (
	filling = never - 1     // tokenAt.filled of a node that was asked to take the token again, until that is known to be there
	never   = math.MaxInt32 // of a node that never counts, since a request may come to it that was sent long ago
)

// record returns the lock's record of its token at the node n, to be changed; valid until the next call. If there is none,
// it adds an empty one, or reuses that of a lane (the client's connection to a node) that has ended. That is of no use: no
// extension asks an ended lane, and its late yes does not count (confirmed). So there are no more records than lanes that
// live at the same time; and those of nodes that never count, which do not either when they are members again. Caller holds
// l.mu.
func (l *Lock) record(n *lane.Lane) *tokenAt {
	gone, filled := -1, int32(0)
	for i := range l.records {
		switch m := &l.records[i]; {
		case m.lane == n:
			return m
		case m.filled == never && m.lane.Name == n.Name:
			filled = never
		case m.filled != never && m.lane.Ended():
			gone = i
		}
	}
	if gone < 0 {
		gone = len(l.records)
		l.records = append(l.records, tokenAt{})
	}
	m := &l.records[gone]
	*m = tokenAt{lane: n, filled: filled}
	return m
}

// recorded returns a copy of the lock's record of its token at a node; zero: there is none. Caller holds l.mu.
func (l *Lock) recorded(n *lane.Lane) tokenAt {
	for i := range l.records {
		if l.records[i].lane == n {
			return l.records[i]
		}
	}
	return tokenAt{}
}

// A renewalTrouble is a series of extensions that no quorum confirmed.
type renewalTrouble struct {
	failed       int
	since        time.Time // when the first of them began
	last         *QuorumError
	lastBlocking int32             // the last extension in which the nodes that did not confirm it were no quorum (counts)
	by           *wire.Description // the set's description in that extension
	warned       bool              // Hooks.RenewalFailed was called
	over         bool              // one has succeeded since, which Hooks.RenewalRecovered has yet to report
}

type watcher struct{ cancel context.CancelCauseFunc }

func (l *Lock) acquired() bool { return l != nil && l.locker != nil }

// Name is what was locked, without Options.Prefix and the names of [Also]; "" for a Lock that was never acquired.
func (l *Lock) Name() string {
	if !l.acquired() {
		return ""
	}
	return l.name
}

// Token is what the nodes keep while the lock is held: hard to guess, and different for each attempt to acquire a lock. Keep
// it secret: anybody who has it can release the lock. It is "" for a Lock that was never acquired.
func (l *Lock) Token() string {
	if !l.acquired() {
		return ""
	}
	return l.claim.Token
}

// Fence is the lock's fencing token: a number that is larger than that of every earlier lock on this name, whatever clocks,
// pauses and lost messages have done, and below 2^53. A resource that remembers the largest one it has seen, and rejects a
// smaller one, is safe even from a holder that does not know yet that its lock has ended: package fence has guards for SQL,
// Redis, HTTP and memory. The fence never changes. It is 0 for a Lock that was never acquired. A shared lock has as a rule
// the fence of the exclusive lock before it, and those of slots have no order.
func (l *Lock) Fence() int64 {
	if !l.acquired() {
		return 0
	}
	return l.claim.Fence
}

// Since is when the lock was acquired, by the Options.Clock of the process that acquired it; zero for a Lock that never was.
func (l *Lock) Since() time.Time {
	if !l.acquired() {
		return time.Time{}
	}
	if l.hold != nil {
		return l.hold.since
	}
	return l.since
}

// Until is the end of validity, by Options.Clock: nobody else can have the lock before then, unless it is released or lost.
// A later extension moves it; the end of the lock does not. It is zero for a Lock that was never acquired.
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

func (l *Lock) left() time.Duration { return max(0, left(l.Until(), l.locker.now())) }

// validUntil returns the end of validity when a quorum has confirmed requests whose first byte left at sent: sent + TTL -
// drift, or the end of MaxHold if that comes first. The two ends come from different readings of the clock, which have a
// wall and a monotonic time each. If the wall clock was set between these, or the monotonic clock stood still, the one end
// may be earlier by the wall time, and the other by the monotonic. What counts is of which less is left from now on.
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

// Format prints String, whatever the verb. Nothing that prints a Lock shows its token: anybody who has it could release it.
func (l *Lock) Format(f fmt.State, _ rune) { io.WriteString(f, l.String()) }

// LogValue shows name, fence and remaining validity (left_ms) to a structured logger.
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

// Context returns a context that is done when parent is, when the lock ends, or when [Locker.Shutdown] is called.
// [context.Cause] then says why; a cause that is ErrLost means that somebody else may have the lock from now on. A local
// timer ends the context, so it ends in time whatever the network does. Calls under it may join the lock (Reentrant).
//
// The context takes some 700 bytes until parent is done or the lock ends. So where a lock is held for long, make one context
// of it, or give each call a parent that ends with the call.
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
	if l.place != 0 {
		l.used = l.locker.now()
	}
	alive := l.hold != nil || l.watch()
	l.mu.Unlock()
	switch {
	case !alive:
		l.end(errShut)
	case l.locker.isClosing(): // after the context was added: Shutdown ends those that it finds
		cancel(errStopping)
	}
	context.AfterFunc(ctx, func() { // a parent that ends first leaves nothing behind
		l.mu.Lock()
		delete(l.watchers, w)
		l.mu.Unlock()
	})
	return ctx
}

// A lockContext ends with its lock. Err looks at the lock itself, so it is right also before the alarm has run, or while the
// contexts are cancelled one after another. A process that was stopped or suspended learns of the end at its first look.
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

// watch sets the timer that ends the lock when its validity is over, if there is none yet, and makes Locker.Close end the
// lock, too. It returns false if the Locker is closed already: then the caller must end the lock (errShut) after it has
// unlocked l.mu. Caller holds l.mu. l is no handle that has joined another lock.
func (l *Lock) watch() bool {
	if l.alarm == nil {
		l.alarm = time.AfterFunc(left(l.until, l.locker.now()), l.ring)
	}
	return l.locker.renewals.Add(&l.renewal)
}

// ring runs when the alarm (the timer of watch) is due. It ends the lock, unless an extension has moved the end of validity:
// then it sets the alarm again.
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

// expire ends a lock; the caller has seen that its validity is over. For a handle that has joined a lock (Reentrant) it ends
// that lock, with all its handles. It returns why l has ended: ErrLost, or the cause of an earlier end.
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

// lost makes the error, an ErrLost, of a lock whose validity is over; it does not end the lock. kind is errExpired or
// errMaxHold. If renewals have failed, the error is a QuorumError with what each node said to the last one.
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

// spent reports whether an extension would gain nothing, since the validity lasts to the end of MaxHold already.
func (l *Lock) spent() bool {
	now := l.locker.now()
	return !l.maxUntil.IsZero() && left(l.maxUntil, now)-left(l.Until(), now) < sameInstant
}

// sameInstant is by how much two readings of one instant may differ: it takes two clocks, nanoseconds apart.
const sameInstant = time.Millisecond

// fail ends a lock that its holder has not released, calls Hooks.Lost, sends a release to the nodes that may still have the
// token, and returns cause. If the lock had ended before, it only returns the cause of that. Caller holds no mutex.
func (l *Lock) fail(cause error) error {
	if first, ok := l.end(cause); !ok {
		return first
	}
	l.releaseAsync()
	l.locker.settings().callbacks.lost(l, cause)
	return cause
}

// end ends the lock in this process, and cancels its contexts and those of the handles that have joined it; it sends
// nothing. It returns cause and true; or, if the lock has ended before, the cause of that and false. Caller holds no mutex.
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
	watchers, joined, unbind := l.watchers, l.joined, l.unbind
	l.watchers, l.joined = nil, nil
	l.mu.Unlock()
	if unbind != nil {
		unbind()
	}
	for w := range watchers {
		w.cancel(cause)
	}
	for j := range joined {
		j.end(cause)
	}
	l.locker.renewals.Remove(&l.renewal)
	l.locker.locks.remove(l)
	if ended := l.locker.parts.Ended; ended != nil {
		ended(l)
	}
	return cause, true
}

// register enters a lock that was acquired or attached into lk.locks, for Shutdown. It returns false if Shutdown or Close
// was called meanwhile. Then it has ended the lock; and released it, unless it was attached, since other processes may hold
// such a lock. The caller has called Locker.enter, so Close waits until the release is queued for the nodes.
func (lk *Locker) register(l *Lock) bool {
	lk.locks.add(l, lk.settings().TTL)
	switch {
	case !lk.isClosing(): // Shutdown finds the lock if it is called from now on
		return true
	case l.attached:
		l.end(errDetached)
	default:
		l.end(errReleased)
		l.releaseAsync()
	}
	return false
}

// watched hands a lock that was acquired or attached to the test that watches all locks, if there is one.
func (lk *Locker) watched(l *Lock) {
	if held := lk.parts.Held; held != nil {
		held(l)
	}
}

// dismiss ends the contexts of a lock, and of handles that have joined it, with errStopping. The lock stays held.
func (l *Lock) dismiss() {
	l.mu.Lock()
	watchers := l.watchers
	l.watchers = nil
	joined := slices.Collect(maps.Keys(l.joined))
	l.mu.Unlock()
	for w := range watchers {
		w.cancel(errStopping)
	}
	for _, j := range joined {
		j.dismiss()
	}
}

// A registry has the locks of a Locker that are held, for Shutdown. A lock that its holder has dropped without a release
// stays in it after its end, until add removes all that have ended: when there are 64, or twice as many as after the last
// time, or a TTL later.
type registry struct {
	mu      sync.Mutex // protects what follows; Lock.mu is taken under it
	locks   map[*Lock]struct{}
	clean   int // how many there are when add cleans
	cleaned time.Time
}

// add adds a lock. If there are many, or ttl (Options.TTL) has passed since it did, it first removes those that ended.
func (r *registry) add(l *Lock, ttl time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.locks) >= r.clean || elapsed(r.cleaned, l.since) > ttl {
		for l := range r.locks {
			if l.over() || l.left() == 0 {
				delete(r.locks, l)
			}
		}
		r.clean, r.cleaned = max(64, 2*len(r.locks)), l.since
	}
	if r.locks == nil {
		r.locks = make(map[*Lock]struct{})
	}
	r.locks[l] = struct{}{}
}

func (r *registry) remove(l *Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.locks, l)
}

// all returns the locks that are valid, in the order in which they were acquired, and forgets the others.
func (r *registry) all() []*Lock {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.locks, func(l *Lock, _ struct{}) bool { return l.left() == 0 })
	return slices.SortedFunc(maps.Keys(r.locks), func(a, b *Lock) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.claim.Token, b.claim.Token))
	})
}

// ended returns a channel that is closed when the lock, or this handle of it, ends; closed already if that has happened.
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

// why returns the cause for which the lock, or this handle of it, has ended; nil: it has not.
func (l *Lock) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endErrLocked()
}

// endErrLocked returns the cause for which the lock, or this handle of it, has ended; nil: it has not. Caller holds l.mu.
func (l *Lock) endErrLocked() error {
	if l.ownerDone {
		return cmp.Or(l.endErr, errReleased)
	}
	return l.endErr
}

// over reports whether the lock has ended, and nodes that still have it must release it. That is false for a lock that was
// detached, which another process attaches, and for one that stays on the nodes for its MinHold.
func (l *Lock) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endErr != nil && l.endErr != errDetached && !l.stays
}

// releaseAsync makes all nodes that may have the token delete it, as soon as they can be reached, and waits for none.
func (l *Lock) releaseAsync() {
	r := l.locker.newRound(wire.Release, l, nil)
	r.close()
	r.start(l.locker.now(), time.Time{})
	r.drop()
}

// Release gives the lock back. It returns when a quorum of the nodes that have a vote has confirmed that they do not hold
// the lock for this holder any more, or all nodes have answered; at the latest after Options.NodeTimeout. ctx is for
// Hooks.Trace, and its end does not stop Release. The other nodes get the release as soon as they can be reached, and the
// TTL is the backstop for those that cannot.
//
// The error is nil; or ErrLost if the lock had ended before, or the answers show that a quorum of nodes had lost it; or
// ErrNoQuorum if too few nodes confirmed in time; or ErrClosed after Close, when nothing is sent. In each case the lock has
// ended and its contexts are done; a second call changes nothing and returns the same. Where calls have joined a lock
// (Reentrant), it is released with the last of its handles, and Release of an earlier one returns nil at once.
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

// releaseAll releases all handles of the lock: those that have joined l, and l. Hooks.Unreleased gets the errors.
func (l *Lock) releaseAll(ctx context.Context) {
	l.mu.Lock()
	joined := slices.Collect(maps.Keys(l.joined))
	l.mu.Unlock()
	for _, j := range append(joined, l) {
		_ = j.Release(ctx)
	}
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
	l.mu.Lock()
	rest := l.mustStay(now)
	l.stays = rest > 0
	l.mu.Unlock()
	t := lk.begins(ctx, "release", l.name, l)
	var err error
	if rest > 0 {
		err = l.leave(t, rest)
	} else {
		err = l.deleteKeys(t, now)
	}
	t.ends(l, err)
	if err != nil {
		lk.settings().callbacks.unreleased(l, err)
	}
	return err
}

// deleteKeys tells all nodes to delete the lock's keys; the lock has ended. It waits for NodeTimeout at most. nil: a quorum
// has confirmed it. A QuorumError: ErrLost if so many nodes had lost the lock before that no quorum can have had it; else
// ErrNoQuorum, since too few answered. A node that cannot be reached gets the request when it can, also after the return.
func (l *Lock) deleteKeys(t *opTrace, now time.Time) error {
	r := l.locker.newRound(wire.Release, l, nil)
	defer r.drop()
	r.trace = t
	r.start(now, time.Time{}) // no deadline: a lane keeps it until it can be sent
	r.wait(context.Background(), l.locker.nodeTimeout(l.claim.TTL))
	if r.released() {
		return nil
	}
	return r.explain(l.locker.now(), nil)
}

// mustStay returns what is left of the lock's MinHold at now: for so long the nodes keep the lock after a release. 0:
// nothing is left, or there is no MinHold. Of the wall clock and the monotonic one, the one by which more is left counts: a
// clock that was set forward must not make a second machine do the work. Caller holds l.mu.
func (l *Lock) mustStay(now time.Time) time.Duration {
	if l.minUntil.IsZero() {
		return 0
	}
	return max(0, min(elapsed(now, l.minUntil), l.minHold))
}

// leave releases a lock whose MinHold is not over: it sets the lock's TTL to rest, what is left of MinHold, or to the set's
// MaxTTL if that has become shorter. It returns when a quorum has confirmed that, after a NodeTimeout at the latest; if the
// set was changed meanwhile, after another one. The error is that of a release: ErrLost or ErrNoQuorum.
//
// leave sends an extension of another Lock with the same token, which no caller has. That Lock has a TTL of its own. It is
// marked as attached, so a node that has lost the token does not get it anew. The nodes that do not count for l do not for
// it.
func (l *Lock) leave(t *opTrace, rest time.Duration) error {
	lk := l.locker
	limit := lk.nodeTimeout(l.claim.TTL)
	for {
		if most := lk.settings().most; most > 0 {
			rest = min(rest, most)
		}
		l.mu.Lock()
		k := &Lock{locker: lk, name: l.name, claim: l.claim.Joined(), attached: true, records: slices.Clone(l.records), confirmed: l.confirmed}
		l.mu.Unlock()
		k.claim.TTL, k.claim.Millis = rest, (rest + time.Millisecond - 1).Milliseconds()
		r := lk.newRound(wire.Extend, k, nil)
		r.trace = t
		view, now := r.view, lk.now()
		r.start(now, now.Add(limit))
		r.wait(context.Background(), limit)
		won, err := r.decided() == won, r.explain(lk.now(), nil)
		r.drop()
		switch {
		case won:
			return nil
		case lk.lanes.View().Description == view.Description:
			err.Op = wire.Release.String()
			return err
		}
	}
}

// unkeep ends the renewal that this handle asked for; a second call does nothing. If another handle of the lock asked for
// renewal, too, the lock is still renewed.
func (l *Lock) unkeep() {
	l.mu.Lock()
	was := l.renewed
	l.renewed = false
	l.mu.Unlock()
	if was {
		l.locker.renewals.Unkeep(&cmp.Or(l.hold, l).renewal)
	}
}

// releaseJoined releases l, a handle that joined another lock (l.hold). If no other handle is left, it releases that lock,
// and the error is that of the release. Otherwise it is why l had ended before, or nil.
func (l *Lock) releaseJoined(ctx context.Context) error {
	first, ok := l.end(errReleased)
	l.hold.mu.Lock()
	delete(l.hold.joined, l)
	last := l.hold.ownerDone && len(l.hold.joined) == 0
	l.hold.mu.Unlock()
	l.unkeep()
	switch {
	case last:
		return l.hold.release(ctx)
	case !ok:
		return first
	}
	return nil
}

// retireOwner ends only l, the handle that acquired the lock, if other handles have joined, and returns true: the lock goes
// on. If there are none, or the lock has ended, it changes nothing, and returns false.
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
