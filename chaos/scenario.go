package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/model"
)

// A Scenario is a kind of trouble, and who has to live with it. It is a
// distribution: a seed makes a [Plan] of it, the same one every time.
type Scenario struct {
	Name  string
	About string // one sentence, for people

	Nodes   []int           // how many: one of these
	Clients [2]int          // how many: from and to
	TTL     []time.Duration // of the locks: one of these
	RTT     []time.Duration // of the network: one of these, where time is virtual
	Quorum  func(nodes int) int

	Troubles []Trouble     // what goes wrong: each as often as it is named
	Rate     float64       // how often, on average, in a TTL
	Limit    time.Duration // for how long at the most; 0: one and a half TTLs
	Weak     int           // only ever at so many nodes, the same ones; 0: at any
	Minority bool          // only ever at the same minority of nodes: the others are well
	Harmless bool          // nobody need notice: a quorum is well all the time, wherever it happens
	Slight   bool          // and is over so soon that it does not count
	Fast     bool          // the nodes' clocks run fast, by nearly as much as the drift allows
	Wrong    bool          // the clients' clocks show anything
	Poison   bool          // clocks that are set are a minority's, and are set right again
	Apart    bool          // nobody compares the nodes' clocks with each other
	Forgets  bool          // nodes lose what they have been told, so that a quarantine is needed
	Default  bool          // and not a shorter one than the library has by itself
	Settings bool          // every other client has shorter locks, and takes them for the longest there are

	Spread  int     // over how many names the clients spread; 0: one or two
	Kinds   bool    // of all kinds: shared, of several names, slots, paths
	Plain   bool    // the last client is no redlock
	Write   bool    // holders write to a resource
	Unended bool    // holders may forget to release
	Days    int     // there are up to so many times at which clients work, Span long, and a day to sixty between two; 0: they work all the time
	Fresh   bool    // some clients make a new Locker for each lock
	Away    bool    // one of the troubles begins soon, and ends late
	Before  Trouble // and another node has had this before, and is well again
	Names   bool    // each lock is on names that nobody has had before
	Weigh   bool    // nodes and clients remember little
	Find    bool    // who gets a lock looks for it on the nodes, which never forget
	Once    bool    // a client asks once, and opens another Locker before it asks again
	Hands   bool    // locks are detached and attached again, as they are between processes
	Queue   bool    // clients wait for as long as it takes, and hold briefly
	Brief   bool    // they hold briefly, and ask again soon
	Long    bool    // its TTLs are long enough for what is left to be seen, whatever time they take
	Workers int     // how many goroutines share a client's Locker: up to
	Span    float64 // for how many TTLs they work
	Weight  int     // what one schedule costs, in those of other scenarios; 0: 1

	// Fails are the rules that are broken here, and Because says why nothing is
	// done about it. A run that keeps them all is a failure then.
	Fails   []string
	Because string

	Only []string // arenas; nil: all
}

// A Plan is a scenario with everything in it decided: what a seed stands for.
type Plan struct {
	Run     Head
	TTL     time.Duration
	RTT     time.Duration
	Drift   time.Duration   // what the library takes off; 0: its default
	Span    time.Duration   // when the clients stop working
	Days    []time.Duration // when they begin to, each time for Work; nil: at once
	Work    time.Duration
	Faults  []Fault         // in order
	Rates   []float64       // by node: how much faster its clock runs
	Skews   []time.Duration // by client: what its clock is ahead by; nil: nothing
	Names   []string
	Wants   []want // nil: each name, alone
	Workers int

	scenario *Scenario
	options  redlock.Options
}

