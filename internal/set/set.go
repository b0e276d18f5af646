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
	Quorum   int                                                                 // how many of the given nodes must grant a lock, until the set's description says it
	Accept   func(*wire.Description) error                                       // returns why this program cannot use a set with this description; nil: it can. Set.mu is held
	Identify func(ctx context.Context, address string) (runID string, err error) // asks what answers at an address for its run_id; "": it does not say. A nil Identify: nobody can be asked
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
	nodes atomic.Pointer[[]*node] // the given nodes first; then all that are members, were until lately, or may become members (lasting). Never changed in place

	mu      sync.Mutex        // protects what follows, and each change of view and nodes
	known   *wire.Description // the set's description by which the client goes; nil: none yet
	refused error             // why this program cannot use the set; nil: it can
	news    chan struct{}     // closed, and made anew, when known, refused, or what a node keeps may have changed
	changed chan struct{}     // closed, and made anew, when known has changed
	closed  bool
	made    int // how many lanes were made: the index of the next one

	finishing bool        // a goroutine of finishChoice runs
	later     *time.Timer // runs strangers again (lookLater); nil: it is not set

	ctx   context.Context // of what the set does by itself; Close ends it
	stop  context.CancelFunc
	tasks sync.WaitGroup // the goroutines of that

	lacking atomic.Bool                      // a member has lost the description of the set, and may not be given it yet (mayTell)
	ready   atomic.Pointer[wire.Description] // the last description that a quorum was seen to keep; nil: none (Agreed)
}

// Open makes a Set, with a lane (queue of requests) to each given node, and does not wait until they connect. names are the
// nodes' names in errors. open returns a Server, not connected yet, for the node of this name, as number node (first those
// of names); the Server tells s what the node says of itself. open must not block: Set.mu is held, also when a node is added
// later. tried gets a given node's index when the first attempt to connect has ended, well or not; it needs room for all.
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

// setView makes v what View returns, and its members the nodes of whose clocks s.group takes the median. Caller holds s.mu.
func (s *Set) setView(v *View) {
	var members []*vote.Node
	for _, n := range v.nodes {
		members = append(members, n.vote)
	}
	s.group.Elect(members)
	s.view.Store(v)
}

// View returns the members and their quorum as known now: at first, the given nodes and Config.Quorum. A View never changes.
func (s *Set) View() *View { return s.view.Load() }

// Lane returns the lane to the given node with this index in Open's names. If that is no member any more, it may be retired.
func (s *Set) Lane(given int) *lane.Lane { return (*s.nodes.Load())[given].Lane }

// Ticket returns a waiter's rank in the queues: at, an instant of the client's clock, in microseconds by the median of the
// nodes' clocks, so that all clients' ranks can be compared. good is false if the median is not known to within NodeTimeout:
// too few nodes for a majority have replied yet, or have replied fast, or lately.
func (s *Set) Ticket(at time.Time) (ticket int64, good bool) {
	ticket, width, known := s.group.Ticket(at)
	return ticket, known && width <= s.cfg.NodeTimeout
}

// Number returns the fence (fencing token) to propose for a lock that is acquired by plain commands, without a script
// (wire.PlainAnswer): at by the median of the nodes' clocks, in microseconds. An attempt with a number that is too small
// fails. If good is false, use the script: the median is not known well enough (Ticket), a member's server does not serve
// plain acquires, or MaxNodeSkew is off, so that one fence from the future would make all numbers too small until that time.
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

// Beyond returns by how much number, a fence (as a rule the time of its attempt, in microseconds), is ahead of the median of
// the nodes' clocks, if that is too much for a vote (vote.Group.Beyond); 0: it is not, or the median is not known at now.
func (s *Set) Beyond(number int64, now time.Time) time.Duration {
	return s.group.Beyond(number, s.group.Middle(now))
}

// Close makes the lanes send what they have, and waits until they and the set's goroutines have ended. After patience it
// makes all calls to nodes fail, so that the lanes end soon.
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

// Weigh returns how many requests each lane holds, Open's first, then by age: unsent ones, and releases that no reply
// settled.
func (s *Set) Weigh() []int {
	nodes := *s.nodes.Load()
	all := make([]int, len(nodes))
	for i, n := range nodes {
		all[i] = n.Weigh()
	}
	return all
}
