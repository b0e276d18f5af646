package vote

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
)

// A Config says how nodes are judged. All fields must be set.
type Config struct {
	lane.Config
	TTL, MaxTTL time.Duration                         // the default TTL, and the longest for a new set
	Drift       time.Duration                         // as given in the options; 0: each lock has its own
	DriftOf     func(ttl time.Duration) time.Duration // the drift of a lock with this TTL
	Quarantine  time.Duration                         // for how long, at least, a node has no vote that may have forgotten locks; negative: off
	MaxNodeSkew time.Duration                         // how far a node's clock may be from the median of all; negative: off
	Described   bool                                  // nodes vote only if they keep the set's description
	WatchVotes  bool                                  // Events.Votes is called as soon as a quarantine ends, and not only with the next request
	Events      Events
}

// Events are called when something happens that an operator may want to know. The caller may hold mutexes, so they neither
// block nor call the library. Down, Up, Quarantined and Votes of one node come in order.
type Events interface {
	Down(node string, why *lane.Failure)
	Up(node string, down time.Duration)
	Quarantined(node string, d time.Duration, why error)
	Votes(node string) // it has a vote again, after Quarantined or the Warning about its clock
	ClockStep(node string, by time.Duration)
	Warning(err error)
}
