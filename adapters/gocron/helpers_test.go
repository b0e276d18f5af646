package gocronredlock_test

import (
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// interval is that of all jobs. The tests begin halfway between two ticks.
const interval = 10 * time.Second

// inBubble runs a test in virtual time, with five nodes that have votes and a network on
// which no two requests take equally long.
func inBubble(t *testing.T, f func(t *testing.T, nodes *redistest.Bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		nodes := redistest.NewBubble(t, 5)
		if err := locker(t, nodes).WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range nodes.Len() {
			nodes.Path(i).SetDelay(time.Millisecond)
			nodes.Path(i).SetJitter(5 * time.Millisecond)
		}
		now := time.Now()
		time.Sleep(now.Truncate(interval).Add(3 * interval / 2).Sub(now))
		f(t, nodes)
	})
}

// locker is what one process has.
func locker(t *testing.T, nodes *redistest.Bubble) *redlock.Locker {
	t.Helper()
	lk, err := redlock.New(nodes.Clients(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lk.Close() })
	return lk
}

// every is a job at each tick, by the scheduler's own clock.
func every() gocron.JobDefinition { return gocron.CronJob("*/10 * * * * *", true) }

// late is a clock that is behind.
type late struct {
	clockwork.Clock
	by time.Duration
}

func (l late) Now() time.Time                  { return l.Clock.Now().Add(-l.by) }
func (l late) Since(t time.Time) time.Duration { return l.Now().Sub(t) }
func (l late) Until(t time.Time) time.Duration { return t.Sub(l.Now()) }

// schedule starts a scheduler whose clock is late, with a job named "job", until cleanup.
// The job must not run then: gocron waits for it in a busy loop, which stops the bubble's
// clock.
func schedule(t *testing.T, by time.Duration, how gocron.SchedulerOption, when gocron.JobDefinition, task gocron.Task, options ...gocron.JobOption) {
	t.Helper()
	s, err := gocron.NewScheduler(how, gocron.WithClock(late{clockwork.NewRealClock(), by}), gocron.WithLocation(time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewJob(when, task, append(options, gocron.WithName("job"))...); err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
}

// A diary records which scheduler has run which tick.
type diary struct {
	mu   sync.Mutex
	runs map[time.Time][]int
}

func (d *diary) note(who int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs == nil {
		d.runs = make(map[time.Time][]int)
	}
	tick := time.Now().Round(interval)
	d.runs[tick] = append(d.runs[tick], who)
}

// first is a moment before the first tick that was run.
func (d *diary) first() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := time.Now()
	for tick := range d.runs {
		if tick.Before(first) {
			first = tick
		}
	}
	return first.Add(-1)
}

// who returns the schedulers that have run each of the ticks after a moment, in order.
func (d *diary) who(after time.Time, ticks int) (runs [][]int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := range ticks {
		runs = append(runs, d.runs[after.Truncate(interval).Add(time.Duration(n+1)*interval)])
	}
	return runs
}

// A refusals has the errors with which runs were skipped.
type refusals struct {
	mu   sync.Mutex
	errs []error
}

func (r *refusals) listen() gocron.JobOption {
	return gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errs = append(r.errs, err)
	}))
}

// are fails the test unless there are some, and all of them are of one kind.
func (r *refusals) are(t *testing.T, kind error) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errs) == 0 {
		t.Error("no run was skipped")
	}
	for _, err := range r.errs {
		if !errors.Is(err, kind) {
			t.Errorf("skipped for %v, want %v", err, kind)
		}
	}
}
