package reading

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestClocksDiffer: between two readings each clock goes on by its own time, also in a bubble.
func TestClocksDiffer(t *testing.T) {
	const wall, monotonic = time.Hour, time.Minute
	goesOn := func(from, to time.Time) {
		t.Helper()
		if got := to.Sub(from); got != monotonic {
			t.Errorf("the monotonic clock went on by %v", got)
		}
		if got := to.Round(0).Sub(from.Round(0)); got != wall {
			t.Errorf("the wall clock went on by %v", got)
		}
	}
	now := time.Now()
	goesOn(now, Asleep(now.Add(wall), wall-monotonic))
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		goesOn(Of(now, now), Of(now.Add(wall), now.Add(monotonic)))
		if got := Of(now, now); !got.Equal(now) {
			t.Errorf("%v is %v", now, got)
		}
	})
}

// TestNoMonotonicClock: a reading of the wall clock alone is not changed, nor is one of a year without the other clock.
func TestNoMonotonicClock(t *testing.T) {
	wall := time.Now().Round(0)
	if got := Asleep(wall, time.Hour); got != wall {
		t.Errorf("%v became %v", wall, got)
	}
	later := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := Of(later, wall); !got.Equal(later) {
		t.Errorf("%v became %v", later, got)
	}
}
