package set

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// How the members of a set choose its next description: by ballots, as in Paxos (choose.lua). members.go says what becomes
// of a chosen one, and change.go when the next one may be chosen.

// A Progress is called with what a change waits for, and for how long at most; 0: it cannot be said.
type Progress func(what string, most time.Duration)

// A wait bounds how long one caller waits for answers of nodes, in all, by a context and a timer. One goroutine uses it.
type wait struct {
	ctx   context.Context
	host  sim.Host
	timer *time.Timer
	key   string // names the caller for sim.Host.Woke, by which tests order goroutines
	turn  int    // counts its waits, for the same
	plan  bool   // a plan of a change: it waits for nothing that takes long
	over  bool   // the time is over, or ctx has ended: the caller gives up

	limited bool            // the timer runs
	cut     <-chan struct{} // when it is closed, the caller goes on at once, but over stays false; nil: it never is
}

// newWait returns a wait that is over after limit (Change makes one without), or when ctx ends. The caller must call stop.
func (s *Set) newWait(ctx context.Context, limit time.Duration) *wait {
	return &wait{ctx: ctx, host: s.cfg.Host, timer: time.NewTimer(limit), key: s.cfg.Host.Token(), limited: true}
}

// sooner returns another wait with w's key, over after limit or with w.ctx: use one at a time. The caller must stop both.
func (w *wait) sooner(limit time.Duration) *wait {
	sooner := *w
	sooner.timer, sooner.turn = time.NewTimer(limit), 1<<16
	return &sooner
}

func (w *wait) stop() { w.timer.Stop() }

// prolong moves the end of w to d from now, if w has a limit. Otherwise, where one of the two round trips of a choice takes
// more than half of a NodeTimeout, each caller would give up before its choice ends, and the next begin another.
func (w *wait) prolong(d time.Duration) {
	if w.limited {
		w.timer.Reset(d)
	}
}

// wait blocks until done or w.cut is closed, or w is over (its time, or its context). It returns false only if w is over.
func (w *wait) wait(done <-chan struct{}) bool {
	select {
	case <-done:
	case <-w.cut:
	case <-w.timer.C:
		w.over = true
	case <-w.ctx.Done():
	}
	w.turn++
	w.host.Woke(sim.Caller, w.key, -w.turn)
	w.over = w.over || w.ctx.Err() != nil
	return !w.over
}

// pause blocks for d, or until w is over or w.cut is closed.
func (w *wait) pause(d time.Duration) {
	if w.over { // its timer fires no more
		return
	}
	done := make(chan struct{})
	timer := time.AfterFunc(d, func() { close(done) })
	defer timer.Stop()
	w.wait(done)
}

