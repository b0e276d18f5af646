package wire

import "fmt"

// A Status is what one node did with a request.
type Status uint8

const (
	Granted     Status = iota
	Held               // another's token is there, for a while
	Reserved           // free, but kept for one who has waited longer
	Expired            // ours is not there any more
	Stolen             // another's token is where ours was
	Refilled           // ours is there, but only again: the node cannot vouch for the time before
	Foreign            // a key that is no lock is in the way: of another type, or without a TTL
	Timeout            // no answer in time
	Unreachable        // no connection, or it broke
	Loading            // the server is reading its data from disk
	ReadOnly           // the server takes no writes (a replica, or it cannot save)
	OutOfMemory        // the server is over its maxmemory
	Denied             // credentials or ACL
	Busy               // the server runs a long script, or has told us that it has too many clients
	Quarantined        // granted, but no vote: the node may have forgotten what it granted to another
	Late               // the node got the request when its time was up, and did nothing
	Unfit              // the node must not vote: a replica, a cluster node, evicting keys, the same server twice, or one that is not supported
	Failed             // any other error of the server
	Unasked            // no answer yet
)

var statusNames = [...]string{
	"granted", "held", "reserved", "expired", "stolen", "refilled", "foreign key", "timeout", "unreachable", "loading",
	"read-only", "out of memory", "denied", "busy", "quarantined",
	"late", "unfit", "failed", "unasked",
}

func (o Status) String() string {
	if int(o) < len(statusNames) {
		return statusNames[o]
	}
	return fmt.Sprintf("Status(%d)", uint8(o))
}

// SettlesRelease reports whether after this answer the token is certainly not at the node.
func (s Status) SettlesRelease() bool {
	return s == Granted || s == Expired || s == Stolen || s == Foreign
}
