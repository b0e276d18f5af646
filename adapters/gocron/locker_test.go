package gocronredlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/quorumlock/redlock"
	gocronredlock "github.com/quorumlock/redlock/adapters/gocron"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestOncePerTick: five schedulers and a job that takes no time. The last two cases show that the
// job runs twice without MinHold.
func TestOncePerTick(t *testing.T) {
	ticks := need.Sized(6, 12, 12)
	started := func(after time.Duration) func(int) gocron.JobDefinition { // one after another
		return func(n int) gocron.JobDefinition {
			time.Sleep(time.Duration(n) * after)
			return gocron.DurationJob(interval)
		}
	}
	same := func(int) gocron.JobDefinition { return every() }
	for _, test := range []struct {
		name    string
		apart   time.Duration // each clock from the next
		when    func(int) gocron.JobDefinition
		minHold time.Duration
		once    bool
	}{
		{"clocks agree", 0, same, 0, true},
		{"clocks 120 ms apart", 120 * time.Millisecond, same, 0, true},
		{"durations", 0, started(time.Second / 2), interval * 9 / 10, true},
		{"clocks apart, no MinHold", 120 * time.Millisecond, same, -1, false},
		{"durations, short MinHold", 0, started(time.Second / 2), time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
				var d diary
				var skipped refusals
				begin := time.Now()
				for n := range 5 {
					locks := gocronredlock.NewLocker(locker(t, nodes), &gocronredlock.Options{MinHold: test.minHold})
					schedule(t, time.Duration(n)*test.apart, gocron.WithDistributedLocker(locks), test.when(n),
						gocron.NewTask(func() { d.note(n) }), skipped.listen())
				}
				time.Sleep(time.Until(begin.Add(time.Duration(ticks+1) * interval)))
				all := d.who(d.first(), ticks)
				once, runs := 0, 0
				for _, who := range all {
					if runs += len(who); len(who) == 1 {
						once++
					}
				}
				t.Logf("%d runs at %d ticks", runs, ticks)
				switch {
				case test.once && once != ticks:
					t.Errorf("%d of %d ticks have one run: %v", once, ticks, all)
				case !test.once && runs < 2*ticks:
					t.Errorf("%d runs at %d ticks: what the others are about does not happen", runs, ticks)
				}
				if test.once {
					skipped.are(t, redlock.ErrHeld)
				}
			})
		})
	}
}

// TestMinHold: a job that takes no time holds its lock for MinHold, and half a second for a late call, and no longer.
func TestMinHold(t *testing.T) {
	for _, test := range []struct {
		name    string
		minHold time.Duration
		acquire []redlock.AcquireOption
		closed  bool // the process ends with the job
		held    time.Duration
	}{
		{"the process ends", 4 * time.Second, nil, true, 4500 * time.Millisecond},
		{"longer than the TTL", 4 * time.Second, []redlock.AcquireOption{redlock.TTL(time.Second)}, true, 4500 * time.Millisecond},
		{"longer than the set's MaxTTL", 20 * time.Second, nil, false, 20500 * time.Millisecond},
		{"longer than MaxHold", 9 * time.Second, []redlock.AcquireOption{redlock.MaxHold(3 * time.Second)}, false, 3 * time.Second},
		{"as long as the job", -1, nil, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
				mine := locker(t, nodes)
				locks := gocronredlock.NewLocker(mine, &gocronredlock.Options{MinHold: test.minHold, Acquire: test.acquire})
				other := gocronredlock.NewLocker(locker(t, nodes), &gocronredlock.Options{MinHold: -1})
				l, err := locks.Lock(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				until := time.Now().Add(test.held)
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				if test.closed {
					_ = mine.Close()
				}
				time.Sleep(time.Until(until) - 50*time.Millisecond)
				if _, err := other.Lock(t.Context(), "job"); test.held > 0 && !errors.Is(err, redlock.ErrHeld) {
					t.Errorf("before the end: %v", err)
				} else if err == nil {
					return
				}
				time.Sleep(time.Until(until) + 50*time.Millisecond)
				if _, err := other.Lock(t.Context(), "job"); err != nil {
					t.Errorf("after the end: %v", err)
				}
			})
		})
	}
}

