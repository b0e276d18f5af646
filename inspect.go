package redlock

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

// A State is what the answers of all nodes say of a lock.
type State uint8

const (
	StateUnknown State = iota // too few nodes have answered, or have a vote, to say
	StateFree                 // a quorum of nodes could grant it
	StateHeld                 // a quorum of nodes holds it for one owner
	StateSplit                // neither: it changes hands, or an attempt left something behind
)

func (v State) String() string {
	names := [...]string{"unknown", "free", "held", "split"}
	if int(v) >= len(names) {
		return fmt.Sprintf("State(%d)", v)
	}
	return names[v]
}

// A Status is what the nodes know of a lock.
type Status struct {
	Name  string
	State State

	// Of a lock that is held exclusively. Token is its token, and By what that says of the holder. TTL is how long until
	// the first of the quorum's keys expires, if nobody extends it; the holder's own validity ends a little earlier. Fence
	// is the number that a quorum of nodes has stored, of those that have the token and a vote; 0: too few nodes can say.
	// It may be larger than the holder's, where another name shares the counter, or nodes lost the lock and got it again.
	Token string
	By    Identity
	TTL   time.Duration
	Fence int64

	// Holders hold the lock in a mode other than exclusive, or something below it.
	Holders []Holder

	// Waiting are the waiters that the nodes know of, the next one first.
	Waiting []Waiter

	Nodes []NodeStatus
}

// A Holder is one of several who hold a lock, or something below it.
type Holder struct {
	Token string
	By    Identity // what the token says
	Mode  Mode
	TTL   time.Duration // until it expires
	Nodes int           // how many of the nodes have it
}

// A Mode is the lock mode of a [Holder].
type Mode string

const (
	ModeShared      Mode = "shared"
	ModeSlot        Mode = "slot"
	ModeBelow       Mode = "below"        // something below the folder is held alone
	ModeSharedBelow Mode = "shared below" // something below the folder is shared
)

var modes = map[wire.Mode]Mode{wire.ModeS: ModeShared, wire.ModeSlots: ModeSlot, wire.ModeIX: ModeBelow, wire.ModeIS: ModeSharedBelow}

// A Waiter is a process that waits for a lock, whatever the number of its callers.
type Waiter struct {
	Waiter string        // its name at the nodes
	Owner  string        // its Options.Owner
	Trace  string        // the trace that its last attempt belongs to; "": none, or not known
	For    time.Duration // how long it has waited
	Nodes  int           // how many of the nodes know of it
}

// A NodeStatus is what one node knows of a lock, and whether it has a vote.
type NodeStatus struct {
	Node  string
	Token string        // of the lock that is there; "": there is none
	TTL   time.Duration // until that expires, or the last of the Holders does
	Fence int64         // the counter, which other names may share: at least the number of the last grant; 0: there is none

	Holders []Holder // who holds it in a mode other than exclusive
	Waiting []Waiter // who waits, the next one first

	// Err says why the node has no vote; nil: it has one. A node in quarantine answers, but has no vote yet.
	Err *NodeError
}

