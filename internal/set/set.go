// Package set keeps what the nodes say of their set: which description of it (members, quorum, longest TTL …) is believed
// (members.go), how the next one is chosen (choice.go), and what a change waits for (change.go). It makes the lanes.
package set

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Config says how a set works. All fields must be set.
type Config struct {
	vote.Config
	Quorum   int                                                                 // of the given nodes, as long as the set's is not known
	Accept   func(*wire.Description) error                                       // why this program cannot use a set with this description; nil: it can
	Identify func(ctx context.Context, address string) (runID string, err error) // asks for the run_id of what answers at an address; nil: it cannot be asked
	Events   Events
}

// Events are called when something happens that an operator may want to know. Joined and Members are called in order.
type Events interface {
	vote.Events
	Joined(d *wire.Description)  // the set's description is known, for the first time
	Members(d *wire.Description) // the set has been changed
}

// A Set has the lanes to all nodes of a Locker, and what is known about the nodes together.
type Set struct {
	cfg   Config
	open  func(node int, name string, s lane.Session) lane.Server
	group *vote.Group
	given []string // the names of the nodes that the program was given
	view  atomic.Pointer[View]
	nodes atomic.Pointer[[]*node] // the given nodes first; then all that are members, have just been, or are to become members

	mu      sync.Mutex        // protects what follows, and each change of view and nodes
	known   *wire.Description // the set's description by which the client goes; nil: none yet
	refused error             // why this program cannot use the set; nil: it can
	news    chan struct{}     // closed, and made anew, when one of these, or what a node keeps, has changed
	changed chan struct{}     // the same, when known has changed
	closed  bool
	made    int // how many lanes there have been

	finishing bool        // a goroutine finishes a choice (finishes)
	later     *time.Timer // runs strangers again (lookLater); nil: it is not set

	ctx   context.Context // of what the set does by itself; Close ends it
	stop  context.CancelFunc
	tasks sync.WaitGroup // the goroutines of that

	lacking atomic.Bool                      // a member keeps no description, and may not be given it yet (mayTell)
	ready   atomic.Pointer[wire.Description] // the last one that a quorum was seen to keep; nil: none
}

// Open makes a Set, and a lane to each given node. names are those in errors. open makes the connection to a node, also
// later, when another node becomes a member. tried gets each given node's index when the first attempt to connect has ended.
func Open(cfg Config, names []string, open func(node int, name string, s lane.Session) lane.Server, tried chan<- int) *Set {
	s := &Set{cfg: cfg, open: open, given: names, news: make(chan struct{}), changed: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.cfg.Config.Events = cfg.Events
	s.group = vote.NewGroup(&s.cfg.Config)
	var nodes []*node
	s.mu.Lock() // a node that has connected waits until all is there
	defer s.mu.Unlock()
	for _, name := range names {
		nodes = append(nodes, s.newNode(name, tried))
	}
	s.nodes.Store(&nodes)
	s.setView(newView(nodes, cfg.Quorum, nil))
	return s
}

// setView makes v, the members and their quorum, the view of all that begins from now on. Caller holds s.mu.
func (s *Set) setView(v *View) {
	var members []*vote.Node
	for _, n := range v.nodes {
		members = append(members, n.vote)
	}
	s.group.Elect(members)
	s.view.Store(v)
}

// View returns the members as they are known now.
func (s *Set) View() *View { return s.view.Load() }

// Lane returns the first lane to a given node, by its index; it may have been retired.
func (s *Set) Lane(given int) *lane.Lane { return (*s.nodes.Load())[given].Lane }

// Ticket returns an instant of the client's, in microseconds, by the median of the nodes' clocks: a waiter's rank in the
// queues. good is false if the median is not known to within NodeTimeout: a majority of the nodes has not replied yet, or
// only later than any request waits, or a long time ago.
func (s *Set) Ticket(at time.Time) (ticket int64, good bool) {
	ticket, width, known := s.group.Ticket(at)
	return ticket, known && width <= s.cfg.NodeTimeout
}

// Number returns the fence to propose for a lock that is acquired by plain commands (wire.PlainAnswer): the time at by the
// median of the nodes' clocks, in microseconds. good is false if that is not known well enough, or a member has no vote for
// such a lock; a number that is too small costs an attempt. It is also false without MaxNodeSkew: then fences of the future
// count, and the number may be too small until time has caught up with one.
func (s *Set) Number(at time.Time) (number int64, good bool) {
	if s.cfg.MaxNodeSkew <= 0 {
		return 0, false
	}
	for _, n := range s.View().nodes {
		if n.vote.ScriptOnly() {
			return 0, false
		}
	}
	return s.Ticket(at)
}

// Beyond returns by how much a fence is ahead of the median of the nodes' clocks, if too much for a vote (fence.go); else 0.
func (s *Set) Beyond(number int64, now time.Time) time.Duration {
	return s.group.Beyond(number, s.group.Middle(now))
}

// Close makes the lanes send what they have, for at most patience, and waits until they and the set's goroutines end.
func (s *Set) Close(patience time.Duration) {
	s.mu.Lock()
	s.closed = true // no node becomes a member any more
	if s.later != nil {
		s.later.Stop()
	}
	s.mu.Unlock()
	s.stop()
	nodes := *s.nodes.Load()
	for _, n := range nodes {
		if n.Retire() {
			n.end()
		}
	}
	limit := time.AfterFunc(patience, func() {
		for _, n := range nodes {
			n.Force()
		}
	})
	defer limit.Stop()
	for _, n := range nodes {
		n.Wait()
	}
	s.tasks.Wait()
}

// Weigh returns for each lane how many requests it holds: those that have not left yet, and the releases that it owes.
func (s *Set) Weigh() []int {
	nodes := *s.nodes.Load()
	all := make([]int, len(nodes))
	for i, n := range nodes {
		all[i] = n.Weigh()
	}
	return all
}
