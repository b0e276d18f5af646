package recording

import (
	"sync"
	"time"
)

// A clock gives the times of a record: those of the computer's clock, in microseconds. If that is set back, the clock
// of the record goes on by itself: no earlier time comes after a later one, and what is due is not put off.
type clock struct {
	mu         sync.Mutex
	read, said time.Time // when it was asked last, and what it said
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := time.Now()
	c.said = later(c.said.Add(is.Sub(c.read)), is.UTC().Round(0)) // the difference is not that of the computer's clock
	c.read = is
	return c.said.Truncate(time.Microsecond)
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
