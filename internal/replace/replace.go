// Package replace lets the chaos harness and tests put parts of their own into a Locker. Programs cannot.
package replace

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/sim"
)

// Parts replace those of a Locker. A nil field leaves the Locker its own.
type Parts struct {
	Host sim.Host // chance, and which goroutine runs next

	// Open returns a connection to the node at an address. It gives up when the node has not replied for patience.
	Open func(addr string, patience time.Duration, s lane.Session) lane.Server

	// RunID returns the run_id of the server process at an address; an error if none answers. Open needs it.
	RunID func(addr string) (string, error)

	// Held and Ended are called at once with each *redlock.Lock: when it was acquired or attached, and when it has
	// ended for whatever reason. Hooks are called later.
	Held, Ended func(lock any)

	// Weigh is called once, with a function that returns how many requests are queued for each node.
	Weigh func(lanes func() []int)
}

// In puts the parts into *redlock.Options: a Locker that is made with these options uses them. Package redlock sets In.
var In func(options any, parts Parts)
