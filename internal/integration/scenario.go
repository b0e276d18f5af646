package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/quorumlock/redlock"
)

// Two uses of a lock. Each is a function over any Locker, so that it serves as an example, and as a
// test on real servers.

// NineWorkers has nine workers call Acquire at the same moment. It returns the locks that they got, which should be
// one, and the errors of the others when they then try once more: these name the holder's token.
func NineWorkers(ctx context.Context, lk *redlock.Locker, name string) (winners []*redlock.Lock, losers []error) {
	waiting, decided := context.WithCancel(ctx)
	defer decided()
	locks := make([]*redlock.Lock, 9)
	var all sync.WaitGroup
	for i := range locks {
		all.Go(func() {
			// Not TryAcquire: nine at once, in nine processes, may split the votes so that none has a majority,
			// and one has to try again.
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

// Holder returns the token that a quorum of nodes names in err as the holder's; "": no quorum does.
func Holder(err error) string {
	var q *redlock.QuorumError
	if !errors.Is(err, redlock.ErrHeld) || !errors.As(err, &q) {
		return ""
	}
	votes := map[string]int{}
	for _, n := range q.Nodes() {
		if n.Outcome == redlock.OutcomeHeld {
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

// locked returns a function that calls f while it holds the lock with this name, and returns the error of Do.
func locked(lk *redlock.Locker, name string, f func() error) func(context.Context) error {
	return func(ctx context.Context) error {
		return lk.Do(ctx, name, func(context.Context, *redlock.Lock) error { return f() })
	}
}

var errOutOfPaper = errors.New("out of paper")

// UnderLock runs three functions under a lock: one succeeds, one fails and one panics. It returns the result of each as
// text. If the lock is not free after one, the last text is the error of TryAcquire, and the others do not run.
func UnderLock(ctx context.Context, lk *redlock.Locker, name string) (said []string) {
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
		// Whatever the result is, the lock is free again.
		l, err := lk.TryAcquire(ctx, name)
		if err != nil {
			return append(said, err.Error())
		}
		_ = l.Release(ctx)
	}
	return said
}
