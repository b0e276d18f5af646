package lane

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// A Server is a connection to one node: package redisnode has the real one, and models of nodes have theirs. A lane's reader
// calls Receive, and its writer the rest: Connect, Join and Refresh when no reply is owed, and Outdated with the lane's
// mutex held. Any goroutine may call Interrupt and Subscribe. If a Server has a method Retire(), Lane.Retire calls it.
type Server interface {
	// Connect makes the connection, and joins the node: it asks the node what it is, for the Session. The writer calls
	// it before the first Send and again after each failure. It ends with ctx.
	Connect(ctx context.Context) error

	// Join asks the node again what it is, for the Session, and loads the scripts, which the server may have dropped.
	Join() error

	// Refresh is called before a Send when no reply is owed. It replaces a broken or outdated connection, until ctx ends.
	Refresh(ctx context.Context) error

	// Outdated reports whether the connection should be replaced soon, by Refresh. It does not block.
	Outdated() bool

	// Encode turns a batch into bytes, in order, and Send writes them. An error means that the connection has failed.
	Encode(batch []*Request)
	Send() error

	// Receive reads the replies to a batch, and sets each request's Reply (Request.Read, ReadPlain, ReadNative). The server
	// has owed them for ago. This side's timeout for a reply, less ago, bounds the whole wait, and no request's deadline
	// does. Receive may be called while Send still writes. An error means that the connection has failed: the unanswered
	// requests may have been carried out, or may yet be.
	Receive(batch []*Request, ago time.Duration) (unanswered []*Request, err error)

	// Interrupt makes the calls under way return soon, and all later ones fail.
	Interrupt()

	// Subscribe subscribes to a channel over a connection of its own, until that breaks or ctx ends. It calls ready when the
	// subscription stands, and onMessage with each message.
	Subscribe(ctx context.Context, channel string, ready func(), onMessage func(message string)) error
}

// A Session gives a Server what it tells its node (Hello), and the client's time, and receives what it learns.
type Session interface {
	Now() time.Time
	Hello() wire.Hello

	// Joined takes what the node replied to join.lua (marker, clock, description of the set), which left at sent.
	Joined(mark wire.Mark, sent time.Time)
}

// A Node decides what the replies of a lane's node are worth. The writer calls Bind, Down and Up; the reader, Judge.
type Node interface {
	// Refuses returns why q need not be sent, since it could not count; nil: send it. If old is true, the reason may be out
	// of date, and the lane joins the node again. Caller holds the lane's mutex.
	Refuses(q *Request, now time.Time) (why error, old bool)

	// Bind sets Number, Latest and Mark in a batch that is about to leave, and returns what is known of the node at now.
	Bind(batch []*Request, now time.Time) Before

	// Judge changes each reply of a batch, which left at sent, to what it is worth, before it is delivered; before is Bind's.
	Judge(batch []*Request, sent time.Time, before Before)

	Down(why *Failure)     // nothing is sent to the node
	Up(down time.Duration) // it can be reached again, after it was down for that long
}

// A Before is what was known of a node when a batch left. A lane only carries it from Bind to Judge.
type Before struct {
	Mark string        // its marker: a key that shows that it has not lost data
	Kept wire.Kept     // the description of the set that it keeps
	Rest time.Duration // for how long it has no vote; 0: it has one
	Off  time.Duration // by how much its clock is ahead of the median of all, if too much for a vote; else 0
}
