package scenario

import (
	"math/rand/v2"
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
