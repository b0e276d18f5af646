// Package asynqredlock shows asynq beside redlock, as functions to copy: tasks that must not run at the same time, and
// a scheduler on one machine of many. asynq calls a handler at least once for each task, in one Redis, and perhaps
// twice at the same time: it gives the task of a worker that was stopped to another one. docs/once.md says more.
package asynqredlock

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"
	"github.com/quorumlock/redlock"
)

// Exclusive returns a handler that runs tasks with the same name one at a time, on all machines together. If another
// task has the lock, its error is redlock.ErrHeld, and no worker waits: see Busy. In its last try a task waits for the
// lock, since asynq archives a task without tries whatever the error is. next gives l.Fence() to what it writes to, as
// with package fence. If the lock was lost, the task fails and is tried again.
func Exclusive(locker *redlock.Locker, name func(*asynq.Task) string, next func(context.Context, *asynq.Task, *redlock.Lock) error) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) (err error) {
		acquire := locker.TryAcquire
		tries, _ := asynq.GetRetryCount(ctx)
		if most, ok := asynq.GetMaxRetry(ctx); ok && tries >= most {
			acquire = locker.Acquire
		}
		l, err := acquire(ctx, name(task), redlock.AutoRenew())
		if err != nil {
			return err
		}
		defer func() { // also if next panics
			if released := l.Release(ctx); errors.Is(released, redlock.ErrLost) {
				err = errors.Join(err, released)
			}
		}()
		return next(l.Context(ctx), task, l)
	})
}

// Busy returns a configuration in which a task that did not get its lock, because another one has it or too few nodes
// answer, is tried again after wait, rounded to a second by asynq, as often as that takes: it is not counted as a
// failure of the task.
func Busy(c asynq.Config, wait time.Duration) asynq.Config {
	failure, delay := c.IsFailure, c.RetryDelayFunc
	c.IsFailure = func(err error) bool {
		return !noLock(err) && (failure == nil || failure(err))
	}
	c.RetryDelayFunc = func(n int, err error, task *asynq.Task) time.Duration {
		switch {
		case noLock(err):
			return wait
		case delay != nil:
			return delay(n, err, task)
		}
		return asynq.DefaultRetryDelayFunc(n, err, task)
	}
	return c
}

func noLock(err error) bool {
	return errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrNoQuorum)
}

// Schedule runs a scheduler on one machine of many, until ctx ends or the lock is lost, and returns why: call it in a
// loop on each machine. prepare returns a new scheduler with its tasks. One that was stopped may enqueue a task late,
// beside its successor: asynq.Unique drops it if the first one is still there, and a done-mark does always.
func Schedule(ctx context.Context, locker *redlock.Locker, prepare func() (*asynq.Scheduler, error)) error {
	return locker.Do(ctx, "asynq-scheduler", func(ctx context.Context, _ *redlock.Lock) error {
		scheduler, err := prepare()
		if err != nil {
			return err
		}
		if err := scheduler.Start(); err != nil {
			return err
		}
		defer scheduler.Shutdown()
		<-ctx.Done()
		return context.Cause(ctx)
	})
}