// plan draws a plan for an arena from a seed. The options are the user's: what
// they leave open, the scenario decides.
func (s *Scenario) plan(arena *Arena, seed uint64, opts *redlock.Options, nodes int) *Plan {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	p := &Plan{scenario: s}
	if opts != nil {
		p.options = *opts
	}
	o := &p.options
	if o.TTL == 0 {
		ttls := arena.ttls(s.TTL)
		if s.Long {
			ttls = s.TTL
		}
		o.TTL = pick(rng, ttls)
	}
	p.TTL = o.TTL
	if o.NodeTimeout == 0 {
		o.NodeTimeout = min(max(o.TTL/10, 50*time.Millisecond), o.TTL/2-o.TTL/20, 500*time.Millisecond) // about the library's own
	}
	n := pick(rng, s.Nodes)
	if nodes > 0 {
		n = nodes
	}
	if o.Quorum == 0 && s.Quorum != nil {
		o.Quorum = s.Quorum(n)
	}
	quorum := max(o.Quorum, n/2+1)
	shortest := p.TTL + p.TTL/100 + 2*time.Millisecond
	switch trust := rng.IntN(2) == 0; {
	case o.Quarantine != 0 || s.Default:
	case trust && !s.Forgets:
		o.Quarantine = -1
	default:
		o.Quarantine = shortest
	}
	if s.Apart {
		o.MaxNodeSkew = -1
	}
	clients := s.Clients[0] + rng.IntN(s.Clients[1]-s.Clients[0]+1)
	if arena.Room > 0 {
		clients = min(clients, arena.Room)
	}
	// Over a slower network, locks as short as this could not be had at all.
	p.RTT = min(pick(rng, s.RTT), p.TTL/40)
	p.Workers = 1 + rng.IntN(max(s.Workers, 1))
	p.Span = time.Duration(s.Span * float64(p.TTL)).Truncate(model.Slot)
	names := s.Spread
	if names == 0 {
		names = 1 + rng.IntN(2)
	}
	for i := range names {
		p.Names = append(p.Names, string(rune('a'+i%26))+suffix(i/26))
	}
	if s.Names {
		o.Separator = cmp.Or(o.Separator, "/")
	}
	if s.Kinds {
		o.Separator = cmp.Or(o.Separator, "/")
		p.Wants = dish(rng, o.Separator)
		p.Names = allNames(p.Wants)
	}
	p.Rates = make([]float64, n)
	// One who is alone looks at the clocks too seldom for that. See quartz in skew.go.
	if s.Fast && clients > 1 {
		for i := range p.Rates {
			p.Rates[i] = 0.0099 * min(1, 2*rng.Float64())
		}
	}
	if s.Wrong {
		for range 16 { // more than there are, for those who take the place of others
			p.Skews = append(p.Skews, below(rng, 200*24*time.Hour)-100*24*time.Hour)
		}
	}
	switch {
	case s.Days > 0:
		p.days(rng, arena, n)
	case s.Away:
		p.away(rng, arena, n)
	default:
		p.strike(rng, arena, n, clients)
	}
	overlap := time.Duration(0)
	if slices.Contains(s.Fails, "exclusion") {
		overlap = 2*o.NodeTimeout + p.TTL // an attempt, and a stop in the middle of it
	}
	crashes := 0
	for _, f := range p.Faults {
		if f.Trouble == Crash {
			crashes++
		}
	}
	p.Run = Head{
		Scenario: s.Name, Arena: arena.Name, Seed: seed, Nodes: n, Quorum: quorum, Clients: clients + crashes, Separator: o.Separator,
		Lag: arena.Lag, Overlap: overlap, Look: min(max(p.TTL/10, 50*time.Millisecond), 500*time.Millisecond), Exact: arena.Exact, Always: s.Minority || s.Harmless || len(s.Troubles) == 0,
	}
	// What a lock may have to wait for: a token of somebody who died, nodes that may
	// have forgotten, the pauses of lanes that look for their node, and everybody else
	// who wants it as well.
	p.patience(clients)
	p.limits(clients)
	if s.Once { // nothing but the quarantine, perhaps once more
		p.Run.Bound = 2*max(o.Quarantine, shortest) + p.TTL
		return p
	}
	p.Run.Bound = 2*p.TTL + max(o.Quarantine, shortest, 2*time.Second) + 5*time.Second + time.Duration(clients*p.Workers)*(p.TTL+200*time.Millisecond)
	return p
}

func suffix(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// below draws a duration under d.
func below(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(max(int64(d), 1)))
}

