package main

import (
	"time"

	"github.com/quorumlock/redlock"
)

// nodeTimeout is how long a node has to answer with this TTL: the library's default.
func nodeTimeout(ttl time.Duration) time.Duration {
	return max(min(ttl/10, 500*time.Millisecond), min(50*time.Millisecond, ttl/2))
}

// several is how many round trips to a node have to fit in its time to answer: one for
// the step, and the rest for a bad moment of the network or the node.
const several = 4

// clamp is how far from its time a node takes a number.
const clamp = 500 * time.Millisecond

// farthest is how far from the middle of the nodes' clocks one may be with these options: the
// library's default.
func farthest(o *redlock.Options) time.Duration {
	longest := max(o.TTL, o.MaxTTL)
	quarantine := max(longest+longest/100+2*time.Millisecond, 2*time.Second)
	return max(min((quarantine-3*clamp)/2, 10*time.Second), 250*time.Millisecond)
}

// stragglers is how much longer than for a quorum of new nodes we wait for their votes.
// They have been new since the same moment, or nearly so, and the vote of a node that
// comes too late is none until the lock was extended twice: until then, one of the
// others that is restarted would cost us the lock.
const stragglers = 100 * time.Millisecond
