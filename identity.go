package redlock

import (
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// An Identity is what the token of a lock says of the attempt that acquired it. A token of another
// library, or of a version from before this, says nothing, and all is empty. A client that can write to
// the nodes can write any identity: it tells people whom to ask, and decides no more than whether a TryAcquire that
// came later goes on asking.
type Identity struct {
	// Owner is the Options.Owner of the process. It may hold any bytes: quote it before it
	// reaches a terminal.
	Owner string

	// Since is when the attempt began, by its process's clock, in milliseconds.
	Since time.Time

	// Trace is the id of the trace that the attempt belongs to (redlocktrace.Trace.ID); "": none.
	Trace string

	// Names are those of a lock that takes in several (Also), in their order, as far as they fit into the
	// token. More is how many do not.
	Names []string
	More  int
}

// Identify returns what a token says: of a [Lock], a [Status], or the Holder of a [NodeError].
func Identify(token string) Identity {
	who, ok := wire.Identify(token)
	if !ok {
		return Identity{}
	}
	return Identity(who)
}