// choose has a majority of the members of v choose the set's description of the next epoch, and returns it: the proposal, or
// one that may have been chosen already (Paxos; see choose.lua). With a nil proposal it finishes what was chosen, and
// proposes nothing. It returns nil if w ends first, or the client comes to go by another description than v's.
//
// A member is given the next description when that is chosen; but no node decides alone, and one may keep what nobody has
// chosen. A member that keeps it counts as one that has taken it with the largest of all ballots in two cases only:
//
//   - Another one has taken or keeps the same description, or the proposal is the same. That is always so if it was chosen
//     and no majority keeps it yet: in the majority that has taken it, one member does not keep it.
//   - All members have answered, one may have forgotten that it took the same, and none has taken or keeps another one.
//     Otherwise a set of which a member lost its data in the middle of a change could not be changed, nor lock anything.
//
// The first description of a set needs an answer of each given node that it keeps none; only nodes that are known to be away
// need not answer. Otherwise a client could make the set anew with a shorter MaxTTL while a long lock is held: client 1 has
// met node C when C kept none; client 2 then makes the set, and takes a long lock; nodes A and B lose their data, and C is
// slow. It is enough if a majority has lost nothing for as long as any lock can live, like nodes that redlock prepare
// --fresh has made ready. Their answers must show the marker by which the client knows that, since the client may have been
// idle. Even then the others have a moment to answer (grace): a node that is given the first description, and has taken no
// part in its choice, looks like one that has lost its data, and counts for the choice of the next only if all members agree
// (choose.lua). With another one dead, the set could not be changed.
//
// tell is called if choose waits until all members say yes, because some may have lost data; it may be nil.
func (s *Set) choose(w *wait, proposal *wire.Description, v *View, tell Progress) *wire.Description {
	s.mu.Lock()
	stale := s.known != v.Description
	w.cut = s.changed // a node that hangs must not keep the caller from what others have chosen
	s.mu.Unlock()
	defer func() { w.cut = nil }()
	if stale {
		return nil
	}
	c := &choice{s: s, w: w, view: v, proposal: proposal, epoch: 1, need: len(v.nodes)/2 + 1}
	largest, settled, grace := "", c.need, s.cfg.NodeTimeout/8
	if !c.first() {
		c.set, c.epoch = v.Description.Set, v.Description.Epoch+1
		settled, grace = 0, 0
	}
	for !w.over {
		ballot := s.ballot(largest)
		p, promised := c.ask(ballot, nil, 0, settled)
		unheard := s.settled(p) < settled && slices.ContainsFunc(v.nodes, func(n *node) bool { return !slices.Contains(p.from, n) && n.Away() == nil })
		if tell != nil && promised.yes < c.need && promised.yes+promised.lost >= c.need {
			tell(promised.waitsFor(v), 0)
			tell = nil
		}
		largest = max(largest, promised.largest)
		if value := promised.value; promised.yes >= c.need && value != nil && !unheard && (!c.first() || promised.ahead == 0) {
			w.prolong(s.cfg.NodeTimeout)
			_, taken := c.ask(ballot, value, grace, 0)
			if taken.yes >= c.need {
				return wire.ParseDescription(value.Text()) // as all others read it
			}
			largest = max(largest, taken.largest)
		}
		if promised.ahead > 0 { // joining them tells which description they keep
			rejoinAll(v.nodes)
		}
		s.mu.Lock()
		over := s.known != v.Description || promised.ahead >= c.need
		s.mu.Unlock()
		if over || proposal == nil && promised.yes >= c.need {
			return nil
		}
		w.pause(lane.Jittered(s.cfg.NodeTimeout/4, s.cfg.Host.Jitter())) // jitter: two that go on at once would refuse each other again
	}
	return nil
}

// A choice is one call of choose.
type choice struct {
	s        *Set
	w        *wait
	view     *View
	proposal *wire.Description // nil: finish what was chosen
	set      string            // the name of the set; "" for its first description
	epoch    int64
	need     int // how many members choose: a majority
}

// first reports whether this is the choice of the first description of a set.
func (c *choice) first() bool { return c.view.Description == nil }

// fits reports whether d, a description that a member keeps or has taken, can be what is chosen: it has this epoch and set,
// and adds or removes at most one member; or, as the set's first one, has the members of the proposal, if any. d nil: false.
func (c *choice) fits(d *wire.Description) bool {
	switch {
	case d == nil || d.Epoch != c.epoch:
		return false
	case c.first():
		return c.proposal == nil || d.Alike(c.proposal)
	}
	return d.Set == c.set && c.view.Description.Near(d)
}

// ask asks the members to take value, a description, with this ballot; nil: to promise to take none with a smaller one. It
// waits until a majority agrees, and at least settled nodes (a number) have lost nothing for a year (Set.settled), then for
// grace; at most until all have answered, or a NodeTimeout or c.w is over. It returns the answers and their count.
func (c *choice) ask(ballot string, value *wire.Description, grace time.Duration, settled int) (*poll, votes) {
	args := []string{strconv.FormatInt(c.epoch, 10), ballot, "", c.set, ""}
	if value != nil {
		args[2] = value.Text()
	}
	p := c.s.poll(c.w, c.view, wire.Choose, args, grace, func(p *poll) bool {
		return c.count(p, ballot, value).yes >= c.need && c.s.settled(p) >= settled
	})
	return p, c.count(p, ballot, value)
}

