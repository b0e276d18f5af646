// Package lane carries requests to the nodes, which are Redis servers. Each node has a lane: an ordered queue of requests
// over one connection. A lane keeps each release that no reply has settled, and sends it again. It does not know what a
// reply is worth: it asks its Node.
package lane

import (
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Config says how lanes work. All fields must be set.
type Config struct {
	NodeTimeout time.Duration // a node that has owed a reply for longer gets nothing more but releases
	Clock       Clock
	Host        sim.Host
}

// A Clock tells the client's time. Readings have a monotonic part.
type Clock interface{ Now() time.Time }

// A Failure is the reason why nothing is sent to a node.
type Failure struct {
	Status wire.Status
	Err    error
}

// Left returns the time from now to until, negative if until has passed. It is the smaller of the differences by the
// monotonic and by the wall clock: the fault of one clock never makes it too long.
func Left(until, now time.Time) time.Duration {
	return -max(now.Sub(until), now.Round(0).Sub(until.Round(0)))
}

// Jittered returns a duration from d/2 to d: jitter, a random number from 0 to 1, keeps clients that begin together apart.
func Jittered(d time.Duration, jitter float64) time.Duration {
	return d/2 + time.Duration(jitter*float64(d/2))
}
