// Package redlock is Redlock for Go: a distributed lock over N independent Redis servers, with fencing tokens. A lock
// is held when a majority of the servers has granted it and part of its TTL is left. There is no leader, no cluster,
// and no single server whose failure stops the locks.
//
// It is for Go services and cron jobs that already have Redis and must not do something twice at the same time, also
// while a server is down:
//
//	locker, err := redlock.Connect([]string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"}, nil)
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer locker.Close()
//	// Do waits for the lock, renews it while the function runs, and releases it.
//	err = locker.Do(context.Background(), "nightly-report", func(ctx context.Context, l *redlock.Lock) error {
//		log.Print("reporting, with the fencing token ", l.Fence())
//		return context.Cause(ctx) // ctx ends when the lock does, and says why
//	})
//
// # What it promises
//
// While the process runs, a majority of the nodes answers, and the nodes' clocks run at the speed of the client's clock
// to within [Options].Drift:
//
//   - Exclusion: at most one [Lock] on a name is valid at any moment, across all processes, and across clients of other
//     libraries that speak plain Redlock (SET name token NX PX ttl, compare-and-delete) to the same nodes.
//   - The holder is told in time: it learns that its lock has ended before another client can hold it. A local timer
//     tells it; the network can only bring the end forward.
//   - Fencing tokens: each lock has a number, [Lock.Fence], that is larger than those of all earlier locks on the name,
//     whatever clocks, pauses and lost messages do. A resource that rejects stale fencing tokens is safe even when the
//     lock is not.
//   - Restarts are recognised: a node that was restarted, emptied or promoted, or whose clock was set, may have
//     forgotten a lock that is still held. It has no vote until that lock would have ended: see [Options].Quarantine.
//     New nodes look the same, so the first lock on them waits: see [Locker.WaitReady].
//   - Progress: acquire and release take as long as the slowest node of the fastest majority. A hung, slow or dead
//     minority adds nothing.
//   - Nothing is left behind: an attempt that fails, is cancelled or times out leaves nothing on the nodes, as soon as
//     they can be told. The TTL is the backstop.
//
// # What it does not promise
//
//   - A paused process does not stop when its lock ends. Between the last look at the lock and the next write, the
//     scheduler, a debugger or a suspended machine may take any amount of time. The process is told when it wakes; only
//     the resource can reject its late write, by the fencing token.
//   - A node that drops single keys is not recognised, whether it evicts them (such nodes are refused) or somebody
//     deletes them.
//   - A node's clock that was set before this process first reached the node looks like any other.
//   - When nodes forget, exclusion against clients of other libraries, which know no quarantine.
//   - If a majority of the nodes forgets at once, no two clients hold the lock, but no client can get one until the
//     quarantine is over.
//
// # Which method
//
//   - [Locker.Do] for most callers: it cancels the function's context when the lock ends.
//   - [Locker.Acquire] waits, first come, first served, and returns the [Lock]. [AutoRenew] renews it.
//   - [Locker.TryAcquire] asks once. [Locker.Inspect] reports the holder and the waiters, [Locker.Watch] each change.
//   - [Locker.Shutdown] when the program is told to end: the next process gets the locks as soon as the work has ended.
//
// # Which kind of lock
//
//   - Mutual exclusion: no option.
//   - Leader election: [Locker.Do] in a loop; [Locker.Watch] for followers, [Locker.Shutdown] to resign at the end.
//   - Read-write lock: [Shared] for the readers.
//   - Distributed semaphore: [Slots].
//   - Hierarchical lock, on a folder and all below it: [Options].Separator.
//   - Several names, all or none: [Also].
//   - Reentrant lock: with [Reentrant], a call under [Lock.Context] joins the lock.
//   - A lock that moves to another process: [Lock.Detach], [Locker.Attach].
//
// Package redlocktest is for tests of code that uses locks, package redlocktrace for the steps of a call, and the
// command redlock for shell scripts and cron jobs. The repository has what can go wrong (docs/safety.md), how to run
// the servers (docs/operations.md), and how to move a service from another library without a stop: as a redsync
// alternative (docs/from-redsync.md).
package redlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/waitlist"
)

// A Locker acquires locks on one set of nodes. It may be used from any number of goroutines. It has two goroutines and
// a connection for each node, another connection while calls wait, and one goroutine for renewals, however many locks
// are held or waited for.
type Locker struct {
	inForce     atomic.Pointer[settings] // replaced when the description of the set is known, or changes
	parts       *replace.Parts           // what tests have replaced; in programs only the Host is set
	lanes       *set.Set
	renewals    *renew.Scheduler
	waiting     *waitlist.List
	rounds      sync.Pool     // of *round
	closing     chan struct{} // closed by Shutdown and Close: calls for locks end
	scriptUntil scriptUntil

	locks  registry // those that are held
	places sync.Map // the places of the program that a Warning has named (Lock.forgotten)

	mu     sync.Mutex // protects closed, after which active gets no more calls, doing and done
	closed bool
	doing  int            // calls of Do under way
	done   chan struct{}  // closed when the last call of Do has returned; nil: Shutdown does not wait
	active sync.WaitGroup // calls under way (enter), for which Close waits
	shut   shutOuts       // which nodes refuse this client, for how long
}

