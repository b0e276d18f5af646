// Package replace is how the chaos harness and tests of this module put parts of their own into a Locker. A program cannot.
package replace

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/sim"
)

// Parts take the place of those of a Locker. Nil: the Locker has its own.
type Parts struct {
	Host sim.Host // chance, and which goroutine runs next

	// Open gives a connection to the node at an address, which is given up when the node has not replied for patience.
	Open func(addr string, patience time.Duration, s lane.Session) lane.Server

	// RunID is that of the process that answers at an address; an error: none does. It comes with Open.
	RunID func(addr string) (string, error)

	// Held and Ended are called at once with each *redlock.Lock: when it was acquired or attached, and when it ended
	// for whatever reason. Hooks are called later.
	Held, Ended func(lock any)

	// Weigh is called once, with a function that gives the number of requests that each lane keeps.
	Weigh func(lanes func() []int)
}

// In puts the parts into *redlock.Options: a Locker that is made with these uses them. Package redlock defines it.
var In func(options any, parts Parts)
