// Package lane carries requests to nodes. Each node has a lane: an ordered queue over one
// connection, or several where the node is far. A lane also knows what its node is worth: whether it may
// have forgotten what it granted (incarnation), how far its clock is off (clocks), and which
// TTLs are in use there (terms). What a node says is judged by that before it is delivered.
package lane

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// A Server is a connection to one node, and what a model of a node implements. A lane calls
// Connect, Join and Exec from one goroutine.
type Server interface {
	// Connect makes the connection, joins the node (Session), and says how long a round trip
	// takes. It is called before the first Exec and again after each failed one, and ends with
	// ctx.
	Connect(ctx context.Context) (rtt time.Duration, err error)

	// Join asks the server what it is and gives it the scripts, which it may have dropped. What
	// it says goes to the Session.
	Join() error

	// Exec carries out the requests in their order and fills in each one's reply
	// (Request.Read). An error means that the connection failed: then the requests whose
	// status is Timeout or Unreachable may have been carried out, or may yet be. It is bounded
	// by the server's own patience, not by any request's deadline.
	Exec(batch []*Request) error

	// Interrupt has a Connect or Exec under way return soon, and all later ones fail. It may
	// be called from any goroutine.
	Interrupt()

	// Subscribe listens to a channel, over a connection of its own, until that breaks or ctx ends.
	// It says when it has begun to, and what it hears. A server that hears does nothing else.
	Subscribe(ctx context.Context, channel string, ready func(), onMessage func(message string)) error

	// Fork gives another connection to the same node, not connected yet.
	Fork() Server
}

// A Session is what a Server tells of its node, and what it tells the node.
type Session interface {
	Now() time.Time
	Hello() wire.Hello
	Owner() string // how others see the client in a queue

	// Joined takes in what the node said when it was joined at some time after sent.
	Joined(mark wire.Mark, sent time.Time)
}

// A Client is what redlock.New takes in the place of a go-redis client: one node that is no
// Redis. Open gets the time after which a node that owes a reply is to be given up.
type Client struct {
	redis.UniversalClient // nil

	Addr string
	Open func(patience time.Duration, s Session) Server
}

// A Config says how lanes work. All fields are set.
type Config struct {
	TTL, MaxTTL time.Duration                         // the usual one, and the longest of this program
	Drift       time.Duration                         // that was given; 0: each lock's own
	DriftOf     func(ttl time.Duration) time.Duration // of a lock with this TTL
	NodeTimeout time.Duration                         // silence after which nothing more is queued
	Quarantine  time.Duration                         // negative: off
	MaxNodeSkew time.Duration                         // negative: off
	Owner       string
	Clock       Clock
	Host        sim.Host
	Events      Events
}

// A Clock tells the time. Readings have a monotonic part.
type Clock interface{ Now() time.Time }

// Events are called when something happens that an operator may want to know; never under a
// mutex.
type Events interface {
	Down(node int, why *Failure)
	Up(node int, down time.Duration)
	Quarantined(node int, d time.Duration, why error)
	ClockStep(node int, by time.Duration)
	Warning(err error)
}

// A Failure is why nothing is sent to a node.
type Failure struct {
	Status wire.Status
	Err    error
}

// Left is the time from now until an instant, never over-estimated by one clock's fault.
func Left(until, now time.Time) time.Duration {
	return -max(now.Sub(until), now.Round(0).Sub(until.Round(0)))
}

// Jittered is a part of d, from half of it to all, by a number from 0 to 1: clients that begin
// together do not go on together.
func Jittered(d time.Duration, jitter float64) time.Duration {
	return d/2 + time.Duration(jitter*float64(d/2))
}
