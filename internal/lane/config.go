// Package lane carries requests to nodes. Each node has a lane: an ordered queue over one
// connection. A lane also keeps what is known about
// its node: whether it may have forgotten what it granted (incarnation), and how far its clock is
// off (clocks). By that it judges each reply before it delivers it.
package lane

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Config says how lanes work. All fields are set.
type Config struct {
	TTL, MaxTTL time.Duration                         // the default TTL, and the longest for a new set
	Drift       time.Duration                         // as given in the options; 0: each lock has its own
	DriftOf     func(ttl time.Duration) time.Duration // the drift of a lock with this TTL
	Quorum      int
	NodeTimeout time.Duration // silence after which nothing more is queued
	Quarantine  time.Duration // negative: off
	MaxNodeSkew time.Duration // negative: off
	Clock       Clock
	Host        sim.Host
	Events      Events
	Described   bool                                                                // votes count only by a description of the set
	Accept      func(*wire.Description) error                                       // whether this program can use a set with it
	Identify    func(ctx context.Context, address string) (runID string, err error) // asks what answers at an address; nil: it cannot be asked
	WatchVotes  bool                                                                // Votes is told when the time has come, and not only with the next request
}

// A Clock tells the time. Readings have a monotonic part.
type Clock interface{ Now() time.Time }

// Events are called when something happens that an operator may want to know. They are never
// called under a mutex. Down, Up, Quarantined and Votes of one node are called one after another, in
// the order in which they happened, and so are Joined and Members.
type Events interface {
	Down(node string, why *Failure)
	Up(node string, down time.Duration)
	Quarantined(node string, d time.Duration, why error)
	Votes(node string) // again, after Quarantined or the Warning about its clock
	ClockStep(node string, by time.Duration)
	Joined(d *wire.Description)  // the set's description is known, for the first time
	Members(d *wire.Description) // the set has been changed
	Warning(err error)
}

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
