package scenario

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/coverage"
	"github.com/quorumlock/redlock/internal/testbed/model"
)

// A Plan is a scenario in which a seed has decided everything.
type Plan struct {
	Run     history.Head
	TTL     time.Duration
	RTT     time.Duration
	Drift   time.Duration   // of the library; 0: its default
	Span    time.Duration   // when the clients stop working
	Far     time.Duration   // how much longer messages take to all nodes but one, another one for each client
	Days    []time.Duration // when they begin, each time for Work; nil: at once
	Work    time.Duration
	Faults  []history.Fault // in order
	Rates   []float64       // by node: how much faster its clock runs
	Skews   []time.Duration // by client: how far its clock is ahead; nil: not at all
	Names   []string
	Wants   []history.Request // nil: each name, exclusively
	Workers int

	Large    bool          // some clients want a quorum larger than a majority, and a majority of nodes is well
	Replaced []Replacement // of members by other nodes, in order
	Moves    []Move        // of the set, in order

	Dialects []int // of the first clients, which are of other libraries: indexes of Dialects

	Emptied bool // the node at which requests stall loses its data

	Operators int // the clients that change the set: the first ones, and those that replace them

	Scenario *Scenario       `json:"-"`
	Options  redlock.Options `json:"-"`
	Sheet    *coverage.Sheet `json:"-"` // counts the situations that the schedule reaches; nil: nobody wants to know
}

// NewPlan draws a plan for an arena from a seed. The options are the user's; the scenario decides
// what they leave open.
func (s *Scenario) NewPlan(arena Limits, seed uint64, opts *redlock.Options, nodes int) *Plan {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	p := &Plan{Scenario: s}
	if opts != nil {
		p.Options = *opts
	}
	n := p.drawOptions(rng, arena, nodes)
	clients := s.Clients[0] + rng.IntN(s.Clients[1]-s.Clients[0]+1)
	if arena.Room > 0 {
		clients = min(clients, arena.Room)
	}
	p.drawWork(rng)
	members := n
	if s.Reserve > 0 {
		n = min(n+s.Reserve, most)
		p.Operators = 1 + rng.IntN(2)
		if s.Least > 0 || s.Planned { // two that remove a member at once could leave fewer
			p.Operators = 1
		}
		if s.Rivals {
			p.Operators = 3
		}
	}
	if s.Settings {
		p.Operators = 1
	}
	p.drawClocks(rng, n, clients)
	switch {
	case s.Days > 0:
		p.drawDays(rng, arena, n)
	case s.Idle:
		p.drawIdle(rng, arena, n)
	case s.Away:
		p.drawAway(rng, arena, members)
	case s.Stalls:
		p.drawStalls(rng, n)
	case s.Planned:
		p.drawReplaced(rng, arena, n, members)
	case s.Moves:
		p.drawMoves(rng, arena, n, members, clients)
	default:
		p.drawFaults(rng, arena, n, clients)
	}
	if s.Others[1] > 0 {
		for range min(s.Others[0]+rng.IntN(s.Others[1]-s.Others[0]+1), clients-1) {
			p.Dialects = append(p.Dialects, rng.IntN(len(Dialects)))
		}
	}
	p.head(arena, seed, n, members, clients)
	return p
}

// drawOptions draws the options that the user leaves open, and the number of nodes.
func (p *Plan) drawOptions(rng *rand.Rand, arena Limits, nodes int) (n int) {
	s, o := p.Scenario, &p.Options
	if o.TTL == 0 {
		ttls := arena.TTLs(s.TTL)
		if s.Long {
			ttls = s.TTL
		}
		o.TTL = Pick(rng, ttls)
	}
	p.TTL = o.TTL
	if o.NodeTimeout == 0 {
		o.NodeTimeout = min(max(o.TTL/10, 50*time.Millisecond), o.TTL/2-o.TTL/20, 500*time.Millisecond) // about the library's default
	}
	if o.MaxTTL == 0 && !s.Own {
		o.MaxTTL = o.TTL
	}
	n = Pick(rng, s.Nodes)
	if nodes > 0 {
		n = nodes
	}
	if o.Quorum == 0 && s.Quorum != nil {
		o.Quorum = s.Quorum(n)
	}
	switch trust := rng.IntN(2) == 0; {
	case o.Quarantine != 0 || s.Default:
	case trust && !s.Forgets:
		o.Quarantine = -1
	default:
		o.Quarantine = p.shortest()
	}
	if s.Apart {
		o.MaxNodeSkew = -1
	}
	return n
}

// Quarantine is for how long a node without its data has no vote, or a little less; 0: it votes at once.
func (p *Plan) Quarantine() time.Duration {
	if p.Options.Quarantine == 0 {
		return p.shortest()
	}
	return max(0, p.Options.Quarantine)
}

// shortest is the shortest possible quarantine.
func (p *Plan) shortest() time.Duration { return p.TTL + p.TTL/100 + 2*time.Millisecond }

// Shares has the parts of the plan's TTL that a client's may be if each has settings of its own, and the smallest last.
var Shares = []time.Duration{1, 2, 10}

