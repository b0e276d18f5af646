package vote

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
)

// A Config says how nodes are judged. All fields are set.
type Config struct {
	lane.Config
	TTL, MaxTTL time.Duration                         // the default TTL, and the longest for a new set
	Drift       time.Duration                         // as given in the options; 0: each lock has its own
	DriftOf     func(ttl time.Duration) time.Duration // the drift of a lock with this TTL
	Quarantine  time.Duration                         // negative: off
	MaxNodeSkew time.Duration                         // negative: off
	Described   bool                                  // votes count only by a description of the set
	WatchVotes  bool                                  // Votes is told when the time has come, and not only with the next request
	Events      Events
}

// Events are called when something happens that an operator may want to know. They are called under mutexes, so they do not
// block, and call nothing of the library. Down, Up, Quarantined and Votes of one node are called in the order in which they
// happened.
type Events interface {
	Down(node string, why *lane.Failure)
	Up(node string, down time.Duration)
	Quarantined(node string, d time.Duration, why error)
	Votes(node string) // again, after Quarantined or the Warning about its clock
	ClockStep(node string, by time.Duration)
	Warning(err error)
}