// strike draws the faults. No node has the same trouble twice at once, so the end
// of one is not the end of another; but it may well have different ones.
func (p *Plan) strike(rng *rand.Rand, arena *Arena, nodes, clients int) {
	s := p.scenario
	troubles := arena.able(s.Troubles)
	if len(troubles) == 0 {
		return
	}
	type place struct {
		group  string
		number int
	}
	busy := make(map[place]time.Duration)
	weak := rng.Perm(nodes)
	back := make([]bool, nodes)
	for i := range back {
		back[i] = rng.IntN(4) == 0
	}
	switch {
	case s.Minority:
		weak = weak[:(nodes-1)/2]
	case s.Weak > 0:
		weak = weak[:s.Weak]
	}
	ahead := slices.Contains(troubles, Boot) && rng.IntN(2) == 0
	limit := s.Limit
	if limit == 0 {
		limit = p.TTL * 3 / 2
	}
	for at := below(rng, p.TTL/2); ; {
		f := Fault{At: at, Trouble: pick(rng, troubles)}
		at += 1 + below(rng, time.Duration(2*float64(p.TTL)/s.Rate))
		if at > p.Span {
			break
		}
		f.Node = pick(rng, weak)
		where := place{f.Trouble.group(), f.Node}
		if f.Trouble.onClient() {
			f.Node, f.Client = 0, 1+rng.IntN(clients)
			where = place{"client", f.Client}
		}
		f.For = 1 + below(rng, limit)
		switch f.Trouble {
		case Hang, Cut, CutRequests, CutReplies:
			// Longer, and a request that nobody waits for any more is carried out after
			// the release that was to follow it: another trouble.
			if s.Limit == 0 {
				f.For = min(f.For, 1+below(rng, 900*time.Millisecond))
			}
		case Slow, Jitter:
			f.By = 1 + below(rng, min(p.TTL/4, 300*time.Millisecond))
			if s.Slight {
				f.By = 1 + f.By%p.slight()
			}
		case LoseReplies, TearReplies, Repeat, Evict:
			f.For, f.Times = 0, 1+rng.IntN(3)
		case RepeatLate:
			// A copy that comes within NodeTimeout, but after its release, is carried out: no
			// connection makes one. So is one a little later, by as much as the clock may have
			// drifted since the node was heard of.
			f.By, f.For, f.Times = 2*(p.options.NodeTimeout+p.Span/50)+f.For, 0, 1+rng.IntN(3)
			if slices.Contains(s.Fails, "nothing left") {
				f.By = 1 + below(rng, p.options.NodeTimeout)
			}
		case Reset, Flush, FlushScripts, Deafen:
			f.For = 0
		case Churn:
			f.By = (ms + below(rng, 20*ms)).Truncate(model.Slot)
		case Forge, Replay:
			f.For, f.By, f.Times = 0, (ms + below(rng, 20*ms)).Truncate(model.Slot), 1+rng.IntN(8)
		case Step:
			// Not before everybody has seen its clock, and always the same way: of one that
			// was set back where it was, only those know who have looked in between.
			f.At += 20 * p.RTT
			f.For, f.By = 0, 1+below(rng, []time.Duration{2 * p.TTL, p.TTL / 8}[rng.IntN(2)])
			if back[f.Node] {
				f.By = -f.By
			}
			if s.Poison { // but here it is set right again, and is a minority's
				f.For, f.By = 1+below(rng, limit), time.Hour+below(rng, 60*24*time.Hour)
				if f.Node %= (nodes - 1) / 2; f.At < busy[place{"step", f.Node}] {
					continue
				}
				where.number = f.Node
			}
		case Boot:
			// It is set right before it votes, or numbers of the future would be forgotten again.
			f.For = 1 + below(rng, p.TTL)
			f.By = []time.Duration{time.Hour, 2 * p.TTL}[rng.IntN(2)]
			if !ahead {
				f.By = -f.By
			} else if len(p.Faults) > 0 && f.At > p.Faults[0].At+p.TTL/4 {
				continue // numbers of the future are only above others as long as they are remembered
			}
		case Skew:
			f.For, f.By = 0, 1+below(rng, p.TTL)
		}
		if s.Slight && (f.Trouble == Hang || f.Trouble == Pause) {
			f.For = 1 + f.For%p.slight()
		}
		// No two things happen to the nodes at the same instant.
		f.At = f.At.Truncate(model.Slot) + time.Duration(len(p.Faults)%model.Actors)
		f.For = min(f.For, p.Span-f.At).Truncate(model.Slot)
		if f.At < busy[where] || f.For < 0 {
			continue
		}
		busy[where] = f.At + f.For
		p.Faults = append(p.Faults, f)
	}
}

// group names what a trouble has to itself at a node while it lasts.
func (t Trouble) group() string {
	switch t {
	case Kill, KillEmpty, Hang, Still, Boot:
		return "process"
	case Slow, Jitter:
		return "delay"
	case Cut, CutRequests, CutReplies, Part:
		return "cut"
	case FlushScripts, Churn:
		return "scripts"
	case Full, ReadOnly, Loading, Locked, Crowded, Busy, Mute:
		return "refusal"
	}
	return string(t)
}
