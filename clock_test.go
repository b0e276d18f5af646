package redlock

import (
	"testing"
	"time"
	"unsafe"
)

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

// asleep is a reading whose monotonic clock has stood still for d while the wall
// clock went on, as on a Linux host that was suspended. There is no other way to
// one than to know that the second word of a reading is the monotonic clock.
func asleep(t time.Time, d time.Duration) time.Time {
	words := (*[3]int64)(unsafe.Pointer(&t))
	words[1] -= int64(d)
	return t
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
	slept := asleep(from.Add(time.Hour), 59*time.Minute)
	if got := slept.Sub(from); got != time.Minute {
		t.Fatalf("the monotonic clock went on by %v: the test does not test what it means to", got)
	}
	if got := elapsed(from, slept); got != time.Hour {
		t.Errorf("a host that slept: %v", got)
	}
	if got := left(from.Add(30*time.Minute), slept); got != -30*time.Minute {
		t.Errorf("a host that slept has %v left", got)
	}
	setBack := asleep(from.Add(-time.Hour), -time.Hour-time.Second)
	if got := elapsed(from, setBack); got != time.Second {
		t.Errorf("a clock that was set back: %v", got)
	}
	if got, want := left(from.Add(time.Second), from.Add(3*time.Second)), -2*time.Second; got != want {
		t.Errorf("left %v, want %v", got, want)
	}
}

func TestDefaults(t *testing.T) {
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
