// Package drive carries a plan out: clients start, faults begin and end, then all faults are over,
// every client is served, and nothing may be left. It does not depend on the arena.
package drive

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Driver carries out one plan.
type Driver struct {
	plan      *scenario.Plan
	nodes     Nodes
	Recorder  *Recorder
	Leftovers *Leftovers
	faults    sync.WaitGroup

	// Join makes a client that has not started yet.
	Join func(number int, as client.Role) (Member, error)

	// Settle waits for this long, or, in an arena with real time, until the condition holds.
	Settle func(limit time.Duration, done func() bool)

	// Slow: clients take some time to start, and a fault of a client waits for that. In virtual
	// time no fault waits, or it would happen at the same instant as something else, and no run
	// could be repeated.
	Slow bool
	came []chan struct{} // closed when a client that is there from the beginning has started

	mu      sync.Mutex
	clients []Member        // by number, from 1; nil: not started yet, or ended
	next    int             // the number of the next client that replaces one that crashed
	operate []bool          // by number, from 1: it changes the set
	empty   []bool          // nodes that are down, and come back without their data
	losing  []int           // by node: how many faults it has now by which it loses data
	lost    []time.Duration // by node: when the last such fault ended
}

// New starts the run's clock.
func New(p *scenario.Plan, n Nodes) *Driver {
	return &Driver{
		plan: p, nodes: n,
		Recorder:  NewRecorder(),
		Leftovers: &Leftovers{tokens: make(map[string]bool)},
		clients:   make([]Member, p.Run.Clients),
		operate:   make([]bool, p.Run.Clients),
		empty:     make([]bool, p.Run.Nodes),
		losing:    make([]int, p.Run.Nodes),
		lost:      make([]time.Duration, p.Run.Nodes),
	}
}

// Run carries the plan out, to the end of all clients, and returns the history.
func (d *Driver) Run() *history.History {
	p := d.plan
	working, stop := context.WithCancel(context.Background())
	defer stop()
	first := p.Run.Clients
	for _, f := range p.Faults {
		if f.Kind == history.Crash {
			first--
		}
	}
	d.next = first
	d.came = make([]chan struct{}, first)
	for i := range first {
		d.operate[i] = i < p.Operators
		d.came[i] = make(chan struct{})
		d.faults.Go(func() {
			defer close(d.came[i])
			d.enter(working, i)
		})
	}
	for _, f := range p.Faults {
		d.faults.Go(func() { d.inject(working, f) })
	}
	time.Sleep(p.Span - time.Since(d.Recorder.Start))
	d.faults.Wait()
	d.clients = slices.DeleteFunc(d.clients, func(c Member) bool { return c == nil })
	d.Recorder.Note(history.Event{Kind: history.Calm})
	d.weighClients()
	stop()
	d.all(Member.Rest)
	d.all(Member.Last)

	d.noteLeft()
	if weighs(&p.Run) {
		d.Settle(queueLife, func() bool { return false })
		d.weighClients()
		d.weighNodes()
	}
	d.all(Member.Leave)
	if err := d.nodes.Close(); err != nil {
		d.Recorder.Note(history.Event{Kind: history.Left, Error: err.Error()})
	}
	return &history.History{Run: p.Run, Events: d.Recorder.Sorted()}
}

// noteLeft records the keys that should not be on the nodes when all clients rest.
func (d *Driver) noteLeft() {
	// Releases that are owed to a node that was away are repeated every quarter of a second; a lock
	// whose client is gone expires. So does a lock at a node that is no member any more: clients send
	// nothing there from when they know, also no release of a lock that the node has granted before.
	removed := d.Recorder.removed(d.nodes.Addrs())
	owed := func() []Key {
		return slices.DeleteFunc(d.nodes.Keys(), func(l Key) bool { return l.Ghost || removed[l.Node] || d.Leftovers.has(l.Token) })
	}
	d.Settle(2*time.Second, func() bool { return len(owed()) == 0 })
	for _, l := range owed() {
		d.Recorder.Note(history.Event{Kind: history.Left, Error: fmt.Sprintf("node %d still has %q with token %s", l.Node, l.Key, l.Token)})
	}
	d.Settle(2*d.plan.TTL+time.Second, func() bool { return len(d.nodes.Keys()) == 0 })
	for _, l := range d.nodes.Keys() {
		d.Recorder.Note(history.Event{Kind: history.Left, Error: fmt.Sprintf("node %d has %q with token %s long after its TTL", l.Node, l.Key, l.Token)})
	}
}

