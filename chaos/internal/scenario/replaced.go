package scenario

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/testbed/model"
)

// A Replacement is one member in the place of another.
type Replacement struct {
	At            time.Duration // when the operator begins
	Leaves, Comes int           // nodes
	Dead          bool          // the one that leaves
	Limit         time.Duration // of each of the two changes
}

// drawReplaced draws who replaces whom, and when. The nodes take turns: the oldest member leaves, and the node comes
// that has been none for the longest time. What a client knows of a node is of one time that it is a member, so the
// nodes need not be new.
//
// Some members die before they are replaced, and come back before they become members again. Nothing else is under way
// then: the replacement before is over, and each lock has been renewed since.
func (p *Plan) drawReplaced(rng *rand.Rand, arena Limits, nodes, members int) {
	every := p.Span // of the scenario: the two changes take less than half of it
	n := 11 + rng.IntN(6)
	p.Span = (every*time.Duration(n+1) + p.TTL).Truncate(model.Slot)
	if nodes == members {
		return
	}
	kinds := arena.Able(p.Scenario.Troubles)
	for i := range n {
		r := Replacement{At: every*time.Duration(i+1) + Below(rng, p.TTL), Leaves: i % nodes, Comes: (i + members) % nodes, Limit: every / 2}
		if r.Dead = len(kinds) > 0 && members >= 3 && rng.IntN(2) == 0; r.Dead {
			at := (r.At - p.TTL/4 - Below(rng, p.TTL)).Truncate(model.Slot) + time.Duration(len(p.Faults)%model.Actors)
			until := min(every*time.Duration(i+nodes-members+1)-p.TTL, p.Span) // when it comes again
			p.Faults = append(p.Faults, history.Fault{At: at, Kind: Pick(rng, kinds), Node: r.Leaves, For: (until - at).Truncate(model.Slot)})
		}
		p.Replaced = append(p.Replaced, r)
	}
}

// A Move is one step of an operator that moves a set: a node comes, or the oldest member leaves, or both.
type Move struct {
	At           time.Duration // when the operator begins
	Adds, Leaves bool
	Comes        int           // which of the nodes that are no members, by their order
	Limit        time.Duration // of each of the two changes
}

// A mover draws the steps of a set that moves, and what happens beside them, one step after another.
type mover struct {
	plan    *Plan
	rng     *rand.Rand
	nodes   int
	every   time.Duration      // from one step to the next
	at      time.Duration      // of the next step
	clients []int              // the numbers of the clients that work by then; the first one is the operator
	next    int                // the number of the next client that takes the place of another one
	asleep  []time.Duration    // by client: until when it sleeps, or has just slept
	stale   []bool             // by client: it has slept through an outage
	lost    bool               // a set may have been lost
	foreign bool               // nodes may still keep the description of a set that was lost
	mends   [][2]time.Duration // from when to when the operator restores a set, for which all its members must run
}

// drawMoves draws a long life of a set. An operator makes it larger and smaller, and moves it away from all its nodes, one
// member after another, again and again. Clients sleep through several steps, and then go on with the description that they
// know. A node comes up with a copy of another's data. And there are outages in which nodes lose their data, one or most or
// all: then the operator restores the set, if most members of it have lost it, and starts all programs again that do not
// sleep. Besides, the nodes have the scenario's troubles; but no node is dead when the operator restores the set.
//
// What docs/safety.md does not promise is left out: only members lose their data (Driver.mayLose), no set changes while it
// heals, and nodes of a set that was lost are made to forget it only when no program runs that knows that set.
func (p *Plan) drawMoves(rng *rand.Rand, arena Limits, nodes, members, clients int) {
	every := p.Span // of the scenario
	m := &mover{plan: p, rng: rng, nodes: nodes, every: every, at: every, next: clients + 1, asleep: make([]time.Duration, clients), stale: make([]bool, clients)}
	for i := range clients {
		m.clients = append(m.clients, i+1)
	}
	for size, n := members, 5+rng.IntN(6); len(p.Moves) < n; {
		switch draw := rng.IntN(8); {
		case draw == 0 && size < min(5, nodes-1):
			m.step(true, false)
			size++
		case draw == 1 && size > 3:
			m.step(false, true)
			size--
		case draw <= 4: // all of them leave
			for range size {
				m.step(true, true)
			}
		case draw == 5:
			m.copies()
		case draw >= 6:
			m.outage()
		}
	}
	p.Span = (m.at + p.TTL).Truncate(model.Slot)
	if m.lost { // no step follows by which a set that could not be restored would be
		at := p.Span + p.TTL/16
		m.fault(history.Fault{At: at, Kind: history.Remake})
		m.renew(at)
	}
	p.drawFaults(rng, arena, nodes, clients)
	p.Faults = slices.DeleteFunc(p.Faults, func(f history.Fault) bool {
		return f.Kind == history.Kill && slices.ContainsFunc(m.mends, func(mend [2]time.Duration) bool { return f.At <= mend[1] && f.At+f.For >= mend[0] })
	})
	slices.SortStableFunc(p.Faults, func(a, b history.Fault) int { return cmp.Compare(a.At, b.At) })
}

