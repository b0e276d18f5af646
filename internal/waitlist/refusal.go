package waitlist

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Refusal is the outcome of an attempt that got no quorum, as far as it matters for when to try again.
type Refusal struct {
	N, Need int           // the number of nodes, and of the votes that a lock needs
	Failed  int           // nodes that gave no usable answer
	Held    bool          // other clients have the lock, or go first; false: too many nodes failed
	Nodes   []NodeRefusal // those that did not grant
}

// A NodeRefusal is one node's answer in a Refusal.
type NodeRefusal struct {
	Node   string
	Status wire.Status
	Holder string        // Held: the holder's token; Reserved: the earlier waiter's name
	TTL    time.Duration // Held, Reserved: for how much longer that counts; Quarantined: how long until the node votes
	Slot   int64         // Held: another slot of the semaphore, which is free; 0: none
}

// The pauses between two attempts if no node can say when the lock may be free.
const (
	MinPause = 4 * time.Millisecond
	MaxPause = 128 * time.Millisecond
)

// Backoff returns how long to wait after the attempt number try (0 is the first), if no node can say when the lock may
// be free. It doubles with each attempt, up to MaxPause or an eighth of the TTL. jitter, from 0 to 1, stands for half
// of that to all of it, and keeps two clients that split the votes from doing so again.
func Backoff(try int, ttl time.Duration, jitter float64) time.Duration {
	d := min(MinPause<<min(try, 16), MaxPause, max(ttl/8, MinPause))
	return lane.Jittered(d, jitter)
}

// RetryIn returns how long a waiter rests, if no message comes, when its attempt number try (0 is the first) got r. While
// others have the lock: until it may be free, a Heartbeat at most. While too few nodes vote: until more do, but at least a
// Backoff, whose jitter comes from host.
func (r *Refusal) RetryIn(try int, ttl time.Duration, host sim.Host) time.Duration {
	jitter := host.Jitter()
	if votes := r.votesIn(); votes > 0 || !r.Held {
		// At least once in a TTL it looks at the nodes' clocks. Over a longer time, the speed of a clock excuses no
		// more than over a TTL (package vote): a clock as fast as the drift allows would seem to have been set at each
		// look, and the node would never have a vote again.
		return max(min(votes, ttl), Backoff(try, ttl, jitter))
	}
	d := min(Heartbeat(ttl), r.FreeIn()+time.Millisecond) // Redis counts whole milliseconds
	switch {
	case r.foreign():
		d = min(d, Backoff(try, ttl, jitter)) // such clients send no message
	case r.split():
		d = min(d, Backoff(try+3, ttl, jitter)) // clients of this library send messages, but others do not
	}
	return d
}

// foreign reports whether a client of another library has the lock at some node: its token lacks our signature.
func (r *Refusal) foreign() bool {
	return slices.ContainsFunc(r.Nodes, func(n NodeRefusal) bool { return n.Status == wire.Held && !wire.Signed(n.Holder) })
}

// split reports whether no client can have a quorum of the nodes, even if all nodes that failed were that client's.
func (r *Refusal) split() bool {
	votes := make(map[string]int)
	for _, n := range r.Nodes {
		if n.Status == wire.Held || n.Status == wire.Reserved {
			if votes[n.Holder]++; votes[n.Holder]+r.Failed >= r.Need {
				return false
			}
		}
	}
	return true
}

// Contested reports whether other clients are in the way, but none was seen to have a quorum of nodes: several clients try
// for the lock at this moment, or some of the holder's nodes have not answered. So a call that tries once goes on. A waiter
// counts as having the nodes that reserve the lock for it. A contender (a call that tries once, and has entered the queues)
// does not: it leaves its places to an earlier contender that it sees, which is for Preceded to say. The tokens of two of
// its attempts do not count together, since it gives back what the first attempt got.
func (r *Refusal) Contested() bool {
	nodes := make(map[string]int)
	for _, n := range r.Nodes {
		if _, contends := wire.ParseContender(n.Holder); n.inTheWay() && !(contends && n.Status == wire.Reserved) {
			if nodes[n.Holder]++; nodes[n.Holder] >= r.Need {
				return false
			}
		}
	}
	return r.Held
}

