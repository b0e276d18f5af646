package lane

import (
	"sync/atomic"
	"time"
)

// A Set has the lanes to all nodes of a Locker, and what is known about the nodes together.
type Set struct {
	cfg    Config
	clocks *clocks
	terms  *terms
	view   atomic.Pointer[View]
	lanes  atomic.Pointer[[]*Lane] // to all nodes that are members, or have been; each at its index
}

// Open makes a lane to each node. The names are those in errors. Each node's index is sent to
// tried when its first attempt to connect has ended.
func Open(cfg Config, names []string, open func(node int, s Session) Server, tried chan<- int) *Set {
	s := &Set{cfg: cfg, clocks: newClocks(len(names), &cfg)}
	s.terms = newTerms(len(names), &s.cfg)
	var lanes []*Lane
	for i, name := range names {
		m := newIncarnation(i, name, &s.cfg, s.clocks, s.terms)
		lanes = append(lanes, newLane(i, name, open(i, m), m, &s.cfg, tried))
	}
	s.lanes.Store(&lanes)
	s.view.Store(newView(lanes, cfg.Quorum))
	s.terms.lanes.Store(&lanes)
	return s
}

// Lane gives the lane to a node that is a member, or has been one.
func (s *Set) Lane(node int) *Lane { return (*s.lanes.Load())[node] }

// View is the members as they are known now.
func (s *Set) View() *View { return s.view.Load() }

// Ticket is an instant of the client's, in microseconds, by the median of the nodes' clocks. It is
// good if the median is known to within NodeTimeout. Otherwise a majority of the nodes has not
// replied yet, or only later than any request waits, or a long time ago.
func (s *Set) Ticket(at time.Time) (ticket int64, good bool) {
	ticket, width, known := s.clocks.ticket(at)
	return ticket, known && width <= s.cfg.NodeTimeout
}

// Number is a number for a lock that is acquired by plain commands (wire.PlainAnswer): the middle of
// the nodes' clocks. It reports false if that is not known well enough, or a node has no vote for such
// a lock: only by a script. A number that is too small costs an attempt, and without MaxNodeSkew,
// when numbers of the future are taken, it may be too small for as long as one lasts.
func (s *Set) Number(at time.Time) (number int64, good bool) {
	if s.cfg.MaxNodeSkew <= 0 {
		return 0, false
	}
	for _, n := range s.View().Lanes {
		if n.node.scriptOnly.Load() {
			return 0, false
		}
	}
	return s.Ticket(at)
}

// Beyond gives by how much a fence is ahead of the median of the nodes' clocks, if that is so much
// that the grant is no vote; else 0. See acquire.go.
func (s *Set) Beyond(number int64, now time.Time) time.Duration {
	return s.clocks.beyond(number, s.clocks.middle(now))
}

// Close makes the lanes send what they have, for at most this long, and waits until they have
// ended.
func (s *Set) Close(patience time.Duration) {
	lanes := *s.lanes.Load()
	for _, n := range lanes {
		n.close()
	}
	limit := time.AfterFunc(patience, func() {
		for _, n := range lanes {
			n.force()
		}
	})
	defer limit.Stop()
	for _, n := range lanes {
		n.running.Wait()
		n.force() // the connections
	}
}

// Weigh gives the number of requests that each lane keeps: those that have not left yet, and the
// releases that it owes.
func (s *Set) Weigh() []int {
	lanes := *s.lanes.Load()
	all := make([]int, len(lanes))
	for i, n := range lanes {
		all[i] = n.weigh()
	}
	return all
}