// ShortestTTL is the shortest TTL that a client may have.
func (p *Plan) ShortestTTL() time.Duration {
	if p.Scenario.Own {
		return p.TTL / Shares[len(Shares)-1]
	}
	return p.TTL
}

// drawWork draws the network, and what the clients do and for how long.
func (p *Plan) drawWork(rng *rand.Rand) {
	s, o := p.Scenario, &p.Options
	// Over a slower network, such short locks could not be acquired at all, or not be renewed if one message is late.
	p.RTT = min(Pick(rng, s.RTT), p.ShortestTTL()/40)
	p.Workers = 1 + rng.IntN(max(s.Workers, 1))
	p.Span = time.Duration(s.Span * float64(p.TTL)).Truncate(model.Slot)
	if s.Late > 0 {
		p.Work = time.Duration((1 - s.Late) * float64(p.Span)).Truncate(model.Slot)
		p.Days = []time.Duration{p.Span - p.Work}
	}
	names := s.Spread
	if names == 0 {
		names = 1 + rng.IntN(2)
	}
	for i := range names {
		p.Names = append(p.Names, string(rune('a'+i%26))+suffix(i/26))
	}
	if s.Own { // paths, of which none lies in another: clients may take them for names
		for i := range p.Names {
			p.Names[i] = "x/" + p.Names[i]
		}
		p.Large = rng.IntN(2) == 0
	}
	if s.Tries {
		p.Far = Pick(rng, []time.Duration{0, ms, 5 * ms, 20 * ms, 60 * ms})
		if s.Distant {
			p.Far = o.NodeTimeout / 8
		}
	}
	if s.Names {
		o.Separator = cmp.Or(o.Separator, "/")
	}
	switch {
	case s.Kinds && s.Others[1] > 0: // other libraries know no paths
		p.Wants = mix(rng, flat, "")
		p.Names = allNames(p.Wants)
	case s.Kinds:
		o.Separator = cmp.Or(o.Separator, "/")
		p.Wants = mix(rng, Workloads, o.Separator)
		if s.Folder {
			p.Wants = folder(o.Separator)
		}
		p.Names = allNames(p.Wants)
	}
}

// drawClocks draws how fast the nodes' clocks run, and how far the clients' clocks are off.
func (p *Plan) drawClocks(rng *rand.Rand, nodes, clients int) {
	p.Rates = make([]float64, nodes)
	// A client that is alone looks at the clocks too seldom for that. See quartz in clocks.go of package vote.
	if p.Scenario.Fast && clients > 1 {
		for i := range p.Rates {
			p.Rates[i] = 0.0099 * min(1, 2*rng.Float64())
		}
	}
	if p.Scenario.Wrong {
		for range 16 { // more than there are clients, for those that replace others
			p.Skews = append(p.Skews, Below(rng, 200*24*time.Hour)-100*24*time.Hour)
		}
	}
}

// head has what the judge must know about the plan.
func (p *Plan) head(arena Limits, seed uint64, nodes, members, clients int) {
	s, o := p.Scenario, &p.Options
	overlap := time.Duration(0)
	if slices.Contains(s.Fails, "exclusion") {
		overlap = 2*o.NodeTimeout + p.TTL // an attempt, and a stop in the middle of it
	}
	crashes := 0
	for _, f := range p.Faults {
		if f.Kind == history.Crash {
			crashes++
		}
	}
	p.Run = history.Head{
		Scenario: s.Name, Arena: arena.Name, Seed: seed, Nodes: nodes, Quorum: max(o.Quorum, members/2+1), Clients: clients + crashes, Separator: o.Separator,
		Lag: arena.Lag, Overlap: overlap, Look: min(max(p.TTL/10, 50*time.Millisecond), 500*time.Millisecond), Exact: arena.Exact, Always: s.Minority || s.Harmless || len(s.Troubles) == 0,
	}
	if s.Reserve > 0 {
		p.Run.Members = members
	}
	p.Run.Settled = s.Tries
	p.Run.Forgetful = s.Forgets && s.Others[1] > 0
	if p.Run.Planned = s.Planned; s.Planned {
		p.Run.TTL = p.TTL
	}
	p.boundWaiting(clients)
	p.boundMemory(clients)
	if s.Once { // only the quarantine, perhaps twice
		p.Run.Bound = 2*max(o.Quarantine, p.shortest()) + p.TTL
		return
	}
	// A lock may have to wait for a token of a dead client, for nodes that may have forgotten, for
	// the pauses of lanes that reconnect, and for all other clients that want it.
	p.Run.Bound = 2*p.TTL + max(o.Quarantine, p.shortest(), 2*time.Second) + 5*time.Second + time.Duration(clients*p.Workers)*(p.TTL+200*time.Millisecond)
	p.boundChanges()
}

// Dialect returns the dialect of a client; nil: it is a client of this library.
func (p *Plan) Dialect(client int) *Dialect {
	if client > len(p.Dialects) {
		return nil
	}
	return &Dialects[p.Dialects[client-1]]
}

// most is how many nodes there can be: the model has places for so many.
const most = 8

func suffix(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// Pick draws an element of a slice.
func Pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// Below draws a duration below d.
func Below(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(max(int64(d), 1)))
}
