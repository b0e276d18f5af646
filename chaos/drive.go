package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/queue"
)

// drive carries a plan out in a world whose time is the caller's: the clients work
// while the faults come and go, then all is well, everybody must be served, and
// nothing may be left.
func drive(p *Plan, w world) (*History, error) {
	model.SleepTo(time.Now(), 0) // the faults have places in the slots from then on
	d := newDriver(p, w)
	store := newMemory(d.rec.note)
	d.join = func(number int) (member, error) {
		process, err := w.enter(number, processName(number))
		return &client{
			number: number, plan: p, process: process, store: store, tell: d.rec.note, start: d.rec.start, lots: d.lots,
		}, err
	}
	d.settle = func(limit time.Duration, _ func() bool) { time.Sleep(limit) }
	return d.run(), nil
}

// A driver carries out one plan.
type driver struct {
	plan   *Plan
	nodes  nodes
	rec    *recorder
	lots   *left
	faults sync.WaitGroup

	// join makes a client that has not come in yet.
	join func(number int) (member, error)

	// settle waits for as long as it says, or where time is dear until it is done.
	settle func(limit time.Duration, done func() bool)

	// slow: clients take their time to come in, and what is to befall one waits for it.
	// In virtual time nobody does, for it would happen at the same instant as something
	// else, and no run could be repeated.
	slow bool
	came []chan struct{} // closed when one who is there from the beginning has come in

	mu      sync.Mutex
	clients []member // by number, from 1; nil: not there yet, or not any more
	next    int      // of those that take the place of others who crash
}

// nodes are those of a world, and all of it that a driver knows.
type nodes interface {
	strike(f Fault, begin bool)
	left() []leftover
	weigh() []Weight
	close() error
}

// A member is a client as a driver knows it: in this process, or in one of its own.
type member interface {
	enter(context.Context) error // begins to work
	suffer(Fault)                // returns when it is over
	die()
	rest() // returns when it works no more
	last() // gets every lock once
	weigh()
	leave()
}

// newDriver has the run's time begin.
func newDriver(p *Plan, n nodes) *driver {
	start := time.Now()
	return &driver{
		plan: p, nodes: n,
		rec:     &recorder{now: func() time.Duration { return time.Since(start) }, start: start},
		lots:    &left{tokens: make(map[string]bool)},
		clients: make([]member, p.Run.Clients),
	}
}

func (d *driver) run() *History {
	p := d.plan
	working, stop := context.WithCancel(context.Background())
	defer stop()
	first := p.Run.Clients
	for _, f := range p.Faults {
		if f.Trouble == Crash {
			first--
		}
	}
	d.next = first
	d.came = make([]chan struct{}, first)
	for i := range first {
		d.came[i] = make(chan struct{})
		d.faults.Go(func() {
			defer close(d.came[i])
			d.enter(working, i)
		})
	}
	for _, f := range p.Faults {
		d.faults.Go(func() { d.cause(working, f) })
	}
	time.Sleep(p.Span - time.Since(d.rec.start))
	d.faults.Wait()
	d.clients = slices.DeleteFunc(d.clients, func(c member) bool { return c == nil })
	d.rec.note(Event{Kind: Calm})
	d.weighClients()
	stop()
	d.all(member.rest)
	d.all(member.last)

	// What is owed to a node that was away is tried again every quarter of a second;
	// what nobody is there to give back expires.
	owed := func(over bool) []leftover {
		return slices.DeleteFunc(d.nodes.left(), func(l leftover) bool { return d.lots.has(l.token) || handed(l.token) != over })
	}
	d.settle(2*time.Second, func() bool { return len(owed(false)) == 0 })
	left := owed(false)
	// Whoever was in a queue that he could not be taken out of may have been handed a lock
	// since, for his lease.
	if len(owed(true)) > 0 {
		d.settle(queue.MaxLease*time.Millisecond, func() bool { return len(owed(true)) == 0 })
		left = append(left, owed(true)...)
	}
	for _, l := range left {
		d.rec.note(Event{Kind: Left, Error: fmt.Sprintf("node %d still has %q with token %s", l.node, l.key, l.token)})
	}
	d.settle(2*p.TTL+time.Second, func() bool { return len(d.nodes.left()) == 0 })
	for _, l := range d.nodes.left() {
		d.rec.note(Event{Kind: Left, Error: fmt.Sprintf("node %d has %q with token %s long after its TTL", l.node, l.key, l.token)})
	}
	if p.Run.weighs() {
		d.settle(queueLife, func() bool { return false })
		d.weighClients()
		d.weighNodes()
	}
	d.all(member.leave)
	if err := d.nodes.close(); err != nil {
		d.rec.note(Event{Kind: Left, Error: err.Error()})
	}
	return &History{Run: p.Run, Events: d.rec.sorted()}
}