// queueLife is how long an empty queue stays on a node.
const queueLife = time.Minute + time.Second

// all makes all clients do something, and waits for the last of them.
func (d *Driver) all(do func(Member)) {
	var doing sync.WaitGroup
	for _, c := range d.clients {
		doing.Go(func() { do(c) })
	}
	doing.Wait()
}

// enter starts client i.
func (d *Driver) enter(ctx context.Context, i int) {
	d.mu.Lock()
	as := client.Role{Operator: d.operate[i]}
	d.mu.Unlock()
	if d.plan.Run.Members > 0 {
		as.Given = d.members()
	}
	c, err := d.Join(i+1, as)
	if err == nil {
		err = c.Enter(ctx)
	}
	if err != nil {
		d.Recorder.Note(history.Event{Kind: history.Left, Error: fmt.Sprintf("client %d could not come in: %v", i+1, err)})
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients[i] = c
}

// members are the nodes that an operator gives to a new program: those that are members by the description that
// enough of them keep, and more than one: a node that is wrong may say that it is the only member. While too many
// nodes have lost their data, they are the members after the last change that an operator has made; nil: those that
// were members at first.
func (d *Driver) members() []string {
	kept := d.nodes.Kept()
	votes := func(of wire.Kept) (n int) {
		for _, t := range kept {
			if t.Description != nil && t.Same(of.Description) && of.Has(t.Self) {
				n++
			}
		}
		return n
	}
	for _, t := range kept {
		if t.Description != nil && votes(t) >= max(t.Needs(), 2) {
			return t.Members
		}
	}
	return d.Recorder.made()
}

// client returns client i; nil: it has not started yet, or has died.
func (d *Driver) client(number int) Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clients[number-1]
}

// inject begins a fault, and ends it later.
func (d *Driver) inject(ctx context.Context, f history.Fault) {
	time.Sleep(time.Until(d.Recorder.Start.Add(f.At)))
	var c Member
	if f.Kind.OnClient() {
		if i := f.Client - 1; d.Slow && i < len(d.came) {
			<-d.came[i]
		}
		if c = d.client(f.Client); c == nil {
			return
		}
	}
	if less, loses := keeping[f.Kind]; loses && !d.mayLose(f) {
		f.Kind = less
	}
	d.Recorder.Note(history.Event{Kind: history.Struck, Fault: &f})
	switch f.Kind {
	case history.Pause, history.Suspend, history.Skew:
		c.Apply(f)
	case history.Crash:
		d.crash(ctx, f)
	case history.Remake:
		d.remake(f)
	case history.Churn:
		d.nodes.Inject(f, true)
		flush := f
		flush.Kind = history.FlushScripts
		for rest := f.For; rest > 0; rest -= f.By {
			d.nodes.Inject(flush, true)
			time.Sleep(min(f.By, rest))
		}
		d.nodes.Inject(f, false)
	case history.Still:
		from := d.Recorder.Now()
		for begin := range 2 {
			for i := range d.plan.Run.Nodes {
				d.nodes.Inject(history.Fault{Kind: history.Hang, Node: i}, begin == 0)
			}
			if begin == 0 {
				time.Sleep(f.For)
			}
		}
		for i := range d.plan.Run.Nodes {
			d.Recorder.Add(history.Event{At: from, Kind: history.Stalled, Value: i, Until: d.Recorder.Now()})
		}
	default:
		d.loses(f, true)
		d.nodes.Inject(f, true)
		time.Sleep(f.For)
		if f.For > 0 {
			d.weighClients()
		}
		d.nodes.Inject(f, false)
		d.loses(f, false)
		if f.Kind == history.KillEmpty || f.Kind == history.Copy {
			d.mu.Lock()
			d.empty[f.Node] = false
			d.mu.Unlock()
		}
	}
	if f.For > 0 {
		d.Recorder.Note(history.Event{Kind: history.Healed, Fault: &f})
	}
}

// keeping has what is done to a node in the place of a fault by which it would lose its data.
var keeping = map[history.FaultKind]history.FaultKind{history.Flush: history.Reset, history.KillEmpty: history.Kill, history.Copy: history.Kill}

