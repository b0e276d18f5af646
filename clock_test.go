package redlock

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/reading"
)

// TestValidFor: a lock may be relied on for the TTL less the drift, counted from before it was asked for; never past
// that.
func TestValidFor(t *testing.T) {
	const ms = time.Millisecond
	t0 := time.Now()
	for _, tt := range []struct {
		name             string
		after            time.Duration
		ttl, drift, want time.Duration
	}{
		{"at once", 0, 10 * time.Second, 102 * ms, 9898 * ms},
		{"half a round trip is ours, too", 40 * ms, 500 * ms, 7 * ms, 453 * ms},
		{"to the last nanosecond", 93*ms - 1, 100 * ms, 7 * ms, 1},
		{"exactly the end", 93 * ms, 100 * ms, 7 * ms, 0},
		{"past it", 305 * ms, 100 * ms, 3 * ms, -208 * ms},
		{"drift as long as the TTL", 0, 2 * ms, 2 * ms, 0},
	} {
		if got := validFor(t0, t0.Add(tt.after), tt.ttl, tt.drift); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestElapsedTakesTheLarger: a suspended host stops the monotonic clock, a
// corrected one sets back the wall clock.
func TestElapsedTakesTheLarger(t *testing.T) {
	from := time.Now()
	if got := elapsed(from, from.Add(time.Second)); got != time.Second {
		t.Errorf("both clocks: %v", got)
	}
	if got := elapsed(from.Round(0), from.Add(time.Second).Round(0)); got != time.Second {
		t.Errorf("wall clock only: %v", got)
	}
	slept := reading.Asleep(from.Add(time.Hour), 59*time.Minute)
	if got := slept.Sub(from); got != time.Minute {
		t.Fatalf("the monotonic clock went on by %v: the test does not test what it means to", got)
	}
	if got := elapsed(from, slept); got != time.Hour {
		t.Errorf("a host that slept: %v", got)
	}
	if got := left(from.Add(30*time.Minute), slept); got != -30*time.Minute {
		t.Errorf("a host that slept has %v left", got)
	}
	setBack := reading.Asleep(from.Add(-time.Hour), -time.Hour-time.Second)
	if got := elapsed(from, setBack); got != time.Second {
		t.Errorf("a clock that was set back: %v", got)
	}
	if got, want := left(from.Add(time.Second), from.Add(3*time.Second)), -2*time.Second; got != want {
		t.Errorf("left %v, want %v", got, want)
	}
}

// TestDefaultNodeTimeoutAndDrift: what Options leave out follows from the TTL.
func TestDefaultNodeTimeoutAndDrift(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct{ ttl, timeout, drift time.Duration }{
		{time.Minute, 500 * ms, 602 * ms},
		{10 * time.Second, 500 * ms, 102 * ms},
		{2 * time.Second, 200 * ms, 22 * ms},
		{500 * ms, 50 * ms, 7 * ms}, // a link with a round trip of 30 ms must get through (C10)
		{200 * ms, 50 * ms, 4 * ms},
		{60 * ms, 30 * ms, 2600 * time.Microsecond},
	} {
		if got := defaultNodeTimeout(tt.ttl); got != tt.timeout {
			t.Errorf("TTL %v: NodeTimeout %v, want %v", tt.ttl, got, tt.timeout)
		}
		if got := defaultDrift(tt.ttl); got != tt.drift {
			t.Errorf("TTL %v: drift %v, want %v", tt.ttl, got, tt.drift)
		}
	}
}

// FuzzValidFor: validity is never negative time early, never longer than TTL
// less drift, and falls as time passes.
func FuzzValidFor(f *testing.F) {
	f.Add(int64(10e9), int64(102e6), int64(1e6), int64(5e6))
	f.Fuzz(func(t *testing.T, ttl, drift, first, second int64) {
		clamp := func(v int64) time.Duration { return time.Duration(uint64(v) % uint64(24*time.Hour)) }
		t0 := time.Now()
		t1 := t0.Add(clamp(first))
		t2 := t1.Add(clamp(second))
		v1, v2 := validFor(t0, t1, clamp(ttl), clamp(drift)), validFor(t0, t2, clamp(ttl), clamp(drift))
		if v1 > clamp(ttl)-clamp(drift) {
			t.Errorf("valid for %v of TTL %v less %v", v1, clamp(ttl), clamp(drift))
		}
		if v1-v2 != t2.Sub(t1) {
			t.Errorf("%v passed, and validity went from %v to %v", t2.Sub(t1), v1, v2)
		}
	})
}

// A sleeper is the clock of a host that has been suspended: its monotonic clock,
// and with it every timer, has stood still, and its wall clock has not.
type sleeper struct{ slept atomic.Int64 }

func (c *sleeper) Now() time.Time {
	now := time.Now()
	return reading.Of(now.Add(time.Duration(c.slept.Load())), now)
}

// inBubble runs f in a bubble, with such a clock.
func inBubble(t *testing.T, f func(*testing.T, *sleeper)) {
	bubble(t, func(t *testing.T) { f(t, new(sleeper)) })
}

func (c *sleeper) sleep(d time.Duration) { c.slept.Add(int64(d)) }

// TestSuspendedHostDoesNotRelyOnItsLock: a host that was suspended does not rely on its lock. A check shows the end at
// once, and a context is done at the next look at all locks: the timers for the end have most of
// their time left.
func TestSuspendedHostDoesNotRelyOnItsLock(t *testing.T) {
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
		pass(lk.settings().lookEvery())
		select {
		case <-waiting.Done():
		default:
			t.Errorf("not told within %v after an hour's sleep", lk.settings().lookEvery())
		}
		if err := alone.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("released after an hour's sleep: %v", err)
		}
		synctest.Wait()
		if n := lost.Load(); n != 3 {
			t.Errorf("the hook was told of %d locks", n)
		}
	})
}