// TestLongJob: a job that takes longer than the interval and the TTL runs once at a time.
func TestLongJob(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		var inside, runs atomic.Int32
		var skipped refusals
		for range 3 {
			locks := gocronredlock.NewLocker(locker(t, nodes), nil)
			schedule(t, 0, gocron.WithDistributedLocker(locks), every(), gocron.NewTask(func() {
				if n := inside.Add(1); n > 1 {
					t.Errorf("%d runs at once", n)
				}
				time.Sleep(35 * time.Second)
				inside.Add(-1)
				runs.Add(1)
			}), skipped.listen())
		}
		time.Sleep(282 * time.Second)               // not into a run: see schedule
		if got := runs.Load(); got < 6 || got > 7 { // every fourth tick
			t.Errorf("%d runs", got)
		}
		skipped.are(t, redlock.ErrHeld)
	})
}

// TestSchedulerDies: in the middle of a run. Another one runs the job when the lock has
// expired, and not before.
func TestSchedulerDies(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		var d diary
		begin := time.Now()
		long := 2 * interval
		if _, err := locker(t, nodes).Change(t.Context(), redlock.Change{MaxTTL: &long}, nil); err != nil {
			t.Fatal(err)
		}
		dying, err := redlock.New(nodes.Clients(), &redlock.Options{TTL: long})
		if err != nil {
			t.Fatal(err)
		}
		dead := make(chan struct{})
		schedule(t, 0, gocron.WithDistributedLocker(gocronredlock.NewLocker(dying, nil)), every(), gocron.NewTask(func() {
			d.note(1)
			<-dead
		}))
		schedule(t, 50*time.Millisecond, gocron.WithDistributedLocker(gocronredlock.NewLocker(locker(t, nodes), nil)), every(), gocron.NewTask(func() { d.note(2) }))
		time.Sleep(interval) // into the first run
		_ = dying.Close()    // as if the process had ended: the lock is left to its TTL
		time.Sleep(9 * interval)
		close(dead)
		time.Sleep(time.Second)
		// The lock was last renewed before the second tick, and lasts until after the third.
		if got := fmt.Sprint(d.who(begin, 6)); got != "[[1] [] [] [2] [2] [2]]" && got != "[[1] [] [2] [2] [2] [2]]" {
			t.Errorf("runs: %s", got)
		}
	})
}

// TestLost: the nodes are away for longer than a lock lives. The job is told in time, and
// may stop; there is another run when they are back.
func TestLost(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		var inside, runs atomic.Int32
		var fence atomic.Int64
		lost, over := make(chan error, 100), make(chan struct{})
		for range 2 {
			locks := gocronredlock.NewLocker(locker(t, nodes), nil)
			schedule(t, 0, gocron.WithDistributedLocker(locks), every(),
				gocron.NewTask(locks.Task("job", func(ctx context.Context, l *redlock.Lock) error {
					if n := inside.Add(1); n > 1 {
						t.Errorf("%d runs at once", n)
					}
					defer inside.Add(-1)
					if was := fence.Swap(l.Fence()); was >= l.Fence() {
						t.Errorf("fence %d comes after %d", l.Fence(), was)
					}
					runs.Add(1)
					select {
					case <-ctx.Done():
						lost <- context.Cause(ctx)
					case <-over:
					}
					return nil
				})))
		}
		time.Sleep(interval) // into the first run
		for i := range 3 {
			nodes.Hang(i)
		}
		away := time.Now()
		if err := <-lost; !errors.Is(err, redlock.ErrLost) {
			t.Errorf("the job was told %v", err)
		}
		if took := time.Since(away); took > 10*time.Second {
			t.Errorf("told after %v, later than another could have the lock", took)
		}
		time.Sleep(2 * interval)
		if got := runs.Load(); got != 1 {
			t.Errorf("%d runs without a quorum", got-1)
		}
		for i := range 3 {
			nodes.Resume(i)
		}
		time.Sleep(2 * interval)
		if got := runs.Load(); got != 2 {
			t.Errorf("%d runs when the nodes are back, want 1 that goes on", got-1)
		}
		close(over)
		time.Sleep(time.Second)
	})
}

// TestTaskWithoutLock: a job of another name is not run without a lock.
func TestTaskWithoutLock(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		locks := gocronredlock.NewLocker(locker(t, nodes), nil)
		said := make(chan error, 100)
		schedule(t, 0, gocron.WithDistributedLocker(locks), every(),
			gocron.NewTask(func(ctx context.Context) {
				said <- locks.Task("another", func(context.Context, *redlock.Lock) error { return nil })(ctx)
			}))
		if err := <-said; err == nil {
			t.Error("it has run")
		}
		time.Sleep(time.Second) // not into the release: see schedule
	})
}