// settled counts the nodes of p that have lost nothing for a year, as long as any lock can live: each has answered with the
// marker that the client knew (a key that shows that no data was lost), and that is a year old.
func (s *Set) settled(p *poll) (settled int) {
	long := s.cfg.Clock.Now().Add(-wire.Milliseconds(wire.MaxMillis))
	for _, n := range p.same {
		if lost, _ := n.vote.LostAt(); n.vote.HasMet() && lost.Before(long) {
			settled++
		}
	}
	return settled
}

// ballot returns a new ballot (a rank, as in Paxos) above than ("": above none): 24 digits as text, unique by random digits.
func (s *Set) ballot(than string) string {
	at := s.cfg.Clock.Now().UnixMicro()
	if len(than) == 24 {
		if n, err := strconv.ParseInt(than[:16], 10, 64); err == nil {
			at = max(at, n+1)
		}
	}
	return fmt.Sprintf("%016d%08d", at, int64(s.cfg.Host.Jitter()*1e8))
}

// A poll collects the nodes' answers to one request. It is the recipient of the requests (lane.Recipient).
type poll struct {
	asked []*node

	mu     sync.Mutex       // protects what follows
	open   int              // how many nodes have not answered
	said   []any            // the replies of those that have carried the request out
	by     []*node          // the node that sent each of said
	from   []*node          // the nodes that have answered, also with an error, in time
	same   []*node          // in a choice: those whose marker is the one that the client knew, so that they have kept their data
	denied error            // a refusal by a node that trying again does not change: the user may not run the script, or the server cannot; nil: none
	enough func(*poll) bool // whether these answers are enough
	grace  time.Duration    // for how long the others may still answer then
	done   chan struct{}    // closed when grace is over, all have answered, or the time is over
}

// poll sends the script of op with args to the members of v, and returns a copy of their answers when enough is true of
// these and grace is over; or when all have answered, or a NodeTimeout or w is over. enough runs with poll.mu held.
func (s *Set) poll(w *wait, v *View, op wire.Op, args []string, grace time.Duration, enough func(*poll) bool) *poll {
	p := &poll{enough: enough, grace: grace, asked: v.nodes, open: len(v.nodes), done: make(chan struct{})}
	about := &lane.Claim{Key: "redlock:set"}
	now := s.cfg.Clock.Now()
	for _, n := range v.nodes {
		q := &lane.Request{Op: op, Claim: about, Deadline: now.Add(s.cfg.NodeTimeout), To: p, Args: args}
		if n.Submit(q, now) {
			p.Deliver(n.Lane, q)
		}
	}
	limit := time.AfterFunc(s.cfg.NodeTimeout, p.end)
	defer limit.Stop()
	w.wait(p.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	return &poll{asked: p.asked, said: slices.Clone(p.said), by: slices.Clone(p.by), from: slices.Clone(p.from), same: slices.Clone(p.same), denied: p.denied}
}

// Deliver adds a node's answer to p: q.Reply, or why there is none. p ends when all have answered, or, after p.grace, when
// p.enough is true.
func (p *poll) Deliver(from *lane.Lane, q *lane.Request) {
	n := p.asked[slices.IndexFunc(p.asked, func(n *node) bool { return n.Lane == from })]
	p.mu.Lock()
	if p.open--; q.Reply.Status != wire.Timeout {
		p.from = append(p.from, n)
	}
	switch {
	case q.Reply.Status == wire.Granted:
		p.said, p.by = append(p.said, q.Said), append(p.by, n)
		known, is := wire.ParseMarker(q.Mark)
		if c, ok := wire.ParseChosen(q.Said); ok && is {
			if mark, is := wire.ParseMarker(c.Marker); is && mark.Same(known) {
				p.same = append(p.same, n)
			} else {
				n.Rejoin() // otherwise it takes no part (choose.lua)
			}
		}
	case wire.Forbids(q.Reply.Err):
		p.denied = fmt.Errorf("node %s: %w", n.Name, q.Reply.Err)
	}
	over, enough := p.open == 0, p.enough(p)
	p.mu.Unlock()
	switch {
	case over, enough && p.grace == 0:
		p.end()
	case enough:
		time.AfterFunc(p.grace, p.end)
	}
}

func (p *poll) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
	default:
		close(p.done)
	}
}

