package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redistest"
)

// Three things that people want of a lock. Each is a function over any Locker,
// so that it is an example, and a test on real servers.

// nineWorkers has nine workers want one lock at the same moment. One of them gets
// it and keeps it; the others ask once more then, and are told who has it.
func nineWorkers(ctx context.Context, lk *redlock.Locker, name string) (winners []*redlock.Lock, losers []error) {
	waiting, decided := context.WithCancel(ctx)
	defer decided()
	locks := make([]*redlock.Lock, 9)
	var all sync.WaitGroup
	for i := range locks {
		all.Go(func() {
			// Not TryAcquire: nine at once, in nine processes, may split the votes so
			// that nobody has a majority, and somebody has to try again.
			l, err := lk.Acquire(waiting, name)
			if err == nil {
				locks[i] = l
				decided()
			}
		})
	}
	all.Wait()
	for _, l := range locks {
		if l != nil {
			winners = append(winners, l)
			continue
		}
		if _, err := lk.TryAcquire(ctx, name); err != nil {
			losers = append(losers, err)
		}
	}
	return winners, losers
}

// holder is the token of whoever the nodes say has the lock; none, if they do not
// agree.
func holder(err error) string {
	var q *redlock.QuorumError
	if !errors.Is(err, redlock.ErrHeld) || !errors.As(err, &q) {
		return ""
	}
	votes := map[string]int{}
	for _, n := range q.Nodes() {
		if n.Outcome == redlock.Held {
			votes[n.Holder]++
		}
	}
	for token, n := range votes {
		if n >= q.Need {
			return token
		}
	}
	return ""
}

func TestNineWorkers(t *testing.T) {
	servers, lk := onServers(t, 5, patient())
	stranger := open(t, redistest.Clients(t, servers), patient())
	for i := range cycles(50) {
		name := fmt.Sprint("job", i)
		winners, losers := nineWorkers(t.Context(), lk, name)
		if len(winners) != 1 || len(losers) != 8 {
			t.Fatalf("%d winners and %d losers", len(winners), len(losers))
		}
		won := winners[0]
		for _, err := range losers {
			if got := holder(err); got != won.Token() {
				t.Errorf("a loser is told that %q has it, not %q: %v", got, won.Token(), err)
			}
		}
		// Nobody but its owner can release it: the others have nothing to do it
		// with, and what their attempts have to tidy up is not it.
		_, err := stranger.TryAcquire(t.Context(), name)
		wantKind(t, err, redlock.ErrHeld)
		eventually(t, settleWithin, "the winner to have all nodes but for what losers gave back", func() bool {
			return heldOn(t, servers, name, won.Token()) >= 3
		})
		if err := won.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		released(t, won)
		released(t, acquired(t, stranger, name))
	}
	nothingLeft(t, servers)
}

// waitFor wants a lock that somebody holds who never gives it back, and waits no
// longer than patience.
func waitFor(ctx context.Context, lk *redlock.Locker, name string, patience time.Duration) (*redlock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return lk.Acquire(ctx, name)
}

// waitingIsBounded: whoever waits for less than a lock lives gets an error that
// says both that the time is up and that the lock is held; whoever waits for more
// gets the lock.
func waitingIsBounded(t *testing.T, lk *redlock.Locker, patience, ttl, precision time.Duration) {
	begin := time.Now()
	dead := acquired(t, lk, "a", redlock.WithTTL(ttl))
	_, err := waitFor(t.Context(), lk, "a", patience)
	if took := time.Since(begin); took < patience || took > patience+precision {
		t.Errorf("gave up after %v, not %v", took, patience)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v hides the context's error", err)
	}
	wantKind(t, err, redlock.ErrHeld)
	if got := holder(err); got != dead.Token() {
		t.Errorf("held by %q, not %q: %v", got, dead.Token(), err)
	}
	l, err := waitFor(t.Context(), lk, "a", ttl)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < ttl || took > ttl+precision {
		t.Errorf("had it after %v, not %v", took, ttl)
	}
	released(t, l)
}

func TestWaitTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redistest.NoLeaks(t)
		b := redistest.NewBubble(t, 5)
		lk := open(t, b.Clients(), &redlock.Options{TTL: 30 * time.Second})
		waitingIsBounded(t, lk, 10*time.Second, 30*time.Second, 10*time.Millisecond)
	})
}

func TestWaitOnServers(t *testing.T) {
	servers, lk := onServers(t, 5, patient())
	waitingIsBounded(t, lk, time.Second, 3*time.Second, slack)
	nothingLeft(t, servers)
}

// locked makes a function out of f that runs under a lock.
func locked(lk *redlock.Locker, name string, f func() error) func(context.Context) error {
	return func(ctx context.Context) error {
		return lk.Do(ctx, name, func(context.Context, *redlock.Lock) error { return f() })
	}
}

var errOutOfPaper = errors.New("out of paper")

// underLock runs a function under a lock that succeeds, one that fails, and one
// that panics, and says what came of each.
func underLock(ctx context.Context, lk *redlock.Locker, name string) (said []string) {
	for _, f := range []func() error{
		func() error { return nil },
		func() error { return errOutOfPaper },
		func() error { panic("paper jam") },
	} {
		func() {
			defer func() {
				if p := recover(); p != nil {
					said = append(said, fmt.Sprint("panic: ", p))
				}
			}()
			err := locked(lk, name, f)(ctx)
			said = append(said, fmt.Sprint("error: ", err, ", ", errors.Is(err, errOutOfPaper)))
		}()
		// Whatever came of it, the lock is free again.
		l, err := lk.TryAcquire(ctx, name)
		if err != nil {
			return append(said, err.Error())
		}
		_ = l.Release(ctx)
	}
	return said
}

func TestUnderLock(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
	got := underLock(t.Context(), lk, "printer")
	want := []string{"error: <nil>, false", "error: out of paper, true", "panic: paper jam"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	nothingLeft(t, servers)
}
