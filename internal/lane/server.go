package lane

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// A Server is a connection to one node. Package redisnode has the real one, and models of nodes
// have theirs. A lane calls Connect, Join and Exec from one goroutine.
type Server interface {
	// Connect makes the connection, joins the node (Session), and returns the time of a round
	// trip. It is called before the first Exec and again after each failed one, and ends with
	// ctx.
	Connect(ctx context.Context) (rtt time.Duration, err error)

	// Join asks the server what it is and loads the scripts, which the server may have dropped.
	// The answers go to the Session.
	Join() error

	// Exec carries out the requests in their order and fills in each one's reply
	// (Request.Read). What a command without a script leaves open comes after all of them
	// (Request.ReadNative). An error means that the connection failed: then the requests whose
	// status is Timeout or Unreachable may have been carried out, or may yet be. The server's
	// own timeout bounds it, and not any request's deadline.
	Exec(batch []*Request) error

	// Interrupt makes a Connect or Exec under way return soon, and all later ones fail. It may
	// be called from any goroutine.
	Interrupt()

	// Subscribe subscribes to a channel, over a connection of its own, until that breaks or ctx ends.
	// It calls ready when the subscription stands, and heard with each message. A server that
	// hears does nothing else.
	Subscribe(ctx context.Context, channel string, ready func(), onMessage func(message string)) error

	// Fork gives another connection to the same node, not connected yet. It does no more: it is
	// called under the lane's mutex.
	Fork() Server
}

// A Session receives what a Server learns about its node, and gives what the node is told.
type Session interface {
	Now() time.Time
	Hello() wire.Hello

	// Joined takes in what the node said when it was joined, at some moment after sent.
	Joined(mark wire.Mark, sent time.Time)
}
