package redlock

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// A sleeper is the clock of a host that has been suspended: its monotonic clock,
// and with it every timer, has stood still, and its wall clock has not.
type sleeper struct {
	start time.Time // a reading with a monotonic part, which those in a bubble have not
	begin time.Time // the same instant in the bubble
	slept atomic.Int64
}

func (c *sleeper) Now() time.Time {
	d := time.Duration(c.slept.Load())
	return asleep(c.start.Add(time.Since(c.begin)+d), d)
}

// inBubble runs f in a bubble, with such a clock.
func inBubble(t *testing.T, f func(*testing.T, *sleeper)) {
	clock := &sleeper{start: time.Now()}
	bubble(t, func(t *testing.T) {
		clock.begin = time.Now()
		f(t, clock)
	})
}

func (c *sleeper) sleep(d time.Duration) { c.slept.Add(int64(d)) }

// TestSuspended: a host that was suspended does not rely on its lock. A check shows the end at
// once, and a context is done at the next look at all locks: the timers for the end have most of
// their time left.
func TestSuspended(t *testing.T) {
	inBubble(t, func(t *testing.T, clock *sleeper) {
		var lost atomic.Int32
		lk := newModels(3).locker(t, &Options{Clock: clock, Hooks: &Hooks{Lost: func(*Lock, error) { lost.Add(1) }}})
		asks, waits, alone := acquired(t, lk, "asks"), acquired(t, lk, "waits"), acquired(t, lk, "alone")
		asking, waiting := asks.Context(t.Context()), waits.Context(t.Context())
		pass(time.Second)
		if err := asking.Err(); err != nil {
			t.Fatal(err)
		}
		clock.sleep(time.Hour)
		if err := asking.Err(); err != context.Canceled || !errors.Is(context.Cause(asking), ErrLost) {
			t.Errorf("asked after an hour's sleep: %v, because of %v", err, context.Cause(asking))
		}
		select {
		case <-waiting.Done():
			t.Error("the end was reported before the look, which this tests")
		default:
		}
		pass(lk.opts.look())
		select {
		case <-waiting.Done():
		default:
			t.Errorf("not told within %v after an hour's sleep", lk.opts.look())
		}
		if err := alone.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("released after an hour's sleep: %v", err)
		}
		if n := lost.Load(); n != 3 {
			t.Errorf("the hook was told of %d locks", n)
		}
	})
}

// TestNobodyLooksInVain: when the last watched lock has ended, the scheduler stops looking; it
// looks again with the next one.
func TestNobodyLooksInVain(t *testing.T) {
	inBubble(t, func(t *testing.T, clock *sleeper) {
		lk := newModels(3).locker(t, &Options{Clock: clock})
		for range 3 {
			l := acquired(t, lk, "a")
			ctx := l.Context(t.Context())
			pass(2 * time.Second)
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			_, looks := lk.renewals.Len()
			if ctx.Err() == nil || looks {
				t.Errorf("the context says %v; looks no more: %v", ctx.Err(), !looks)
			}
		}
		l := acquired(t, lk, "a")
		ctx := l.Context(t.Context())
		clock.sleep(time.Hour)
		pass(2 * lk.opts.look())
		select {
		case <-ctx.Done():
		default:
			t.Error("not told after an hour's sleep")
		}
	})
}

// TestAllContextsAtOnce: a lock's contexts are ended one after the other, and none of them reports
// meanwhile that the lock has not ended.
func TestAllContextsAtOnce(t *testing.T) {
	lk := newModels(3).locker(t, &Options{TTL: 100 * time.Millisecond})
	l, err := lk.TryAcquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	all := make([]context.Context, 20_000)
	for i := range all {
		all[i] = l.Context(t.Context())
	}
	for left(l.Until(), time.Now()) > 0 {
		runtime.Gosched()
	}
	for i, ctx := range all {
		if ctx.Err() == nil {
			t.Fatalf("context %d says that the lock has not ended", i)
		}
	}
}

type tell struct{}

// TestContextsBelow: contexts derived from a lock's context end with it, however the end was found out.
func TestContextsBelow(t *testing.T) {
	inBubble(t, func(t *testing.T, clock *sleeper) {
		lk := newModels(3).locker(t, &Options{Clock: clock})
		l := acquired(t, lk, "a")
		ctx := l.Context(context.WithValue(t.Context(), tell{}, "kept"))
		below, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		if ctx.Value(tell{}) != "kept" {
			t.Error("the parent's value is gone")
		}
		clock.sleep(time.Minute)
		_ = ctx.Err()
		<-below.Done()
		if !errors.Is(context.Cause(below), ErrLost) {
			t.Errorf("ended because of %v", context.Cause(below))
		}
	})
}
