package reach

import (
	"time"

	"github.com/quorumlock/redlock"
)

// NodeTimeout is the library's default for how long a node may take to answer, at this TTL.
func NodeTimeout(ttl time.Duration) time.Duration {
	return max(min(ttl/10, 500*time.Millisecond), min(50*time.Millisecond, ttl/2))
}

// RoundTrips is how many round trips must fit into NodeTimeout: one for the step, the others as a reserve for a slow
// moment of the network or the node.
const RoundTrips = 4

// Clamp is how far from its own time a node accepts a fence.
const Clamp = 500 * time.Millisecond

// Farthest is the library's default for how far a node's clock may be from the median of all clocks.
func Farthest(o *redlock.Options) time.Duration {
	return max(min((Quarantine(o)-3*Clamp)/2, 10*time.Second), 250*time.Millisecond)
}

// Stragglers is how much longer than for a quorum of new nodes redlock waits for the other ones, which were new at
// nearly the same time. A node that votes too late for the lock votes on it only after two extensions; until then,
// the restart of another node would cost the lock.
const Stragglers = 100 * time.Millisecond

// AskAgain is the pause between two questions to nodes that cannot vote yet. An operator may shorten quarantines
// meanwhile (redlock members set max-ttl).
const AskAgain = time.Second
