package otelredlock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorumlock/redlock"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// The states of a node. A node that votes has none of the others.
const (
	stateVotes       = "votes"
	stateDown        = "down"        // it does not answer
	stateQuarantined = "quarantined" // it may have forgotten locks
	stateIneligible  = "ineligible"  // its kind, its settings or its clock forbid it
)

var states = []string{stateVotes, stateDown, stateQuarantined, stateIneligible}

// nodes is what the hooks have told of the members of a set: which of them have a vote, and so how
// many votes a quorum has to spare. It is for one Locker at a time.
//
// The hooks tell changes only, so a node votes unless they have said otherwise. A node whose clock is
// far from the others' is known by its answers, since the warning about it is a text.
type nodes struct {
	quarantines, steps metric.Int64Counter

	mu    sync.Mutex // protects what follows; no hook and no instrument is called under it
	set   redlock.Members
	known sync.Map // of name: *node. An answer looks a node up without the mutex.
}

// A node's name is its address as it was given to the Locker. A member that was given by another
// address than the set's description has is known here by both. So what counts is who is in
// trouble: a quorum has as many votes as there are members, less the members in trouble.
type node struct {
	with   metric.MeasurementOption // the node's address
	states map[string]metric.MeasurementOption

	asked      atomic.Bool // it has answered for a lock: only members are asked
	ineligible atomic.Bool // by its last answer

	down, unfit, quarantined bool // protected by nodes.mu
}

// of gives the node of this name, which begins its counters at 0: an alert can see the first step of
// a counter only if it was there before.
func (n *nodes) of(name string) *node {
	if known, ok := n.known.Load(name); ok {
		return known.(*node)
	}
	address := server(name)
	fresh := &node{with: metric.WithAttributeSet(attribute.NewSet(address...)), states: make(map[string]metric.MeasurementOption)}
	for _, state := range states {
		fresh.states[state] = metric.WithAttributeSet(attribute.NewSet(append(server(name), stateKey.String(state))...))
	}
	known, loaded := n.known.LoadOrStore(name, fresh)
	if !loaded {
		n.quarantines.Add(context.Background(), 0, fresh.with)
		n.steps.Add(context.Background(), 0, fresh.with)
	}
	return known.(*node)
}

// joined is called when a Locker begins (Epoch 0), and when it has learned which set it uses.
func (n *nodes) joined(m redlock.Members) {
	n.mu.Lock()
	n.set = m
	if m.Epoch == 0 {
		n.known.Clear() // of an earlier Locker
	}
	n.mu.Unlock()
	n.begin(m)
}

// members is called when the set was changed. A node that is no member any more is not asked any more.
func (n *nodes) members(m redlock.Members) {
	n.mu.Lock()
	n.set = m
	n.known.Range(func(_, known any) bool {
		known.(*node).asked.Store(false)
		return true
	})
	n.mu.Unlock()
	n.begin(m)
}

func (n *nodes) begin(m redlock.Members) {
	for _, name := range m.Nodes {
		n.of(name)
	}
}

// change changes what is known of a node, under the mutex.
func (n *nodes) change(name string, f func(*node)) {
	known := n.of(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	f(known)
}

func (n *nodes) wentDown(e *redlock.NodeError) {
	n.change(e.Node, func(known *node) { known.down, known.unfit = true, e.Outcome == redlock.OutcomeIneligible })
}

func (n *nodes) cameUp(name string) {
	n.change(name, func(known *node) { known.down, known.unfit = false, false })
}

// quarantine is called again while a quarantine goes on, if it takes longer. It counts once.
func (n *nodes) quarantine(name string) {
	news := false
	n.change(name, func(known *node) { news, known.quarantined = !known.quarantined, true })
	if news {
		n.quarantines.Add(context.Background(), 1, n.of(name).with)
	}
}

func (n *nodes) votes(name string) {
	n.change(name, func(known *node) { known.quarantined = false })
	n.of(name).ineligible.Store(false)
}

func (n *nodes) step(name string) { n.steps.Add(context.Background(), 1, n.of(name).with) }

// answered takes in what a node has answered to an acquire. Each answer comes here, so it takes no mutex.
func (n *nodes) answered(name, outcome string) {
	known := n.of(name)
	set := func(b *atomic.Bool, to bool) {
		if b.Load() != to { // as a rule there is nothing to write
			b.Store(to)
		}
	}
	set(&known.asked, true)
	switch outcome {
	case "ineligible":
		set(&known.ineligible, true)
	case "granted", "held", "reserved", "quarantined": // it votes, or will
		set(&known.ineligible, false)
	}
}

// state is what keeps the node from voting, and what does not end by itself comes first. Under the mutex.
func (k *node) state() string {
	switch {
	case k.down && !k.unfit:
		return stateDown
	case k.unfit || k.ineligible.Load():
		return stateIneligible
	case k.quarantined:
		return stateQuarantined
	}
	return stateVotes
}

// observe tells an observer what is known now; nothing, if there was no Locker yet.
func (n *nodes) observe(o metric.Observer, status, spare, missing metric.Int64Observable) {
	n.mu.Lock()
	set, now := n.set, make(map[*node]string)
	n.known.Range(func(name, known any) bool {
		if k := known.(*node); k.asked.Load() || slices.Contains(set.Nodes, name.(string)) {
			now[k] = k.state()
		}
		return true
	})
	n.mu.Unlock()
	if len(set.Nodes) == 0 {
		return
	}
	without := 0
	for known, state := range now {
		if state != stateVotes {
			without++
		}
		for _, each := range states {
			is := int64(0)
			if each == state {
				is = 1
			}
			o.ObserveInt64(status, is, known.states[each])
		}
	}
	var with []metric.ObserveOption
	if set.Set != "" {
		with = append(with, metric.WithAttributes(setKey.String(set.Set)))
	}
	o.ObserveInt64(spare, int64(max(0, len(set.Nodes)-without)-set.Quorum), with...)
	o.ObserveInt64(missing, int64(min(without, len(set.Nodes))), with...)
}