// Inspect asks all nodes what they know of a lock. It takes at most Options.NodeTimeout, or until ctx ends. The Err of a
// node that has not answered by then says so. Inspect itself fails only for a bad name or a closed Locker.
func (lk *Locker) Inspect(ctx context.Context, name string) (*Status, error) {
	if err := lk.made(); err != nil {
		return nil, err
	}
	name, err := lk.settings().normalizeName(name)
	if err != nil {
		return nil, fmt.Errorf("redlock: inspect: %w", err)
	}
	view, nodes, err := lk.survey(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	return Judge(name, nodes, view.Quorum), nil
}

// Watch returns an iterator over the states of a lock: the present one, and then each that differs from the one before in
// its State, in who has the lock (Status.By.Since says since when), in its waiters, or in the nodes with a vote. It ends
// with ctx.
//
// Watch asks all nodes as Inspect does, with pauses of every between, at least 10 ms; 0 means a tenth of Options.TTL, at
// least 100 ms and at most a second. What lasts for less than that may not be seen. If too few nodes answer, the State is
// StateUnknown. An error ends the iterator: the name is bad, or the Locker was closed.
//
// With [Locker.Do] in a loop this is leader election: Do campaigns, its function resigns by returning, Watch observes.
func (lk *Locker) Watch(ctx context.Context, name string, every time.Duration) iter.Seq2[*Status, error] {
	return func(yield func(*Status, error) bool) {
		var last *Status
		for ctx.Err() == nil {
			s, err := lk.Inspect(ctx, name)
			switch {
			case err != nil:
				yield(nil, err)
				return
			case ctx.Err() != nil: // it knows no more than that
				return
			case last == nil || !s.same(last):
				if !yield(s, nil) {
					return
				}
				last = s
			}
			pause := max(every, 10*time.Millisecond)
			if every <= 0 {
				pause = waitlist.Heartbeat(lk.settings().TTL)
			}
			if err := lk.sleepFor(ctx, name, pause); err == ErrClosed {
				yield(nil, err)
				return
			}
		}
	}
}

// same reports whether two Statuses have the same State, holders, waiters, and nodes with a vote. Their order and their
// TTLs do not matter, nor does why a node has no vote.
func (s *Status) same(o *Status) bool {
	who := func(s *Status) (all []string) {
		for _, h := range s.Holders {
			all = append(all, string(h.Mode)+" "+h.Token)
		}
		for _, w := range s.Waiting {
			all = append(all, w.Waiter)
		}
		for _, n := range s.Nodes {
			if n.Err == nil {
				all = append(all, n.Node)
			}
		}
		slices.Sort(all)
		return all
	}
	return s.State == o.State && s.Token == o.Token && slices.Equal(who(s), who(o))
}

// Judge draws the conclusion that [Locker.Inspect] draws from what the nodes say of a lock, for a program that has
// asked them itself. quorum is how many of them must grant the lock ([Members.Quorum]); a node without an entry counts
// as one that does not exist. The Status keeps nodes, which the caller must not change after that.
func Judge(name string, nodes []NodeStatus, quorum int) *Status {
	s := &Status{Name: name, Nodes: nodes}
	free, taken := 0, 0
	holders := make(map[string]int)
	answers := 0
	s.Waiting, s.Holders = waiting(s.Nodes), holding(s.Nodes)
	for _, n := range s.Nodes {
		if n.Err != nil && n.Err.Outcome != OutcomeQuarantined {
			continue
		}
		answers++
		switch {
		case n.Token != "":
			holders[n.Token]++
			taken++
		case len(n.Holders) > 0:
			taken++
		case n.Err == nil:
			free++
		}
	}
	for token, votes := range holders {
		if votes >= quorum {
			s.State, s.Token, s.By = StateHeld, token, Identify(token)
		}
	}
	for _, h := range s.Holders {
		if h.Nodes >= quorum {
			s.State, s.TTL = StateHeld, max(s.TTL, h.TTL)
		}
	}
	switch {
	case s.Token != "":
		s.until(quorum)
		s.numbered(quorum)
	case s.State == StateHeld:
	case free >= quorum:
		s.State = StateFree
	case answers >= quorum && taken > 0: // otherwise nodes that may have forgotten the holder say that there is none
		s.State = StateSplit
	}
	return s
}

// waiting makes one list of the waiters that the nodes name, each once; the one that has waited longest comes first.
func waiting(nodes []NodeStatus) (all []Waiter) {
	for _, n := range nodes {
		for _, w := range n.Waiting {
			i := slices.IndexFunc(all, func(a Waiter) bool { return a.Waiter == w.Waiter })
			if i < 0 {
				all = append(all, w)
				continue
			}
			all[i].Nodes++
			all[i].For = max(all[i].For, w.For)
		}
	}
	slices.SortStableFunc(all, func(a, b Waiter) int { return cmp.Compare(b.For, a.For) })
	return all
}

// holding makes one list of the holders in a mode other than exclusive that the nodes name, each once.
func holding(nodes []NodeStatus) (all []Holder) {
	for _, n := range nodes {
		for _, h := range n.Holders {
			i := slices.IndexFunc(all, func(a Holder) bool { return a.Token == h.Token && a.Mode == h.Mode })
			if i < 0 {
				all = append(all, h)
				continue
			}
			all[i].Nodes++
			all[i].TTL = min(all[i].TTL, h.TTL)
		}
	}
	return all
}

// until sets s.TTL: for how long a quorum of nodes still has the holder's key, if nobody extends it. A quorum has it now.
func (s *Status) until(quorum int) {
	var ttls []time.Duration
	for _, n := range s.Nodes {
		if n.Token == s.Token {
			ttls = append(ttls, n.TTL)
		}
	}
	slices.Sort(ttls)
	s.TTL = ttls[len(ttls)-quorum]
}

// numbered sets s.Fence, by the nodes with the holder's token and a vote, to the number that a quorum of them has reached;
// 0: they are too few. The largest may be no fence: a node that lost its data and got the token again numbers by its clock.
func (s *Status) numbered(quorum int) {
	var numbers []int64
	for _, n := range s.Nodes {
		if n.Token == s.Token && n.Err == nil {
			numbers = append(numbers, n.Fence)
		}
	}
	if len(numbers) >= quorum {
		slices.Sort(numbers)
		s.Fence = numbers[len(numbers)-quorum]
	}
}

// survey asks the nodes about a name (as askAbout, with enough), and returns their answers and the view of the set by which
// it asked. If the client learns meanwhile that the set was changed, survey asks again, by the new view: a node may have had
// no vote only because the client did not know the description that the node keeps. The error is ErrClosed.
func (lk *Locker) survey(ctx context.Context, name string, enough int) (*set.View, []NodeStatus, error) {
	if err := lk.enter(); err != nil {
		return nil, nil, err
	}
	defer lk.leave()
	for {
		view := lk.lanes.View()
		nodes := lk.askAbout(ctx, view, name, enough)
		if lk.lanes.View().Description == view.Description || ctx.Err() != nil {
			return view, nodes, nil
		}
	}
}

// askAbout asks the nodes of a view about a name, and returns a NodeStatus for each, in order. It waits for all, a
// NodeTimeout at most, or until ctx ends. If enough is not 0, it waits only until that many nodes with a vote have answered.
// A node that has not answered by then has OutcomeTimeout.
func (lk *Locker) askAbout(ctx context.Context, view *set.View, name string, enough int) []NodeStatus {
	n := len(view.Lanes)
	c := &census{left: n, wanted: enough, replied: make([]bool, n), all: make(chan struct{}), nodes: make([]NodeStatus, n)}
	key := lk.settings().Prefix + name
	about := &lane.Claim{Key: key, Keys: []string{key}}
	sent := lk.now()
	for i, n := range view.Lanes {
		c.nodes[i].Node = n.Name
		q := &lane.Request{Op: wire.Inspect, Claim: about, Deadline: sent.Add(lk.settings().NodeTimeout), To: asked{c, i}, By: view.Description}
		if n.Submit(q, sent) {
			c.take(i, q)
		}
	}
	limit := time.NewTimer(lk.settings().NodeTimeout)
	defer limit.Stop()
	select {
	case <-c.all:
	case <-limit.C:
	case <-ctx.Done():
	}
	why, waited := ended(ctx), elapsed(sent, lk.now()) // not under c.mu: a look at a lock's context may end the lock
	c.mu.Lock()
	nodes, told := slices.Clone(c.nodes), slices.Clone(c.replied)
	c.mu.Unlock()
	for i := range nodes {
		switch n := &nodes[i]; {
		case !told[i]:
			n.Err = &NodeError{Node: n.Node, Outcome: OutcomeTimeout, Elapsed: waited, Err: why}
		case n.Err != nil && n.Err.votes(): // it votes, now that other nodes have answered
			n.Err = nil
		}
	}
	return nodes
}

// A census collects the nodes' answers to one askAbout.
type census struct {
	mu      sync.Mutex    // protects what follows
	left    int           // nodes that have not answered
	wanted  int           // how many more answers of nodes with a vote are enough
	replied []bool        // by the node's place in the view
	all     chan struct{} // closed when all have answered, or enough have
	nodes   []NodeStatus
}

// An asked receives the answer of one node, at its place in the view.
type asked struct {
	*census
	at int
}

func (a asked) Deliver(_ *lane.Lane, q *lane.Request) { a.take(a.at, q) }

// take notes the answer of a node to q; node is its place in the view.
func (c *census) take(node int, q *lane.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &q.Reply
	c.replied[node] = true
	s := &c.nodes[node]
	s.Token, s.TTL, s.Fence, s.Err = a.Holder, max(0, a.TTL), a.Fence, nil
	for _, h := range a.Holders {
		s.Holders = append(s.Holders, Holder{Token: h.Token, By: Identify(h.Token), Mode: modes[h.Mode], TTL: h.TTL, Nodes: 1})
	}
	for _, e := range a.Queue {
		if e.Lives(a.Time) {
			by := e.By()
			s.Waiting = append(s.Waiting, Waiter{Waiter: e.Waiter, Owner: by.Owner, Trace: by.Trace, For: max(0, time.Duration(a.Time-e.Ticket)*time.Microsecond), Nodes: 1})
		}
	}
	if a.Status != wire.Granted {
		why := nodeError(s.Node, a, 0)
		s.Err = &why
	}
	c.left--
	if s.Err == nil {
		c.wanted--
	}
	if c.left == 0 || s.Err == nil && c.wanted == 0 {
		c.finish()
	}
}

// finish closes c.all, so that askAbout returns, if it is not closed yet. Caller holds c.mu.
func (c *census) finish() {
	select {
	case <-c.all:
	default:
		close(c.all)
	}
}

// nobodys is a name of no lock, about which nodes are asked to see whether they can vote. It must not be the key of
// something else, as the marker is.
const nobodys = "redlock:prepare"

// WaitReady waits until a quorum of the nodes can vote. New nodes cannot before Options.Quarantine is over: call
// WaitReady when nodes are deployed, so that the first lock on them does not have to wait. The quarantine begins when a
// client first reaches a node, and ends by itself, also if the program stops waiting.
//
// WaitReady does not wait for a node that is down, or has come back a moment ago, as long as the others are a quorum;
// the command redlock prepare waits for all nodes.
//
// When ctx ends first, the error is a [QuorumError], ErrNoQuorum and ctx's, and says why each node cannot vote. If the
// Locker is closed first, it is ErrClosed. If this program's options are not those of the set, WaitReady fails at once.
func (lk *Locker) WaitReady(ctx context.Context) error {
	if err := lk.made(); err != nil {
		return err
	}
	var last *QuorumError
	for {
		if err := lk.ready(ctx); err != nil {
			return err
		}
		view, nodes, err := lk.survey(ctx, nobodys, lk.lanes.View().Quorum)
		if err != nil {
			return err
		}
		absent := &QuorumError{Op: "wait-ready", N: len(nodes), Need: view.Quorum, Granted: len(nodes), Kind: ErrNoQuorum}
		wait := time.Second
		for _, n := range nodes {
			if n.Err == nil {
				continue
			}
			absent.Granted--
			absent.Failed++
			absent.note(n.Err)
			if n.Err.Outcome == OutcomeQuarantined {
				wait = min(wait, n.Err.TTL+time.Millisecond)
			}
		}
		if absent.Granted >= absent.Need {
			return nil
		}
		if last == nil || ctx.Err() == nil { // otherwise it was cut short, and knows less
			last = absent
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
			last.Cause = ended(ctx)
		case <-lk.closing:
			last.Cause = ErrClosed
		}
		timer.Stop()
		return last
	}
}