// fault adds a fault at an instant at which no other one begins or ends.
func (m *mover) fault(f history.Fault) {
	f.At = f.At.Truncate(model.Slot) + time.Duration(len(m.plan.Faults)%model.Actors)
	f.For = f.For.Truncate(model.Slot)
	m.plan.Faults = append(m.plan.Faults, f)
}

// step draws a step of the operator, which is held up in the middle of some, and clients that fall asleep.
func (m *mover) step(adds, leaves bool) {
	m.forget()
	m.plan.Moves = append(m.plan.Moves, Move{m.at + Below(m.rng, m.plan.TTL), adds, leaves, m.rng.IntN(m.nodes), m.every / 2})
	if m.rng.IntN(4) == 0 {
		m.fault(history.Fault{At: m.at + Below(m.rng, m.every/2), Kind: history.Pause, Client: m.clients[0], For: 1 + Below(m.rng, 2*m.plan.TTL)})
	}
	for i := 2; i < len(m.clients); i++ { // the second client is always awake
		if !m.foreign && m.asleep[i] <= m.at && m.rng.IntN(6) == 0 {
			f := history.Fault{At: m.at + Below(m.rng, m.every), Kind: history.Pause, Client: m.clients[i], For: m.every + Below(m.rng, 6*m.every)}
			m.fault(f)
			m.asleep[i] = f.At + f.For + m.plan.TTL
		}
	}
	m.at += m.every
}

// copies draws a node that has a copy of another's data for up to two steps.
func (m *mover) copies() {
	f := history.Fault{At: m.at - Below(m.rng, m.plan.TTL), Kind: history.Copy, Node: m.rng.IntN(m.nodes), Times: m.rng.IntN(m.nodes)}
	if f.Times == f.Node {
		f.Times = (f.Node + 1) % m.nodes
	}
	f.For = m.plan.TTL + Below(m.rng, 2*m.every-2*m.plan.TTL)
	m.fault(f)
	m.step(true, m.rng.IntN(2) == 0)
	m.step(true, true)
}

// outage draws one in which some nodes lose their data, and a step in which nothing else happens. One alone heals by itself.
// After others an operator restores the set, if it is lost, soon or late, and starts programs again.
func (m *mover) outage() {
	some := m.rng.Perm(m.nodes)[:1+m.rng.IntN(m.nodes)]
	at := m.at + Below(m.rng, m.plan.TTL)
	for _, node := range some {
		at += time.Duration(m.rng.IntN(2)) * model.Slot
		m.fault(history.Fault{At: at, Kind: history.Flush, Node: node})
	}
	if m.at += m.every; len(some) > 1 {
		m.lost, m.foreign = true, true
		m.restart(at+m.plan.TTL/16+Below(m.rng, 2*m.plan.TTL), at)
	}
}

// restart draws what an operator does at a time after an outage: the set is restored, if it is lost, and each program that
// has not slept since before the outage is started again.
func (m *mover) restart(at, outage time.Duration) {
	m.fault(history.Fault{At: at, Kind: history.Remake})
	m.mends = append(m.mends, [2]time.Duration{outage, at + m.plan.TTL/16})
	for i := range m.clients {
		if m.stale[i] = m.asleep[i] > outage; !m.stale[i] {
			at += m.plan.TTL / 16
			m.again(i, at)
		}
	}
}

// again starts a program again.
func (m *mover) again(i int, at time.Duration) {
	m.fault(history.Fault{At: at, Kind: history.Crash, Client: m.clients[i], For: m.plan.RTT})
	m.clients[i], m.stale[i] = m.next, false
	m.next++
}

// renew starts the programs again that have slept through an outage. It returns when the last one is.
func (m *mover) renew(at time.Duration) time.Duration {
	for i, is := range m.stale {
		if is {
			at += m.plan.TTL / 16
			m.again(i, at)
		}
	}
	return at
}

// forget draws what an operator does when no client sleeps any more that knows a set which was lost: programs that have slept
// through that are started again, and the nodes of that set are made to forget it, as they must before they become members.
func (m *mover) forget() {
	if sleeps := func(until time.Duration) bool { return until > m.at }; !m.foreign || slices.ContainsFunc(m.asleep, sleeps) {
		return
	}
	m.foreign = false
	at := m.renew(m.at)
	m.fault(history.Fault{At: at + m.plan.TTL/16, Kind: history.Remake, Times: 1})
	m.at += m.plan.TTL
}
