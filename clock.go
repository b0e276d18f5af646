package redlock

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/systime"
)

// A Clock tells the time. The zero Options use the system's; tests give every client its own. Its readings should be
// monotonic, too.
type Clock interface {
	Now() time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time { return systime.Now() }

// elapsed is the time from one reading of the client's clock to another: the larger of the monotonic and the wall
// difference. So the fault of one clock never makes it too short: Go's monotonic clock stands still while a Linux host
// is suspended, and a wall clock may be set back. If it is too long, a lock ends too early.
func elapsed(from, to time.Time) time.Duration { return -lane.Left(from, to) }

// defaultDrift is what the Redlock page (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/) subtracts
// from validity: 1 % of the TTL, by which the speeds of two clocks may differ; 1 ms, since Redis expires keys to the
// millisecond; and 1 ms as the least for a short TTL.
func defaultDrift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// validFor is how long a lock is still valid at now, when the first byte of the requests that a quorum confirmed left
// no earlier than sent. Zero or less: it is not valid.
//
// A node's own TTL began when it executed the request, which is after sent, so each confirming node keeps the key until
// sent + ttl by its clock; drift is the room for its clock running faster than the client's.
func validFor(sent, now time.Time, ttl, drift time.Duration) time.Duration {
	return ttl - drift - elapsed(sent, now)
}

// left is the time from now until an instant. The fault of one clock never makes it too long (see elapsed).
func left(until, now time.Time) time.Duration { return lane.Left(until, now) }

// defaultNodeTimeout is TTL/10, at most 500 ms, so that one round leaves most of the lock's life to its holder. It is
// at least 50 ms, since a round trip of 30 ms is an ordinary one, but never more than TTL/2.
func defaultNodeTimeout(ttl time.Duration) time.Duration {
	return min(max(min(ttl/10, 500*time.Millisecond), 50*time.Millisecond), ttl/2)
}
