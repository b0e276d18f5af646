// Package lane carries requests to nodes: each node has a lane, an ordered queue over one connection. It also keeps the
// releases that no reply has settled yet, and sends them again. What a reply is worth, it does not know: it asks its Node.
package lane

import (
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Config says how lanes work. All fields are set.
type Config struct {
	NodeTimeout time.Duration // silence after which nothing more is queued
	Clock       Clock
	Host        sim.Host
}

// A Clock tells the time. Readings have a monotonic part.
type Clock interface{ Now() time.Time }

// A Failure is the reason why nothing is sent to a node.
type Failure struct {
	Status wire.Status
	Err    error
}

// Left is the time from now until an instant: the smaller one of what the monotonic and the wall
// clock say, so that the fault of one clock never makes it too long.
func Left(until, now time.Time) time.Duration {
	return -max(now.Sub(until), now.Round(0).Sub(until.Round(0)))
}

// Jittered gives a part of d, from half of it to all, chosen by a number from 0 to 1, so that
// clients that begin together do not go on together.
func Jittered(d time.Duration, jitter float64) time.Duration {
	return d/2 + time.Duration(jitter*float64(d/2))
}
