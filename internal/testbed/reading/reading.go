// Package reading makes readings of a host's two clocks, the wall clock and the monotonic one, that do not agree. Package time
// has nothing for that. A Time that has both says so in the first bit of its first word, and its second word is the monotonic
// one. Only tests and the harness use it.
package reading

import (
	"time"
	"unsafe"
)

// both is a Time with a monotonic reading, as those of a synctest bubble have none.
var both = time.Now()

// Of is a Time whose wall clock shows one instant, and its monotonic clock another one. In years in which no Time has a
// monotonic reading, it is the wall clock alone.
func Of(wall, monotonic time.Time) time.Time {
	return Asleep(both.Add(wall.Sub(both.Round(0))), wall.Sub(monotonic))
}

// Asleep is a reading t whose monotonic clock has stood still for d while the wall clock went on, as on a Linux host that was
// suspended. A reading without a monotonic clock stays as it is.
func Asleep(t time.Time, d time.Duration) time.Time {
	if words := (*[2]int64)(unsafe.Pointer(&t)); words[0] < 0 {
		words[1] -= int64(d)
	}
	return t
}
