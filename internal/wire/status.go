package wire

import "fmt"

// A Status says what one node did with a request.
type Status uint8

const (
	Granted     Status = iota
	Held               // another token holds the lock
	Reserved           // free, but reserved for a waiter that came earlier
	Expired            // this token no longer holds the lock
	Stolen             // another token holds the lock that this one held
	Refilled           // this token holds the lock again: the node says nothing about the time before
	Foreign            // a key that is no lock is in the way: it has another type, or no TTL
	Timeout            // no answer in time
	Unreachable        // no connection, or it broke
	Loading            // the server is reading its data from disk
	ReadOnly           // the server takes no writes (a replica, or it cannot save)
	OutOfMemory        // the server is over its maxmemory
	Denied             // credentials or ACL
	Busy               // the server runs a long script, or has too many clients
	Quarantined        // granted, but no vote: the node may have lost a lock that it granted to another client
	Late               // the node got the request after its deadline, and did nothing
	Unfit              // the node must not vote: a replica, a cluster node, evicting keys, the same server twice, or one that is not supported
	Failed             // any other error of the server
	Void               // the node has carried out an acquire of plain commands, and it does not count: see plain.go
	Unasked            // there is no answer yet
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

// SettlesRelease reports whether this answer to a release proves that the token is not at the node.
func (s Status) SettlesRelease() bool {
	return s == Granted || s == Expired || s == Stolen || s == Foreign
}
