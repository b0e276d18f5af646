package systime

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

var (
	preciseTime = syscall.NewLazyDLL("kernel32.dll").NewProc("GetSystemTimePreciseAsFileTime")
	started     = time.Now()
	latest      atomic.Int64 // the latest reading, as the time since started
)

// Now returns the time, as time.Now does, to the microsecond. On Windows time.Now moves on in ticks, as a rule of 15.6 ms
// (golang/go#67066). A lock would look valid for a tick too long. With nodes that answer within a tick, the times of
// request and reply would be too early, by another part of a tick each time: that looks like steps of all nodes' clocks,
// and costs them their votes.
//
// The time since the last tick, by the precise wall clock, is added to both readings of time.Now. Where it is no part of
// a tick, the wall clock was set in between: then time.Now has to do. The two clocks of time.Now do not have exactly the
// same ticks: latest keeps the sum from going back by some microseconds at the end of a tick.
func Now() time.Time {
	now := time.Now()
	if now == now.Round(0) {
		return now // without a monotonic reading: this is a bubble of testing/synctest
	}
	var precise syscall.Filetime
	_, _, _ = preciseTime.Call(uintptr(unsafe.Pointer(&precise)))
	if since := time.Duration(precise.Nanoseconds() - now.UnixNano()); since > 0 && since < 50*time.Millisecond {
		now = now.Add(since)
	}
	for at := int64(now.Sub(started)); ; {
		last := latest.Load()
		if at <= last {
			return now.Add(time.Duration(last - at))
		}
		if latest.CompareAndSwap(last, at) {
			return now
		}
	}
}
