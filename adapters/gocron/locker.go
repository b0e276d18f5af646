// Package gocronredlock makes a job of gocron run once, however many schedulers there are.
//
//	locks := gocronredlock.NewLocker(locker, nil)
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locks))
//	...
//	s.NewJob(gocron.CronJob("*/5 * * * *", false),
//		gocron.NewTask(locks.Task("report", report)),
//		gocron.WithName("report"))
//
// Each run has a lock of its own on the job's name. The schedulers ask for it when their clocks say that it is
// time; the first one gets it, and the others skip this run.
//
// # What a lock per run needs
//
// Clocks differ. A job that takes a millisecond would have released its lock when a scheduler whose
// clock is ten milliseconds late asks for it, and would run again. So a lock is held for
// [Options].MinHold, also when the job is over before. It must be longer than the schedulers'
// clocks may be apart, and shorter than the time between two runs.
//
// A gocron.DurationJob counts from when its scheduler was started, so there it is no
// matter of clocks: two schedulers that were started two minutes apart stay two minutes
// apart. Give the job a gocron.WithStartAt that is the same for all, or set MinHold to
// most of the interval.
//
// A job without a name is called after its function, and all closures of one function are
// called the same: use gocron.WithName.
//
// # What the job learns
//
// A lock is renewed as long as the job runs. If it ends before the job (too few nodes answered for
// a TTL, or MaxHold), another scheduler may begin the next run, and gocron has no way to tell the
// job. [Locker.Task] does: it gives the job a context that ends with the lock, and the lock, whose
// fence a resource can check.
//
// A scheduler that dies with a job leaves its lock for what is left of the TTL. The run
// is not made up for: the next one is at the next tick. [Elector] is the other way to do
// it, with one scheduler that runs all jobs.
package gocronredlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/quorumlock/redlock"
)

// Options tune a Locker. Nil, or a zero field, means the default.
type Options struct {
	// MinHold is how long a lock is held at least, so that a scheduler whose clock is
	// late finds it held although the job was short. Default 500ms; negative: only as
	// long as the job runs.
	//
	// A call to Lock takes half of it at most, and never more than 500ms. A lock is held for so much longer, so
	// that a call which began within MinHold has returned before the release. Call [redlock.Locker.WaitReady]
	// before the first job is due, and no call has to connect.
	//
	// When the job is over, the nodes keep the lock for the rest of it, also if the process ends. If MinHold is
	// about as long as the set's MaxTTL, or longer, that takes this process: without it the lock
	// has what is left of its TTL, two thirds at least.
	MinHold time.Duration

	// Acquire is for each lock: [redlock.TTL], or [redlock.MaxHold] for a job that
	// may hang. All locks are [redlock.AutoRenew].
	Acquire []redlock.AcquireOption
}

// A Locker is a [gocron.Locker].
type Locker struct {
	locker  *redlock.Locker
	options []redlock.AcquireOption
	kept    []redlock.AcquireOption // and hold, for which the nodes keep the lock

	patience time.Duration // of a call; 0: a NodeTimeout
	hold     time.Duration // the least of a lock: MinHold, and the patience of a call that began within it

	mu      sync.Mutex
	running map[string]*redlock.Lock // by the job's name
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker over locker, which stays the caller's: close it when the
// scheduler was shut down.
func NewLocker(locker *redlock.Locker, opts *Options) *Locker {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.MinHold == 0 {
		o.MinHold = 500 * time.Millisecond
	}
	k := &Locker{locker: locker, options: renewed(o.Acquire), running: make(map[string]*redlock.Lock)}
	if o.MinHold > 0 {
		k.patience = min(o.MinHold/2, 500*time.Millisecond)
		k.hold = o.MinHold + k.patience
	}
	k.kept = k.options
	if k.hold > 0 {
		k.kept = append([]redlock.AcquireOption{redlock.MinHold(k.hold)}, k.options...)
	}
	return k
}

func renewed(options []redlock.AcquireOption) []redlock.AcquireOption {
	return append(options[:len(options):len(options)], redlock.AutoRenew())
}

// Lock takes the lock for a run, or returns the reason why there is none: redlock.ErrHeld if
// another scheduler has it, redlock.ErrNoQuorum if too few nodes answer. gocron skips the
// run then, and tells gocron.AfterLockError.
func (k *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	// A call that takes longer could get the lock after its release, and the job would run twice.
	if k.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, k.patience)
		defer cancel()
	}
	var release time.Time // not before this; zero: the nodes keep the lock for long enough
	l, err := k.locker.TryAcquire(ctx, key, k.kept...)
	if err != nil && k.hold > 0 && !errors.As(err, new(*redlock.QuorumError)) {
		// The nodes may not keep it for so long: MinHold is over the set's MaxTTL, or over MaxHold.
		l, err = k.locker.TryAcquire(ctx, key, k.options...)
		release = time.Now().Add(k.hold)
	}
	if err != nil {
		return nil, fmt.Errorf("gocronredlock: job %q: %w", key, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running[key] = l
	return &run{k, key, l, release}, nil
}

// Task returns an argument for gocron.NewTask, for a job that must know its lock: its context ends
// when gocron's does, or when the lock does. The name is the one that gocron.WithName gives to the
// job.
func (k *Locker) Task(name string, job func(context.Context, *redlock.Lock) error) func(context.Context) error {
	return func(ctx context.Context) error {
		k.mu.Lock()
		l := k.running[name]
		k.mu.Unlock()
		if l == nil {
			return fmt.Errorf("gocronredlock: job %q runs without a lock: it has another name, or its scheduler another Locker", name)
		}
		ctx, cancel := context.WithCancel(l.Context(ctx))
		defer cancel()
		return job(ctx, l)
	}
}

// A run is one run's lock.
type run struct {
	locker  *Locker
	key     string
	lock    *redlock.Lock
	release time.Time // Unlock waits for it
}

// Unlock releases the lock, from when MinHold is over. The error is redlock.ErrLost
// if it had ended before; gocron does not look at it.
func (r *run) Unlock(ctx context.Context) error {
	r.locker.mu.Lock()
	if r.locker.running[r.key] == r.lock {
		delete(r.locker.running, r.key)
	}
	r.locker.mu.Unlock()
	if rest := time.Until(r.release); rest > 0 {
		time.AfterFunc(rest, func() { _ = r.lock.Release(context.WithoutCancel(ctx)) })
		return nil
	}
	return r.lock.Release(ctx)
}
