package script

import (
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

const (
	// SlotInfix separates a lock's key from the number of a slot, which counts from 1.
	SlotInfix = ":slot:"

	// The key of a lock's queue is the lock's key and QueueSuffix. WakeChannel and the name of a process are the
	// channel on which its waiters are called.
	QueueSuffix = ":queue"
	WakeChannel = "redlock:wake:"

	// Broken and a token are the key under which a node notes for a while that the token is broken (break.lua).
	Broken = "redlock:broken:"

	// QueueTTL is how long a queue stays after the last entry.
	QueueTTL = time.Minute

	// ProbeKey is for probe.lua. No key of this name ever exists.
	ProbeKey = "redlock:probe"

	// Marker is the key of a node's marker (wire.Marker). All clients share it, whatever prefix their locks have.
	Marker = "redlock:marker"

	// Told is the key of the description of the set that the node keeps (wire.Kept), and Choice the key of its ballots
	// for the next one (choose.lua).
	Told   = "redlock:set"
	Choice = "redlock:choice"
)

// Sets are the keys that say to which set a node belongs: its description, and its ballots for the next one.
var Sets = []string{Told, Choice}

// Settled returns a marker (wire.Marker) that is ten years old at now, for the server process with this run_id. It is
// for a process that is known to have lost nothing: with this marker its node may vote at once.
func Settled(runID string, now time.Time) string {
	long := now.AddDate(-10, 0, 0).UnixMilli()
	return wire.Marker{RunID: runID, Born: long, Writer: long}.String()
}
