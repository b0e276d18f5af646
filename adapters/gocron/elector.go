package gocronredlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/quorumlock/redlock"
)

// ErrNotLeader says that another scheduler runs the job, or, for a moment, none.
var ErrNotLeader = errors.New("gocronredlock: not the leader")

// An Elector is a [gocron.Elector] for *leader election*: of all schedulers whose Electors have the same
// name, at most one is the leader at any moment, and runs all jobs.
//
// The leader holds a lock, which is renewed until [Elector.Close] or until it is lost; the
// others wait for it in a queue. When the leader has resigned, the next one leads a moment later; when it
// has died, after its TTL: no scheduler runs the ticks in that time. A leader whose clock is ahead may run a
// tick, and resign; its successor may run the same tick when its own clock gets there. No election prevents
// that; only a job that knows which ticks have run can.
type Elector struct {
	locker  *redlock.Locker
	name    string
	options []redlock.AcquireOption

	term  atomic.Pointer[term]
	why   atomic.Pointer[error] // the last error, if there can be no election
	stop  context.CancelFunc
	ended chan struct{}
}

var _ gocron.Elector = (*Elector)(nil)

// A term is the time for which a scheduler is the leader.
type term struct {
	ctx  context.Context // ends with it
	lock *redlock.Lock
}

// NewElector returns an Elector that stands for election until it is closed. With
// [redlock.MaxHold] among the options a leader resigns every now and then. All locks are
// [redlock.AutoRenew].
func NewElector(locker *redlock.Locker, name string, options ...redlock.AcquireOption) *Elector {
	ctx, stop := context.WithCancel(context.Background())
	e := &Elector{locker: locker, name: name, options: options[:len(options):len(options)], stop: stop, ended: make(chan struct{})}
	go e.stand(ctx)
	return e
}

// stand tries to become the leader again and again.
func (e *Elector) stand(ctx context.Context) {
	defer close(e.ended)
	for ctx.Err() == nil {
		err := e.locker.Do(ctx, e.name, e.lead, e.options...)
		if err == nil || errors.Is(err, redlock.ErrLost) {
			continue
		}
		e.why.Store(&err)
		if errors.Is(err, redlock.ErrClosed) {
			return
		}
		// An error that waiting does not change: a bad option, or a key of this name that is no lock.
		// An operator may delete the key.
		pause := time.NewTimer(time.Second)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

func (e *Elector) lead(ctx context.Context, l *redlock.Lock) error {
	e.why.Store(nil)
	e.term.Store(&term{ctx, l})
	defer e.term.Store(nil)
	<-ctx.Done()
	return nil
}

// current returns the term of the leader, or the reason why there is none here. It checks the clock: a process
// that was stopped for longer than its lock lasts is told at once.
func (e *Elector) current() (*term, error) {
	t, why := e.term.Load(), e.why.Load()
	switch {
	case t != nil && t.ctx.Err() == nil:
		return t, nil
	case t != nil:
		return nil, fmt.Errorf("%w any more: %w", ErrNotLeader, context.Cause(t.ctx))
	case why != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotLeader, *why)
	}
	return nil, ErrNotLeader
}

// IsLeader returns nil if this scheduler is to run the job, else an error that is
// [ErrNotLeader]. It sends nothing, so it takes no time.
func (e *Elector) IsLeader(context.Context) error {
	_, err := e.current()
	return err
}

// Task returns an argument for gocron.NewTask, for a job that must know how long its scheduler is the leader:
// its context ends when gocron's does, or when the lock does.
// All jobs of a term have the same lock, and the same fence.
func (e *Elector) Task(job func(context.Context, *redlock.Lock) error) func(context.Context) error {
	return func(ctx context.Context) error {
		t, err := e.current()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(t.lock.Context(ctx))
		defer cancel()
		return job(ctx, t.lock)
	}
}

// Close resigns, so that the next one leads. Shut the scheduler down before it, and close
// the redlock.Locker after it.
func (e *Elector) Close() error {
	e.stop()
	<-e.ended
	return nil
}
