package reach

import (
	"time"

	"github.com/quorumlock/redlock"
)

// NodeTimeout is how long a node has to answer with this TTL: the library's default.
func NodeTimeout(ttl time.Duration) time.Duration {
	return max(min(ttl/10, 500*time.Millisecond), min(50*time.Millisecond, ttl/2))
}

// RoundTrips is how many round trips to a node must fit into its time to answer: one for the
// step, and the others as a reserve for a slow moment of the network or the node.
const RoundTrips = 4

// Clamp is how far from its own time a node accepts a number.
const Clamp = 500 * time.Millisecond

// Farthest is how far from the middle of the nodes' clocks one may be with these options: the
// library's default.
func Farthest(o *redlock.Options) time.Duration {
	return max(min((Quarantine(o)-3*Clamp)/2, 10*time.Second), 250*time.Millisecond)
}

// Stragglers is how much longer than for a quorum of new nodes redlock waits for their votes.
// They have been new since the same moment, or nearly so. A node whose vote comes too late does
// not vote on the lock until the lock was extended twice: until then, the restart of one of the
// others would cost the lock.
const Stragglers = 100 * time.Millisecond

// AskAgain is how often it asks again while nodes have no vote: an operator may make quarantines shorter meanwhile
// (redlock members set max-ttl).
const AskAgain = time.Second
