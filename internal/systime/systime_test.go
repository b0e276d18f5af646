package systime_test

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/systime"
)

// TestNowIsFine: the clock moves on in steps of much less than a node
// takes to answer, also on Windows, whose time.Now has ticks of 15.6 ms. It does not go back, and shows the time.
func TestNowIsFine(t *testing.T) {
	least, began := time.Hour, systime.Now()
	for last := began; last.Sub(began) < 50*time.Millisecond; {
		now := systime.Now()
		if step := now.Sub(last); step < 0 {
			t.Fatalf("it moved on by %v", step)
		} else if step > 0 {
			least = min(least, step)
		}
		last = now
	}
	if least > 100*time.Microsecond {
		t.Errorf("its smallest step is %v", least)
	}
	before, now, after := time.Now(), systime.Now(), time.Now()
	const tick = 50 * time.Millisecond
	if now.Before(before) || now.Sub(after) > tick || now.Round(0).Sub(after.Round(0)) > tick {
		t.Errorf("it shows %v between %v and %v", now, before, after)
	}
}