// A votes is the count of the answers to one step (promise, or take) of a choice.
type votes struct {
	yes     int               // how many have promised, or have taken the value
	lost    int               // how many more have, but may have lost data: they count only if all members agree
	agreed  []*node           // the nodes of yes and lost
	ahead   int               // how many keep a description of the epoch, or a later one, and do not count
	largest string            // the largest ballot that a node has promised
	value   *wire.Description // what the members are to take next: what some have taken with the largest ballot, or the proposal; nil: nothing
}

// waitsFor returns a text for the operator: the choice waits until all members agree, and which members of v do not yet.
func (all *votes) waitsFor(v *View) string {
	var missing []string
	for _, n := range v.nodes {
		if !slices.Contains(all.agreed, n) {
			missing = append(missing, n.Name)
		}
	}
	return fmt.Sprintf("all %d members to agree (%s): %d may have lost data since the last change, and count for this one only then. A member must answer, and keep the description of this set (redlock doctor). For one that is gone for good, start an empty server at its address", len(v.nodes), strings.Join(missing, ", "), all.lost)
}

// count counts the answers in p to a step with this ballot: to take value, a description; if it is nil, only to promise.
//
// A node that may have forgotten what it took counts if all members say yes. Otherwise two descriptions of one epoch could
// be chosen: A and B take one, B loses its data and is given the earlier description again, and B and C take another. It is
// not enough that A answers: A refuses if it has promised or taken a larger ballot than this client's, or keeps what A and B
// have taken, and B and C would take the other one all the same (UNANIMOUS in docs/model).
func (c *choice) count(p *poll, ballot string, value *wire.Description) (all votes) {
	type answer struct {
		wire.Chosen
		by           *node
		keeps, taken *wire.Description
	}
	var said []answer
	for i, v := range p.said {
		if a, ok := wire.ParseChosen(v); ok {
			said = append(said, answer{a, p.by[i], wire.ParseKept(a.Kept).Description, wire.ParseDescription(a.Value)})
		}
	}
	same := func(a, b *wire.Description) bool { return a != nil && b != nil && a.Text() == b.Text() }
	next := func(d *wire.Description) bool {
		return d != nil && d.Epoch >= c.epoch && (c.set == "" || d.Set == c.set)
	}
	// All members have answered, and one of them may have forgotten what it took.
	forgot := c.set != "" && len(said) == len(p.asked) && slices.ContainsFunc(said, func(a answer) bool { return a.Lost || a.keeps == nil })
	best := ""
	all.value = c.proposal
	for i, a := range said {
		all.largest = max(all.largest, a.Promised)
		if next(a.keeps) {
			shows, denied := same(a.keeps, c.proposal), false
			for j, other := range said {
				shows = shows || i != j && (same(a.keeps, other.keeps) || same(a.keeps, other.taken))
				denied = denied || other.taken != nil && !same(a.keeps, other.taken) || next(other.keeps) && !same(a.keeps, other.keeps)
			}
			switch {
			case (shows || forgot && !denied) && c.fits(a.keeps) && (value == nil || same(value, a.keeps)):
				all.yes++
				all.agreed = append(all.agreed, a.by)
				best, all.value = "~", a.keeps
			default:
				all.ahead++
			}
			continue
		}
		if a.taken != nil && a.Taken > best && a.Taken < "~" && c.fits(a.taken) && (c.proposal != nil || best != "") {
			best, all.value = a.Taken, a.taken
		}
		switch {
		case a.Promised != ballot || value != nil && a.Taken != ballot:
			continue
		case a.Lost:
			all.lost++
		default:
			all.yes++
		}
		all.agreed = append(all.agreed, a.by)
	}
	if all.yes+all.lost == len(p.asked) {
		all.yes += all.lost
	}
	return all
}
