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

// A Node decides what the replies of a lane's node are worth. The lane's writer calls Bind and its reader Judge; Down and Up
// are called in turn, by either of them.
type Node interface {
	// Refuses says why a request need not be sent; nil: it is to be sent. If the reason may be old, the node is to be joined
	// again. It is called under the lane's mutex.
	Refuses(q *Request, now time.Time) (why error, old bool)

	// Bind completes the requests of a batch that is about to leave, and gives what is known of the node at that time.
	Bind(batch []*Request, now time.Time) Before

	// Judge changes the replies of a batch that left at sent to what they are worth, before they are delivered.
	Judge(batch []*Request, sent time.Time, before Before)

	Down(why *Failure)     // nothing is sent to the node
	Up(down time.Duration) // it can be reached again
}

// A Before is what was known of a node when a batch left. A lane only carries it from Bind to Judge.
type Before struct {
	Mark string        // its marker
	Kept wire.Told     // what it keeps
	Rest time.Duration // for how long it has no vote
	Off  time.Duration // by how much its clock is off; 0: by no more than it may be
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
