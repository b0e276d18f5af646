package reach

import (
	"cmp"
	"time"

	"github.com/quorumlock/redlock"
)

// NodeTimeout returns the library's default for how long a node may take to answer, at this TTL.
func NodeTimeout(ttl time.Duration) time.Duration {
	return max(min(ttl/10, 500*time.Millisecond), min(50*time.Millisecond, ttl/2))
}

// RoundTrips is how many round trips must fit into NodeTimeout: one for the step, the others as a reserve for a slow
// moment of the network or the node.
const RoundTrips = 4

// Quarantine returns the library's default for how long a node that may have lost its data has no vote.
func Quarantine(o *redlock.Options) time.Duration {
	longest := cmp.Or(o.MaxTTL, max(o.TTL, DefaultTTL))
	return max(longest+longest/100+2*time.Millisecond, 2*time.Second)
}

// Stragglers is how much longer than for a quorum of new nodes redlock waits for the other ones, which were new at
// nearly the same time. A node that votes too late for the lock votes on it only after two extensions; until then,
// the restart of another node would cost the lock.
const Stragglers = 100 * time.Millisecond

// AskAgain is the pause between two questions to nodes that cannot vote yet. An operator may shorten quarantines
// meanwhile (redlock members set max-ttl).
const AskAgain = time.Second
