package lane

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// A Server is a connection to one node. Package redisnode has the real one, and models of nodes
// have theirs. A lane's reader calls Receive, and its writer the rest: Connect, Join and Refresh when
// no reply is owed, and Outdated under the lane's mutex. Interrupt and Subscribe may be called from any goroutine. If there
// is a method Retire, it is called when the node is no member any more.
type Server interface {
	// Connect makes the connection, and joins the node (Session). It is called before the first Send and again after each
	// failure, and ends with ctx.
	Connect(ctx context.Context) error

	// Join asks the server what it is and loads the scripts, which the server may have dropped.
	// The answers go to the Session.
	Join() error

	// Refresh is called before a Send when no reply is owed, and replaces the connection if it is broken, or outdated. What
	// it takes to make a new one ends with ctx.
	Refresh(ctx context.Context) error

	// Outdated reports whether there should soon be a Refresh. It does not block.
	Outdated() bool

	// Encode takes in the requests of a batch, in their order, and Send writes them. An error means that the connection
	// failed.
	Encode(batch []*Request)
	Send() error

	// Receive reads the replies to a batch, which the server has owed for so long, and gives the requests theirs
	// (Request.Read); the answers to a command without a script may leave more to be sent (Request.ReadNative). It may be
	// called while Send still writes. An error means that the connection failed: the unanswered requests may have been
	// carried out, or may yet be. The timeout of this side for a reply bounds the whole wait, and no request's deadline
	// does.
	Receive(batch []*Request, ago time.Duration) (unanswered []*Request, err error)

	// Interrupt makes the calls under way return soon, and all later ones fail. It may
	// be called from any goroutine.
	Interrupt()

	// Subscribe subscribes to a channel, over a connection of its own, until that breaks or ctx ends.
	// It calls ready when the subscription stands, and onMessage with each message. It may be called from any goroutine.
	Subscribe(ctx context.Context, channel string, ready func(), onMessage func(message string)) error
}

// A Session receives what a Server learns about its node, and gives what the node is told.
type Session interface {
	Now() time.Time
	Hello() wire.Hello

	// Joined takes in what the node said when it was joined, at some moment after sent.
	Joined(mark wire.Mark, sent time.Time)
}

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
	Kept wire.Kept     // what it keeps
	Rest time.Duration // for how long it has no vote
	Off  time.Duration // by how much its clock is off; 0: by no more than it may be
}
