// Package set keeps what the nodes say of their set: which description is believed (members.go), how the next one is chosen
// (choice.go), and what a change waits for (change.go). It makes the lanes to the members.
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

// A Config says how a set works. All fields are set.
type Config struct {
	vote.Config
	Quorum   int
	Accept   func(*wire.Description) error                                       // whether this program can use a set with it
	Identify func(ctx context.Context, address string) (runID string, err error) // asks what answers at an address; nil: it cannot be asked
	Events   Events
}

// Events are called when something happens that an operator may want to know. Joined and Members are called in the order in
// which they happened.
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
	given []string // the nodes that the program has given
	view  atomic.Pointer[View]
	nodes atomic.Pointer[[]*node] // all that are members, or have just been, or are given: these come first

	mu      sync.Mutex        // protects what follows, and each change of view and lanes
	known   *wire.Description // that of the set, if this program is to use one
	refused error             // why this program cannot use the set
	news    chan struct{}     // closed when something of this, or of what a node keeps, has changed
	changed chan struct{}     // closed when another description has become known
	closed  bool
	made    int // how many lanes there have been

	finishing bool        // a goroutine finishes a choice (finishes)
	later     *time.Timer // until the nodes are looked at again (lookLater); nil: none runs

	ctx   context.Context // of what the set does by itself: it ends with Close
	stop  context.CancelFunc
	tasks sync.WaitGroup // that

	lacking atomic.Bool                      // a member keeps no description, and may not be told yet
	ready   atomic.Pointer[wire.Description] // the last one that a quorum has kept
}

// Open makes a lane to each node. The names are those in errors. Each node's index is sent to
// tried when its first attempt to connect has ended. Open is also called for nodes that become members
// later.
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

// setView has everything go by a view from now on. Under the mutex.
func (s *Set) setView(v *View) {
	var members []*vote.Node
	for _, n := range v.nodes {
		members = append(members, n.vote)
	}
	s.group.Elect(members)
	s.view.Store(v)
}

// View is the members as they are known now.
func (s *Set) View() *View { return s.view.Load() }

// Lane gives the first lane to a node that was given; it may have been retired.
func (s *Set) Lane(given int) *lane.Lane { return (*s.nodes.Load())[given].Lane }

// Ticket is an instant of the client's, in microseconds, by the median of the nodes' clocks. It is
// good if the median is known to within NodeTimeout. Otherwise a majority of the nodes has not
// replied yet, or only later than any request waits, or a long time ago.
func (s *Set) Ticket(at time.Time) (ticket int64, good bool) {
	ticket, width, known := s.group.Ticket(at)
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
	for _, n := range s.View().nodes {
		if n.vote.ScriptOnly() {
			return 0, false
		}
	}
	return s.Ticket(at)
}

// Beyond gives by how much a fence is ahead of the median of the nodes' clocks, if that is so much
// that the grant is no vote; else 0. See fence.go.
func (s *Set) Beyond(number int64, now time.Time) time.Duration {
	return s.group.Beyond(number, s.group.Middle(now))
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

// Weigh gives the number of requests that each lane keeps, of all that the set has: those that have not left yet,
// and the releases that it owes.
func (s *Set) Weigh() []int {
	nodes := *s.nodes.Load()
	all := make([]int, len(nodes))
	for i, n := range nodes {
		all[i] = n.Weigh()
	}
	return all
}
