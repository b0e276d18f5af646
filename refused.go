package redlock

import (
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
)

// refusalPatience is for how long the nodes must refuse a client before its waiters give up. Credentials that are
// changed in a running service reach servers and clients one after another, and a lane connects again once a second
// at the latest: a few seconds are enough where somebody is at it, and few for a program that never will be let in.
const refusalPatience = 5 * time.Second

var errRefused = errors.New("the nodes refuse this client, and waiting does not end that")

// A shutOut remembers since when so many nodes refuse this client, for reasons that waiting does not end
// (facts.Lasting), that the others are no quorum. All waiters of a Locker share it: one that comes later need not find
// out anew. The zero value is ready to use.
type shutOut struct {
	mu          sync.Mutex
	since, last time.Time // the first attempt and the last one, without one in between that found it otherwise
}

// lasts takes in an attempt that has failed at now, and reports whether the nodes have refused the client for long
// enough. Attempts that are far apart show nothing about the time in between.
func (s *shutOut) lasts(why *QuorumError, now time.Time) bool {
	refuse := 0
	for _, n := range why.Nodes() {
		if facts.Lasting(n.Err) {
			refuse++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := why.N - why.Granted - why.Held - why.Failed // the attempt ended without their answers
	switch {
	case why.N-refuse-open >= why.Need:
		s.since = time.Time{}
		return false
	case why.N-refuse >= why.Need:
		return false
	}
	if s.since.IsZero() || elapsed(s.last, now) > refusalPatience {
		s.since = now
	}
	s.last = now
	return elapsed(s.since, now) >= refusalPatience
}
