package lane

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// A Set has the lanes to all nodes of a Locker, and what is known about the nodes together.
type Set struct {
	cfg    Config
	open   func(node int, name string, s Session) Server
	clocks *clocks
	given  []string // the nodes that the program has given
	view   atomic.Pointer[View]
	lanes  atomic.Pointer[[]*Lane] // to all nodes that are members, or have just been, or are given: these come first

	mu      sync.Mutex        // protects what follows, and each change of view and lanes
	known   *wire.Description // that of the set, if this program is to use one
	refused error             // why this program cannot use the set
	news    chan struct{}     // closed when something of this, or of what a node keeps, has changed
	changed chan struct{}     // closed when another description has become known
	closed  bool
	made    int      // how many lanes there have been
	events  []func() // to be told by the goroutine that tells events now
	telling bool     // there is such a goroutine

	finishing bool        // a goroutine finishes a choice (finishes)
	later     *time.Timer // until the nodes are looked at again (lookLater); nil: none runs

	ctx   context.Context // of what the set does by itself: it ends with Close
	stop  context.CancelFunc
	tasks sync.WaitGroup // that

	lacking atomic.Bool                      // a member keeps no description, and may not be told yet
	ready   atomic.Pointer[wire.Description] // the last one that a quorum has kept

	lasts atomic.Int64 // quarantine

	unusable atomic.Pointer[wire.Description] // the last one by which this program must not count
}

// Open makes a lane to each node. The names are those in errors. Each node's index is sent to
// tried when its first attempt to connect has ended. Open is also called for nodes that become members
// later.
func Open(cfg Config, names []string, open func(node int, name string, s Session) Server, tried chan<- int) *Set {
	s := &Set{cfg: cfg, open: open, given: names, news: make(chan struct{}), changed: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.clocks = newClocks(&s.cfg)
	s.bound(cfg.MaxTTL)
	var lanes []*Lane
	s.mu.Lock() // a node that has connected waits until all is there
	defer s.mu.Unlock()
	for _, name := range names {
		lanes = append(lanes, s.newLane(name, tried))
	}
	s.lanes.Store(&lanes)
	s.setView(&View{Lanes: lanes, Quorum: cfg.Quorum})
	return s
}

// newLane makes a lane. Under the mutex.
func (s *Set) newLane(name string, tried chan<- int) *Lane {
	i := s.made
	s.made++
	m := newIncarnation(name, s, &s.cfg, s.clocks)
	return newLane(i, name, s.open(i, name, m), m, &s.cfg, tried)
}

// setView has everything go by a view from now on. Under the mutex.
func (s *Set) setView(v *View) {
	var elected []*nodeClock
	for _, n := range v.Lanes {
		elected = append(elected, &n.node.clock)
	}
	s.clocks.elect(elected)
	s.view.Store(v)
}

// quarantine is for how long a node has no vote after it may have forgotten something: for longer than any lock
// lives by the description that the client knows (Description.Longest).
func (s *Set) quarantine() time.Duration { return time.Duration(s.lasts.Load()) }

// bound makes all quarantines outlast locks with this TTL. Under the mutex; report must follow.
func (s *Set) bound(longest time.Duration) {
	s.clocks.tolerate(s.cfg.toleranceOf(longest))
	now := max(s.cfg.Quarantine, longest+s.cfg.DriftOf(longest))
	before := time.Duration(s.lasts.Swap(int64(now)))
	if before == 0 || before == now {
		return
	}
	s.events = append(s.events, func() {
		for _, n := range s.View().Lanes {
			n.node.requarantine(now > before)
		}
	})
}

// View is the members as they are known now.
func (s *Set) View() *View { return s.view.Load() }

// Lane gives the first lane to a node that was given; it may have been retired.
func (s *Set) Lane(given int) *Lane { return (*s.lanes.Load())[given] }

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
	s.mu.Lock()
	s.closed = true // no node becomes a member any more
	if s.later != nil {
		s.later.Stop()
	}
	s.mu.Unlock()
	s.stop()
	lanes := *s.lanes.Load()
	for _, n := range lanes {
		if n.retire() {
			n.close()
		}
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
	s.tasks.Wait()
}

// Weigh gives the number of requests that each lane keeps, of all that the set has: those that have not left yet,
// and the releases that it owes.
func (s *Set) Weigh() []int {
	lanes := *s.lanes.Load()
	all := make([]int, len(lanes))
	for i, n := range lanes {
		all[i] = n.weigh()
	}
	return all
}
