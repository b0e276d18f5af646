package recording

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestClockSetBack: the times of a record never go back, though the computer's clock was set back.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(clock)
		if at := c.now(); !at.Equal(time.Now()) {
			t.Errorf("it is %v at %v", at, time.Now())
		}
		c.said = c.said.Add(time.Hour) // the computer's clock was an hour ahead, and has been set back
		for range 3 {
			time.Sleep(time.Second)
		}
		if ahead := time.Until(c.now()); ahead != time.Hour {
			t.Errorf("it is ahead by %v", ahead)
		}
		c.said = c.said.Add(-2 * time.Hour) // it was an hour behind, and has been set forward
		if at := c.now(); !at.Equal(time.Now()) {
			t.Errorf("it is %v at %v", at, time.Now())
		}
	})
}