// TestEachVerbNoticesASuspension: a host is suspended for longer than a lock lives, while the lock is held or is being
// acquired. No verb relies on the lock, and it is not renewed.
func TestEachVerbNoticesASuspension(t *testing.T) {
	for verb, call := range map[string]func(context.Context, *Lock) error{
		"Extend":  func(ctx context.Context, l *Lock) error { return l.Extend(ctx) },
		"Release": func(ctx context.Context, l *Lock) error { return l.Release(ctx) },
		"Detach":  func(_ context.Context, l *Lock) error { _, err := l.Detach(); return err },
	} {
		t.Run(verb, func(t *testing.T) {
			inBubble(t, func(t *testing.T, clock *sleeper) {
				l := acquired(t, newModels(3).locker(t, &Options{Clock: clock}), "a")
				clock.sleep(time.Hour)
				if err := call(t.Context(), l); !errors.Is(err, ErrLost) {
					t.Errorf("got %v, want ErrLost", err)
				}
			})
		})
	}
	t.Run("a renewal", func(t *testing.T) {
		inBubble(t, func(t *testing.T, clock *sleeper) {
			ms := newModels(3)
			acquired(t, ms.locker(t, &Options{Clock: clock}), "a", AutoRenew())
			clock.sleep(time.Hour)
			pass(15 * time.Second)
			ms.empty(t)
		})
	})
	t.Run("TryAcquire", func(t *testing.T) {
		inBubble(t, func(t *testing.T, clock *sleeper) {
			ms := newModels(3)
			ms[2].slow(time.Millisecond)
			lk := ms.locker(t, &Options{Clock: clock, Quorum: 3})
			ms[2].spy = func(*arena.Call) { clock.sleep(time.Hour) }
			if l, err := lk.TryAcquire(t.Context(), "a"); err == nil {
				t.Errorf("it has a lock until %v", l.Until())
			}
		})
	})
}

// TestEndIsToldSoonAfterASuspension: code that waits for Done is told at most a tenth of the TTL after the host has resumed,
// and at most half a second. It may take 50 ms with any TTL.
func TestEndIsToldSoonAfterASuspension(t *testing.T) {
	for ttl, most := range map[time.Duration]time.Duration{
		time.Minute: 500 * time.Millisecond, 10 * time.Second: 500 * time.Millisecond,
		2 * time.Second: 200 * time.Millisecond, 200 * time.Millisecond: 50 * time.Millisecond,
	} {
		inBubble(t, func(t *testing.T, clock *sleeper) {
			ctx := acquired(t, newModels(3).locker(t, &Options{Clock: clock, TTL: ttl}), "a").Context(t.Context())
			pass(ttl / 7)
			clock.sleep(time.Hour)
			pass(most)
			select {
			case <-ctx.Done():
			default:
				t.Errorf("TTL %v: not told %v after the host has resumed", ttl, most)
			}
		})
	}
}

// TestSchedulerLooksWhileThereIsALock: when the last watched lock has ended, the scheduler stops looking; it
// looks again with the next one.
func TestSchedulerLooksWhileThereIsALock(t *testing.T) {
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
		pass(2 * lk.settings().lookEvery())
		select {
		case <-ctx.Done():
		default:
			t.Error("not told after an hour's sleep")
		}
	})
}

// TestContextsAgreeThatTheLockHasEnded: a lock's contexts are ended one after the other, and none of them reports
// meanwhile that the lock has not ended.
func TestContextsAgreeThatTheLockHasEnded(t *testing.T) {
	lk := newModels(3).locker(t, &Options{TTL: 100 * time.Millisecond})
	l, err := lk.TryAcquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	all := make([]context.Context, 20_000)
	for i := range all {
		all[i] = l.Context(t.Context())
	}
	time.Sleep(time.Until(l.Until()) - 10*time.Millisecond)
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

// TestDerivedContextsEndWithTheLock: contexts derived from a lock's context end with it, however the end was found out.
func TestDerivedContextsEndWithTheLock(t *testing.T) {
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