// A remaker restores a set, if it is lost, and the operator knows its nodes. It returns the members that kept nothing, if they
// were most of them, and false if a member does not answer.
type remaker interface {
	Remake(members []string, forget bool) (lost []int, answer bool)
}

// remake restores the set. Where time is real, servers may be slow to start, and the operator waits for the members.
func (d *Driver) remake(f history.Fault) {
	const pause, often = 50 * time.Millisecond, 100
	w, can := d.nodes.(remaker)
	for n := 0; can && n < often; n++ {
		members, at := d.nodes.Addrs(), d.Recorder.Now()
		if d.plan.Scenario.Moves {
			members = d.members()
		}
		lost, answer := w.Remake(members, f.Times > 0)
		if since := d.barest(lost); len(lost) > 0 && since < at {
			d.Recorder.Add(history.Event{At: since, Kind: history.Lost, Until: at})
		}
		if answer || !d.Slow {
			return
		}
		time.Sleep(pause)
	}
}

// losing are the faults by which a node loses data, or gets other data.
var losing = []history.FaultKind{
	history.Flush, history.KillEmpty, history.CutFile, history.FlipFile, history.OldFile, history.OtherFile, history.PowerCut, history.DiskFull,
	history.Mislead, history.Restore, history.Copy, history.Boot,
}

// loses notes the beginning or the end of a fault of a node.
func (d *Driver) loses(f history.Fault, begin bool) {
	if !slices.Contains(losing, f.Kind) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.losing[f.Node]++; !begin {
		d.losing[f.Node] -= 2
		d.lost[f.Node] = d.Recorder.Now()
	}
}

// barest is since when none of these nodes has lost data. It is now, or later, if one is losing them.
func (d *Driver) barest(nodes []int) (since time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range nodes {
		if since = max(since, d.lost[i]); d.losing[i] > 0 {
			return d.Recorder.Now()
		}
	}
	return since
}

// mayLose reports whether a node may lose its data, by the plan's scenario. Where a set moves, a node that was removed keeps
// them, as docs/safety.md demands; a member may lose them in an outage, and otherwise only if mayEmpty says so.
func (d *Driver) mayLose(f history.Fault) bool {
	s := d.plan.Scenario
	switch {
	case s.Lost:
		return true
	case !s.Moves:
		return d.mayEmpty(f)
	}
	addrs, members := d.nodes.Addrs(), d.members()
	if members == nil {
		members = addrs[:d.plan.Run.Members]
	}
	switch is := slices.Contains(members, addrs[f.Node]); {
	case f.Kind == history.Flush:
		return is
	case is:
		return d.mayEmpty(f)
	}
	return !d.Recorder.removed(addrs)[f.Node]
}

// mayEmpty reports whether a node may lose its data. It may not if half of the members of a set that was changed, or
// more, would be without the description then: the set might not heal before an operator has restored it. Where there are
// operators, any set may have been changed just now, though no node keeps the later description yet.
func (d *Driver) mayEmpty(f history.Fault) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept, changes := d.nodes.Kept(), slices.Contains(d.operate, true)
	keeps := func(t wire.Kept, but int) (n int) {
		for i, k := range kept {
			if i != but && !d.empty[i] && k.Description != nil && k.Set == t.Set && t.Has(k.Self) {
				n++
			}
		}
		return n
	}
	for i, t := range kept {
		if t.Description != nil && (t.Epoch > 1 || changes) && !d.empty[i] && keeps(t, f.Node) < keeps(t, -1) && 2*keeps(t, f.Node) <= len(t.Members) {
			return false
		}
	}
	d.empty[f.Node] = d.empty[f.Node] || f.Kind != history.Flush
	return true
}

// crash ends a client, and starts another in its place.
func (d *Driver) crash(ctx context.Context, f history.Fault) {
	d.mu.Lock()
	c, i := d.clients[f.Client-1], d.next
	d.clients[f.Client-1] = nil
	d.operate[i] = d.operate[f.Client-1]
	d.next++
	d.mu.Unlock()
	d.Leftovers.died(client.ProcessName(f.Client))
	c.Die()
	time.Sleep(f.For)
	d.enter(ctx, i)
}
