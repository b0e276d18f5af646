package script

import (
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

const (
	// SlotInfix separates a lock's key from the number of a slot, which counts from 1.
	SlotInfix = ":slot:"

	// The key of a lock's queue is the lock's key and QueueSuffix. The channel on which a
	// process is told of its turn is WakeChannel and the process's name.
	QueueSuffix = ":queue"
	WakeChannel = "redlock:wake:"

	// Broken and a token are the key under which a node notes for a while that the token is broken (break.lua).
	Broken = "redlock:broken:"

	// QueueTTL is how long a queue stays after the last waiter has been put in it.
	QueueTTL = time.Minute

	// ProbeKey is for probe.lua. No key of this name ever exists.
	ProbeKey = "redlock:probe"

	// Marker is the key of a node's marker. It does not depend on the prefix of the locks:
	// all clients of a node share it.
	Marker = "redlock:marker"

	// Told is the key of what the node keeps of its set (wire.Told), and Choice that of the choice of the
	// next description, if there is one (choose.lua).
	Told   = "redlock:set"
	Choice = "redlock:choice"
)

// Sets are the keys of what a node keeps of its set, and of what it has promised in a choice.
var Sets = []string{Told, Choice}

// Lasting reports whether a key stays when all locks are gone: a node's marker, its tables
// of counters, that a token is broken, or, for a minute, a lock's queue.
func Lasting(key string) bool {
	return Reserved(key) != "" || strings.HasSuffix(key, QueueSuffix)
}

// Settled is the marker of a server process that has been running for a long time.
func Settled(runID string, now time.Time) string {
	long := now.AddDate(-10, 0, 0).UnixMilli()
	return wire.Marker{RunID: runID, Born: long, Writer: long}.String()
}

// LockOf gives the key of the lock that a key on a node belongs to: the lock's own key, or that of
// its queue. ok is false for what no lock has for a key: those of the nodes, and slots, which the set of
// their lock's holders tells of.
func LockOf(key string) (lock string, queue, ok bool) {
	lock, queue = strings.CutSuffix(key, QueueSuffix)
	if lock == "" || Lasting(lock) {
		return "", false, false
	}
	if i := strings.LastIndex(lock, SlotInfix); i >= 0 {
		if _, err := strconv.Atoi(lock[i+len(SlotInfix):]); err == nil {
			return "", false, false
		}
	}
	return lock, queue, true
}
