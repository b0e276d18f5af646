// Package acquire acquires a lock for a verb: it waits, says what it waits for, and says why it did not get the lock.
package acquire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/facts"
)

// NoticeAfter is how long a verb waits for a lock before it says what it waits for: most locks are released earlier.
// Tests make it shorter.
var NoticeAfter = time.Second

// Await acquires a lock. It waits until cfg.Timeout is over or a signal comes; its error is the failure to exit with.
func Await(c *console.Console, locker *redlock.Locker, nodes *reach.Quarantines, cfg *Config, signals <-chan os.Signal) (*redlock.Lock, error) {
	ctx, stop := proc.UntilSignal(signals)
	lock, err := acquire(ctx, c, locker, nodes, cfg)
	stop()
	var by proc.Interrupted
	switch {
	case errors.As(context.Cause(ctx), &by):
		if lock != nil { // the lock came together with the signal
			Undo(locker, lock, cfg)
		}
		return nil, exit.Fail(by.Code(), "", "%v while waiting for %q: %s", by, cfg.Keys[0], cfg.Without)
	case err != nil:
		return nil, notAcquired(cfg, err)
	}
	return lock, nil
}

// acquire tries once, then waits. The first try's error says what it waits for, and is returned if the time runs out in
// the middle of a round, when the nodes have not answered yet.
func acquire(ctx context.Context, c *console.Console, locker *redlock.Locker, nodes *reach.Quarantines, cfg *Config) (*redlock.Lock, error) {
	if cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
	}
	lock, first := cfg.ask(ctx, locker, locker.TryAcquire)
	var why *redlock.QuorumError
	for errors.As(first, &why) && nodes.Heard(why).Wait() > 0 {
		if !outlast(ctx, locker, nodes, cfg) {
			return nil, first
		}
		lock, first = cfg.ask(ctx, locker, locker.TryAcquire)
	}
	nodes.Tell("", "")
	if !errors.As(first, &why) || cfg.Timeout == 0 {
		return lock, first
	}
	notice := time.AfterFunc(NoticeAfter, func() {
		if lasting(why) { // waiting does not help, so --quiet does not suppress it
			c.Say("waiting for %s", explain.Reason(why))
			c.Say("hint: %s", explain.Remedy(why.Nodes(), why.Need))
			return
		}
		c.Note("waiting for %s", explain.Reason(why))
	})
	defer notice.Stop()
	lock, last := cfg.ask(ctx, locker, locker.Acquire)
	if last != nil && ctx.Err() != nil && explain.Unfinished(last) {
		return nil, first
	}
	return lock, last
}

// ask makes one call for the lock: call is TryAcquire or Acquire. That MinHold is longer than the set's MaxTTL may turn
// out only then, when a node has answered: ask then sets Lingers, and calls again.
func (c *Config) ask(ctx context.Context, locker *redlock.Locker, call func(context.Context, string, ...redlock.AcquireOption) (*redlock.Lock, error)) (*redlock.Lock, error) {
	lock, err := call(ctx, c.Keys[0], c.kind()...)
	if most := locker.Members().MaxTTL; err == nil || errors.As(err, new(*redlock.QuorumError)) || c.Lingers || most == 0 || c.MinHold <= most {
		return lock, err
	}
	c.Lingers = true
	return call(ctx, c.Keys[0], c.kind()...)
}

// Undo releases a lock under which nothing was done. MinHold would keep it, so Undo releases it as another process
// would do: a handle has no MinHold.
func Undo(locker *redlock.Locker, lock *redlock.Lock, cfg *Config) {
	ctx := context.Background()
	if cfg.MinHold > 0 && !cfg.Lingers {
		handle, err := lock.Detach()
		if err == nil {
			lock, err = locker.Attach(ctx, handle)
		}
		if err != nil { // it has ended, or does when its TTL is over
			return
		}
	}
	_ = lock.Release(ctx)
}

// lasting reports whether so many nodes refuse for a lasting reason, such as a wrong password, that the others are no
// quorum.
func lasting(why *redlock.QuorumError) bool {
	refusing := 0
	for _, n := range why.Nodes() {
		if facts.Lasting(n.Err) {
			refusing++
		}
	}
	return why.N-refusing < why.Need
}

// outlast says that too few nodes can vote, and waits until enough can, for reach.AskAgain at most. Then try again. It
// returns false if cfg.Timeout does not allow that wait, or ctx ends.
func outlast(ctx context.Context, locker *redlock.Locker, nodes *reach.Quarantines, cfg *Config) bool {
	// The last round ended as soon as it could not be won. This one gives each node time to answer, so that all are
	// reported.
	_, _ = locker.Inspect(ctx, cfg.Keys[0])
	wait := nodes.Wait() + reach.Stragglers
	deadline, limited := ctx.Deadline()
	if cfg.Timeout == 0 || limited && time.Until(deadline) < wait {
		return false
	}
	nodes.Tell(", so the lock has to wait", " (redlock prepare, run once when nodes are deployed, avoids this)")
	select {
	case <-time.After(min(wait, reach.AskAgain)):
		return true
	case <-ctx.Done():
		return false
	}
}

// notAcquired turns the library's error into the failure that says why there is no lock, and what helps.
func notAcquired(cfg *Config, err error) error {
	var why *redlock.QuorumError
	switch {
	case errors.As(err, &why):
	case errors.Is(err, context.DeadlineExceeded):
		return exit.Fail(exit.NoQuorum, "", "%v", err)
	case explain.ForOperator(err): // found out after Connect
		return reach.NotConnected(err)
	default:
		return exit.Fail(exit.Usage, "", "%s", phrase.Plain(err))
	}
	within := fmt.Sprintf("not acquired within --timeout %v: ", cfg.Timeout)
	patience := fmt.Sprintf("wait longer than --timeout %v, or leave --timeout out to wait without limit", cfg.Timeout)
	switch {
	case cfg.Timeout == 0:
		within, patience = "not acquired: ", "give --timeout 30s, say, to wait for it, or no --timeout to wait without limit"
	case cfg.Timeout < 0:
		within = "" // waiting would not have helped
	}
	switch {
	case errors.Is(err, redlock.ErrHeld):
		f := exit.Fail(cfg.Busy, patience, "%s%s", within, explain.Reason(why))
		f.Silent = cfg.Silent
		return f
	case explain.Mended(why) && slices.ContainsFunc(why.Nodes(), func(n *redlock.NodeError) bool {
		return n.TTL > reach.LongWait && n.Outcome == redlock.OutcomeQuarantined
	}):
		return exit.Fail(exit.NoQuorum, "the longest TTL that the set allows makes that so long: redlock members set max-ttl makes it shorter for all programs, and with --locks-over at once: that declares that no longer lock is held", "%s%s", within, explain.Reason(why))
	case explain.Mended(why):
		return exit.Fail(exit.NoQuorum, patience+"; redlock prepare, run once when nodes are deployed, avoids this", "%s%s", within, explain.Reason(why))
	}
	return exit.Fail(exit.NoQuorum, explain.Remedy(why.Nodes(), why.Need), "%s%s", within, explain.Reason(why))
}
