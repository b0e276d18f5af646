package redlock

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
)

// A Clock tells the time. The zero Options use the system's; tests give every
// client its own. Readings should carry a monotonic part, as time.Now's do.
type Clock interface {
	Now() time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// elapsed is the time from one reading to another, never under-estimated by one
// clock's fault: Go's monotonic clock stands still while a Linux host is
// suspended, and a wall clock may be set back, so the larger difference counts.
// What is wrong with it then is that a lock ends too early.
func elapsed(from, to time.Time) time.Duration { return -lane.Left(from, to) }

// defaultDrift is what the Redlock page (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/)
// takes off: the clocks of client and node may run at different speeds, by 1 %
// of the TTL at the most, and Redis expires keys to the millisecond, so one for
// rounding and one for the shortest TTL.
func defaultDrift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// validFor is how long a lock may still be relied on at now, when the first byte
// of the requests that a quorum has confirmed left no earlier than sent. Zero or
// less: not at all.
//
// A node's own TTL began when it executed the request, which is after sent, so
// each confirming node keeps the key until sent + ttl by its clock; drift is the
// room for its clock running faster than ours.
func validFor(sent, now time.Time, ttl, drift time.Duration) time.Duration {
	return ttl - drift - elapsed(sent, now)
}

// left is the time from now until an instant, never over-estimated by one
// clock's fault.
func left(until, now time.Time) time.Duration { return lane.Left(until, now) }

// defaultNodeTimeout is a tenth of the TTL up to 500 ms, so that one round
// leaves most of the lock's life to its holder; but never under 50 ms, since a
// link with a 30 ms round trip is an ordinary one, unless the TTL is so short
// that this would eat more than half of it.
func defaultNodeTimeout(ttl time.Duration) time.Duration {
	return min(max(min(ttl/10, 500*time.Millisecond), 50*time.Millisecond), ttl/2)
}
