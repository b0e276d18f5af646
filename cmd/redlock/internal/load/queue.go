package load

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
)

// A Queue is clients that wait for one name, each with a Locker of its own: callers of one Locker
// hand the lock over inside the process, which would not measure the network.
type Queue struct {
	Lockers []*redlock.Locker
	Name    string

	Waits     Histogram // from the call to the lock
	HandOvers Histogram // from the beginning of a release until the next one has it
	Took      time.Duration
	Faults

	changes sync.Mutex
	gave    time.Time // when the last holder began to release; zero: no holder yet
}

// Open makes n Lockers by calls of open, all at once. Those that were made are kept if others fail.
func (l *Queue) Open(n int, open func() (*redlock.Locker, error)) error {
	var opening sync.WaitGroup
	lockers, errs := make([]*redlock.Locker, n), make([]error, n)
	for i := range lockers {
		opening.Go(func() {
			lockers[i], errs[i] = open()
		})
	}
	opening.Wait()
	l.Lockers = slices.DeleteFunc(lockers, func(lk *redlock.Locker) bool { return lk == nil })
	return errors.Join(errs...)
}

// Settle acquires and releases names[i] once with Locker i, so that all are connected, and the nodes know the scripts:
// otherwise the first measurement would include that.
func (l *Queue) Settle(ctx context.Context, names []string) {
	var all sync.WaitGroup
	for i, locker := range l.Lockers {
		all.Go(func() {
			if lock, err := locker.Acquire(ctx, names[i]); err == nil {
				_ = lock.Release(context.Background())
			}
		})
	}
	all.Wait()
}

func (l *Queue) Close() {
	var closing sync.WaitGroup
	for _, locker := range l.Lockers {
		closing.Go(func() { locker.Close() })
	}
	closing.Wait()
}

// Run makes all clients wait for the lock, release it as soon as they have it, and wait again, until ctx ends.
func (l *Queue) Run(ctx context.Context) {
	var all sync.WaitGroup
	begin := time.Now()
	for _, locker := range l.Lockers {
		all.Go(func() {
			for ctx.Err() == nil {
				l.turn(ctx, locker)
			}
		})
	}
	all.Wait()
	l.Took = time.Since(begin)
}

func (l *Queue) turn(ctx context.Context, locker *redlock.Locker) {
	asked := time.Now()
	lock, err := locker.Acquire(ctx, l.Name)
	now := time.Now()
	switch {
	case err == nil:
	case ctx.Err() != nil && (!errors.Is(err, redlock.ErrNoQuorum) || explain.Unfinished(err)):
		l.Waits.Reach(now.Sub(asked)) // cut short by the end of the measurement
		return
	default:
		l.note(err)
		return
	}
	l.Waits.Add(now.Sub(asked))
	l.changes.Lock()
	if asked.Before(l.gave) {
		l.HandOvers.Add(now.Sub(l.gave))
	}
	l.gave = time.Now()
	l.changes.Unlock()
	if err := lock.Release(context.Background()); err != nil {
		l.note(err)
	}
}