func (lk *Locker) settings() *settings { return lk.inForce.Load() }

func (lk *Locker) now() time.Time { return lk.settings().Clock.Now() }

// Format prints the nodes' addresses, the quorum and the TTL, whatever the verb, and no user or password.
func (lk *Locker) Format(f fmt.State, _ rune) {
	if lk == nil || lk.lanes == nil {
		io.WriteString(f, "<nil>")
		return
	}
	view := lk.lanes.View()
	names := make([]string, len(view.Lanes))
	for i, n := range view.Lanes {
		names[i] = n.Name
	}
	fmt.Fprintf(f, "redlock.Locker(%d of %d nodes: %s; TTL %v)", view.Quorum, len(names), strings.Join(names, ", "), lk.settings().TTL)
}

// Shutdown ends the work under the Locker's locks, releases them, and closes the Locker. Call it when the program is told to
// end: the next process gets the locks as soon as the work has ended, and not when their TTL is over. Shutdown
//
//   - makes all calls for a lock return ErrClosed, those that wait and later ones: a loop that calls Do must end then;
//   - ends the contexts of all locks, with a cause that is ErrClosed and not ErrLost: the locks are still held, and renewed,
//     until their work has ended;
//   - waits until every call of [Locker.Do] has returned, which releases its lock, or until ctx ends;
//   - releases the locks of [Locker.Acquire], TryAcquire and Attach that are still held: work under them must have ended by
//     then;
//   - calls Close.
//
// If ctx ends first, the error is ctx's, and says how many functions of Do still run. Then Shutdown releases nothing, since
// the work goes on: no other client can have the locks until their TTL is over. With a ctx that has already ended, such as
// that of signal.NotifyContext, Shutdown does not wait for the work: give it a context of its own, with a timeout.
//
// A function of Do must not wait for Shutdown, which waits for the function. The error is ErrClosed after Close.
func (lk *Locker) Shutdown(ctx context.Context) error {
	if err := lk.made(); err != nil {
		return err
	}
	lk.refuseLocks()
	for _, l := range lk.locks.all() {
		l.dismiss()
	}
	err := lk.awaitDo(ctx)
	if err == nil {
		var releases sync.WaitGroup
		most := make(chan struct{}, renew.MaxUnderWay)
		for _, l := range lk.locks.all() {
			most <- struct{}{}
			releases.Go(func() {
				l.releaseAll(ctx)
				<-most
			})
		}
		releases.Wait()
	}
	return errors.Join(err, lk.Close())
}

// refuseLocks makes all calls for a lock return ErrClosed, those that wait and later ones.
func (lk *Locker) refuseLocks() {
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if !lk.isClosing() {
		close(lk.closing)
	}
}

// awaitDo waits until no call of Do runs. If ctx ends first, the error is ctx's. refuseLocks was called, so no more begin.
func (lk *Locker) awaitDo(ctx context.Context) error {
	lk.mu.Lock()
	if lk.doing > 0 && lk.done == nil {
		lk.done = make(chan struct{})
	}
	done := lk.done
	lk.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if lk.doing == 0 {
		return nil
	}
	return fmt.Errorf("redlock: shutdown: %w, and %s: no lock is released before its TTL is over", ended(ctx), counted(lk.doing, "function of Do still runs", "functions of Do still run"))
}

// doBegins counts a call of Do, until doEnds; or returns why not: ErrClosed, once Shutdown or Close was called.
func (lk *Locker) doBegins() error {
	if err := lk.made(); err != nil {
		return err
	}
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if lk.isClosing() {
		return ErrClosed
	}
	lk.doing++
	return nil
}

func (lk *Locker) doEnds() {
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if lk.doing--; lk.doing == 0 && lk.done != nil {
		close(lk.done)
	}
}

