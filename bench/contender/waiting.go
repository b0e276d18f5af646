package contender

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/sim"
)

// A Waiter is a Locker that waits for a name until it has it or ctx ends.
type Waiter interface {
	Locker
	Wait(ctx context.Context, name string) (Lock, error)
}

// Tries is the number of a Waiter's attempts; 0: not known.
func Tries(w Waiter) int64 {
	if r, ok := w.(*redlockWaiter); ok {
		return r.tries.Load()
	}
	return 0
}

const retryDelay = 10 * time.Millisecond

// Waiting returns the contenders that can wait.
func Waiting() []Contender {
	return []Contender{
		{Name: Reference, Module: redsyncModule, Note: "WithRetryDelay(10ms), and as many tries as it takes", Open: func(c Config) (Locker, error) {
			return redsyncWaiter{openRedsync(c, redsync.WithRetryDelay(retryDelay), redsync.WithTries(math.MaxInt32))}, nil
		}},
		{Name: ours.Name, Module: ours.Module, Note: ours.Note, Open: func(c Config) (Locker, error) {
			w := &redlockWaiter{tries: &tokens{}}
			var opts redlock.Options
			replace.In(&opts, replace.Parts{Host: w.tries})
			l, err := redlockWith("", "", opts).Open(c)
			if err != nil {
				return nil, err
			}
			w.redlockLocker = l.(*redlockLocker)
			return w, nil
		}},
	}
}

type redsyncWaiter struct{ *redsyncLocker }

func (w redsyncWaiter) Wait(ctx context.Context, name string) (Lock, error) {
	m := w.rs.NewMutex(name, w.options...)
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return (*redsyncLock)(m), nil
}

type redlockWaiter struct {
	*redlockLocker
	tries *tokens
}

func (w *redlockWaiter) Wait(ctx context.Context, name string) (Lock, error) {
	lock, err := w.Acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// tokens is chance, and counts the tokens: each attempt has one.
type tokens struct {
	sim.Chance
	atomic.Int64
}

func (t *tokens) Token() string {
	t.Add(1)
	return t.Chance.Token()
}