// HeldBefore reports whether a quorum of nodes name holders that are not new: earlier names them, too, and their attempts
// began before began, when this call came (by the clocks of their processes, in whole milliseconds). As a rule, they have
// the lock, and no vote is split. It is false where a slot is free. earlier is not nil, and may have the answers of several
// refusals; it may be r.
func (r *Refusal) HeldBefore(began time.Time, earlier *Refusal) bool {
	before := 0
	for _, n := range r.Nodes {
		who, ours := wire.Identify(n.Holder)
		if ours && who.Since.UnixMilli() < began.UnixMilli() && slices.ContainsFunc(earlier.Nodes, func(e NodeRefusal) bool { return e.Holder == n.Holder }) {
			before++
		}
	}
	return before >= r.Need && r.FreeSlot() == 0
}

// inTheWay reports whether another client has the lock at the node, or goes first there.
func (n *NodeRefusal) inTheWay() bool { return n.Status == wire.Held || n.Status == wire.Reserved }

// Preceded reports whether a contender with a lower ticket than c's holds the lock at some node, or is the next there.
// A contender is a call that tries once, and waits only until a split vote is settled; its ticket is the time it came.
func (r *Refusal) Preceded(c *wire.Contender) bool {
	return slices.ContainsFunc(r.Nodes, func(n NodeRefusal) bool {
		other, is := wire.ParseContender(n.Holder)
		return is && n.inTheWay() && other.Before(c)
	})
}

// Unchanged reports whether some nodes (one is enough) name a holder, each the same as in the refusal before (not nil), and
// none a contender (a client that tries once). A node that names no holder now is not compared. A client that tries gives
// back what it got, and its next attempt has another token; so tokens that stay are those of holders.
func (r *Refusal) Unchanged(before *Refusal) bool {
	held := 0
	for _, n := range r.Nodes {
		if !n.inTheWay() {
			continue
		}
		_, contends := wire.ParseContender(n.Holder)
		if contends || !slices.ContainsFunc(before.Nodes, func(b NodeRefusal) bool { return b.Node == n.Node && b.Holder == n.Holder }) {
			return false
		}
		held++
	}
	return held > 0
}

// FreeIn returns after how long, at the earliest, a quorum can be free by expiry: by the TTLs of the holders, or the
// leases of the waiters for which nodes reserve the lock. 0: now, or too many nodes failed.
func (r *Refusal) FreeIn() time.Duration {
	var held []time.Duration
	for _, n := range r.Nodes {
		if n.Status == wire.Held || n.Status == wire.Reserved {
			held = append(held, n.TTL)
		}
	}
	need := r.Need - (r.N - len(held) - r.Failed) // how many of the held nodes must become free
	if need <= 0 || need > len(held) {
		return 0
	}
	slices.Sort(held)
	return held[need-1]
}

// votesIn returns after how long enough quarantines are over for a quorum to vote: no attempt can win earlier. 0: now.
func (r *Refusal) votesIn() time.Duration {
	var rest []time.Duration
	for _, n := range r.Nodes {
		if n.Status == wire.Quarantined {
			rest = append(rest, n.TTL)
		}
	}
	need := r.Need - (r.N - len(rest)) // how many of these nodes must get their vote back
	if need <= 0 {
		return 0
	}
	slices.Sort(rest)
	return rest[need-1]
}

// Hopeless reports whether waiting is in vain: without the nodes whose key has a value that is no lock, no quorum is
// left.
func (r *Refusal) Hopeless() bool {
	foreign := 0
	for _, n := range r.Nodes {
		if n.Status == wire.Foreign {
			foreign++
		}
	}
	return r.N-foreign < r.Need
}

// FreeSlot returns the slot of the semaphore that most of the refusing nodes name as free; 0: none.
func (r *Refusal) FreeSlot() (slot int64) {
	if !r.Held {
		return 0
	}
	said, most := make(map[int64]int), 0
	for _, n := range r.Nodes {
		if said[n.Slot]++; n.Slot > 0 && said[n.Slot] > most {
			slot, most = n.Slot, said[n.Slot]
		}
	}
	return slot
}