// Close ends all waiting, sends what is left to be released, for at most twice Options.NodeTimeout, and leaves no
// goroutine and no connection.
//
// Close does not release held locks, because it cannot know that their work has ended: [Locker.Shutdown] waits for that,
// and releases them. After Close their contexts have ended with ErrClosed, and no other client can have them until
// their TTL is over.
//
// Close then waits for the hooks, for at most a second or Options.NodeTimeout, whichever is longer. If a hook has not
// returned by then, the error names it and says how many events were not reported; the hook's goroutine ends with the
// hook. A second Close returns ErrClosed.
func (lk *Locker) Close() error {
	if err := lk.made(); err != nil {
		return err
	}
	lk.mu.Lock()
	if lk.closed {
		lk.mu.Unlock()
		return ErrClosed
	}
	lk.closed = true
	lk.mu.Unlock()
	countClosed()
	lk.refuseLocks()
	lk.renewals.Close()
	lk.active.Wait() // waiting calls return now; rounds are bounded by NodeTimeout, and may have something to give back
	lk.waiting.Close()
	lk.lanes.Close(lk.settings().NodeTimeout)
	return lk.settings().callbacks.close(lk.tellingTime())
}

// made returns an error for a Locker that is nil or zero.
func (lk *Locker) made() error {
	if lk == nil || lk.lanes == nil {
		return errNoLocker
	}
	return nil
}

// tellingTime is how long New and Close wait for the hooks.
func (lk *Locker) tellingTime() time.Duration { return max(lk.settings().NodeTimeout, time.Second) }

// nodeTimeout is how long one round of a lock with this TTL may take.
func (lk *Locker) nodeTimeout(ttl time.Duration) time.Duration {
	return min(lk.settings().NodeTimeout, ttl/2)
}

// enter makes Close wait until the caller calls leave. After Close it returns ErrClosed, and the caller does not call leave.
func (lk *Locker) enter() error {
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if lk.closed {
		return ErrClosed
	}
	lk.active.Add(1)
	return nil
}

func (lk *Locker) leave() { lk.active.Done() }

func (lk *Locker) isClosing() bool {
	select {
	case <-lk.closing:
		return true
	default:
		return false
	}
}

// A scriptUntil has, for each of 512 parts of all keys, until when its keys are acquired by the script alone, without
// plain commands (Unix time in nanoseconds).
type scriptUntil [512]atomic.Int64

func (p *scriptUntil) of(key string) *atomic.Int64 { return &p[script.Hash(key)%uint32(len(p))] }

// plainPause is for how long a key is acquired by the script alone after plain commands failed, or another client had it.
func (lk *Locker) plainPause() time.Duration { return lk.settings().TTL / 10 }

func (lk *Locker) mayPlain(key string, now time.Time) bool {
	rest := time.Unix(0, lk.scriptUntil.of(key).Load()).Sub(now.Round(0))
	return rest <= 0 || rest > lk.plainPause() // the clock was set back
}

func (lk *Locker) notPlain(key string, now time.Time) {
	lk.scriptUntil.of(key).Store(now.Add(lk.plainPause()).UnixNano())
}

// errNoLocker and errNoLock are the errors of methods of nil and zero values. Usually a lock that was not acquired is
// released (defer).
var (
	errNoLocker = errors.New("redlock: the Locker is nil, or was not made by New or Connect")
	errNoLock   = errors.New("redlock: the Lock is nil, or was not acquired: look at the error of the call that should have acquired it")
)

// manyLockers is how many open Lockers in a process cause a Warning. As a rule, a program has one per set.
const manyLockers = 100

var (
	openLockers atomic.Int64
	toldLockers atomic.Bool // the Warning was given, which is once in a process
)

// countOpened counts a new Locker, until countClosed. It calls warn when manyLockers are open, once in the process.
func countOpened(warn func(error)) {
	if n := openLockers.Add(1); n >= manyLockers && toldLockers.CompareAndSwap(false, true) {
		warn(fmt.Errorf("redlock: this process has %d open Lockers, each with its own connections and goroutines: make one Locker for the whole program, and not one for each request or lock; Close those that are no longer used", n))
	}
}

func countClosed() { openLockers.Add(-1) }

// begins reports to the trace that op ("acquire", say) on name begins. The opTrace reports the rest; nil: op is not traced,
// and what is reported to it is dropped. l is that lock if it is held already: then Trace.Start is queued, as hooks are, and
// runs on their goroutine; nil: it runs on the caller's. Caller holds no mutex.
func (lk *Locker) begins(ctx context.Context, op, name string, l *Lock) *opTrace {
	o := lk.settings()
	return o.callbacks.begins(ctx, o.Clock, op, name, l)
}

// stops returns why a call that waits must return: ctx's error, or ErrClosed; nil: it may go on.
func (lk *Locker) stops(ctx context.Context) error {
	switch err := ended(ctx); {
	case err != nil:
		return err
	case lk.isClosing():
		return ErrClosed
	}
	return nil
}

// sleepFor returns nil after d, or why it ends before (ctx's error, ErrClosed). key names the goroutine for a simulator.
func (lk *Locker) sleepFor(ctx context.Context, key string, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-lk.closing:
	}
	lk.parts.Host.Woke(sim.Caller, key, -1)
	return lk.stops(ctx)
}
