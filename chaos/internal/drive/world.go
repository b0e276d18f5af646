package drive

import (
	"context"
	"strconv"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/internal/wire"
)

// A World is what an arena has for one plan: the nodes and processes, and the ways to inject faults.
type World interface {
	// Enter makes a process for a client. Its name is not used again.
	Enter(client int, name string) (client.Process, error)

	// Inject begins or ends a fault at a node.
	Inject(f history.Fault, begin bool)

	// Keys lists the keys on the nodes, and weigh measures them.
	Keys() []Key
	Weigh() []history.Weight

	// Addrs lists the nodes' addresses, and Kept what they keep of their set.
	Addrs() []string
	Kept() []wire.Kept

	// Close ends it, and returns an error for what has not ended by itself.
	Close() error
}

// Counts reports whether a member of a set counts at a time of the node's. The node may drop an
// expired one later.
func Counts(score float64, now time.Time) bool {
	_, until := wire.ParseScore(strconv.FormatFloat(score, 'f', 0, 64))
	return until >= now.UnixMilli()
}

// A Key is a key on a node.
type Key struct {
	Node       int
	Key, Token string
	Ghost      bool // its client knows that it may live for its TTL; see model.Node.Ghost
}

// Nodes are the nodes of a world; a driver uses nothing else of it.
type Nodes interface {
	Inject(f history.Fault, begin bool)
	Keys() []Key
	Weigh() []history.Weight
	Addrs() []string
	Kept() []wire.Kept
	Close() error
}

// A Member is a client as the driver sees it: in this process, or in one of its own.
type Member interface {
	Enter(context.Context) error // starts to work
	Apply(history.Fault)         // returns when the fault is over
	Die()
	Rest() // returns when it works no more
	Last() // gets every lock once
	Weigh()
	Leave()
}
