package wire

import "fmt"

// A Status is the outcome of one request at one node: what the node answered, or why it did not answer.
type Status uint8

const (
	Granted     Status = iota
	Held               // another token holds the lock
	Reserved           // free, but an earlier waiter in the queue goes first
	Expired            // the node does not have this token any more
	Stolen             // another token holds the lock that this token held
	Refilled           // the client set its lock again on a node that had lost it: no vote, as the node may have granted it to others in between
	Foreign            // the key is no lock: it has another type, or no TTL
	Timeout            // no answer in time
	Unreachable        // no connection, or it broke
	Loading            // the server is reading its data from disk
	ReadOnly           // the server takes no writes (a replica, or it cannot save)
	OutOfMemory        // the server is over its maxmemory
	Denied             // credentials or ACL
	Busy               // the server runs a long script, or has too many clients
	Quarantined        // granted, but not a vote: the node may have lost a lock that it granted to another client
	Late               // the node got the request after its deadline, and did nothing
	Unfit              // the node may not vote: a replica, a cluster node, evicting keys, the same server twice, or not supported
	Failed             // any other error that the server sent
	Void               // an acquire by plain commands was carried out, and does not count: see PlainAnswer
	Unasked            // the node has not answered yet
)

var statusNames = [...]string{
	"granted", "held", "reserved", "gone", "stolen", "refilled", "not a lock", "timeout", "unreachable", "loading",
	"read-only", "out of memory", "denied", "busy", "quarantined",
	"late", "ineligible", "failed", "void", "unasked",
}

func (o Status) String() string {
	if int(o) < len(statusNames) {
		return statusNames[o]
	}
	return fmt.Sprintf("Status(%d)", uint8(o))
}

// SettlesRelease reports whether this answer to a release proves that the node does not have the token any more.
func (s Status) SettlesRelease() bool {
	return s == Granted || s == Expired || s == Stolen || s == Foreign
}