// queueLife is how long a queue is on a node that nobody stands in any more.
const queueLife = time.Minute + time.Second

// all has all clients do something, and waits for the last of them.
func (d *driver) all(do func(member)) {
	var doing sync.WaitGroup
	for _, c := range d.clients {
		doing.Go(func() { do(c) })
	}
	doing.Wait()
}

// enter has client i come in and begin to work.
func (d *driver) enter(ctx context.Context, i int) {
	c, err := d.join(i + 1)
	if err == nil {
		err = c.enter(ctx)
	}
	if err != nil {
		d.rec.note(Event{Kind: Left, Error: fmt.Sprintf("client %d could not come in: %v", i+1, err)})
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients[i] = c
}

// client is nil if it has not come in yet, or has died.
func (d *driver) client(number int) member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clients[number-1]
}

// cause has one fault come and go.
func (d *driver) cause(ctx context.Context, f Fault) {
	time.Sleep(time.Until(d.rec.start.Add(f.At)))
	var c member
	if f.Trouble.onClient() {
		if i := f.Client - 1; d.slow && i < len(d.came) {
			<-d.came[i]
		}
		if c = d.client(f.Client); c == nil {
			return
		}
	}
	d.rec.note(Event{Kind: Struck, Fault: &f})
	switch f.Trouble {
	case Pause, Suspend, Skew:
		c.suffer(f)
	case Crash:
		d.crash(ctx, f)
	case Churn:
		d.nodes.strike(f, true)
		flush := f
		flush.Trouble = FlushScripts
		for rest := f.For; rest > 0; rest -= f.By {
			d.nodes.strike(flush, true)
			time.Sleep(min(f.By, rest))
		}
		d.nodes.strike(f, false)
	case Still:
		from := d.rec.now()
		for begin := range 2 {
			for i := range d.plan.Run.Nodes {
				d.nodes.strike(Fault{Trouble: Hang, Node: i}, begin == 0)
			}
			if begin == 0 {
				time.Sleep(f.For)
			}
		}
		for i := range d.plan.Run.Nodes {
			d.rec.add(Event{At: from, Kind: Stalled, Value: i, Until: d.rec.now()})
		}
	case Forge, Replay: // a quorum of nodes has to say it
		for range f.Times {
			for i := range d.plan.Run.Nodes {
				there := f
				there.Node = i
				d.nodes.strike(there, true)
			}
			time.Sleep(f.By)
		}
	default:
		d.nodes.strike(f, true)
		time.Sleep(f.For)
		if f.For > 0 {
			d.weighClients()
		}
		d.nodes.strike(f, false)
	}
	if f.For > 0 {
		d.rec.note(Event{Kind: Healed, Fault: &f})
	}
}

// crash has a client die, and another take its place.
func (d *driver) crash(ctx context.Context, f Fault) {
	d.mu.Lock()
	c, i := d.clients[f.Client-1], d.next
	d.clients[f.Client-1] = nil
	d.next++
	d.mu.Unlock()
	d.lots.died(processName(f.Client))
	c.die()
	time.Sleep(f.For)
	d.enter(ctx, i)
}
