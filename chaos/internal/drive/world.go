package drive

import (
	"context"
	"strconv"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/internal/wire"
)

// A World is an arena at work on one plan: what the clients touch, and what can be
// done to it.
type World interface {
	// Enter makes a process for a client. Its name is not used again.
	Enter(client int, name string) (client.Process, error)

	// Inject has a fault at a node begin or end.
	Inject(f history.Fault, begin bool)

	// Keys lists what is on the nodes, and weigh how much it is.
	Keys() []Key
	Weigh() []history.Weight

	// Close ends it, and says what has not ended by itself.
	Close() error
}

// Counts reports whether a member of a set counts at some time of the node's, which may have
// yet to drop it.
func Counts(score float64, now time.Time) bool {
	_, until := wire.ParseScore(strconv.FormatFloat(score, 'f', 0, 64))
	return until >= now.UnixMilli()
}

// A Key is a key on a node.
type Key struct {
	Node       int
	Key, Token string
}

// Nodes are those of a world, and all of it that a driver knows.
type Nodes interface {
	Inject(f history.Fault, begin bool)
	Keys() []Key
	Weigh() []history.Weight
	Close() error
}

// A Member is a client as a driver knows it: in this process, or in one of its own.
type Member interface {
	Enter(context.Context) error // begins to work
	Apply(history.Fault)         // returns when it is over
	Die()
	Rest() // returns when it works no more
	Last() // gets every lock once
	Weigh()
	Leave()
}
