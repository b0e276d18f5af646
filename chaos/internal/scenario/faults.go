package scenario

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/testbed/model"
)

// A place is something that only one fault can have at a time.
type place struct {
	group  string
	number int
}

// A faultDraw has what is decided before the first fault, and the places that the faults so far take.
type faultDraw struct {
	plan  *Plan
	rng   *rand.Rand
	nodes int
	limit time.Duration
	back  []bool          // by node: its clock is set back, and not forward
	moved []time.Duration // by node: how far its clock was set, in all (Near)
	ahead bool            // clocks of booting nodes are ahead
	busy  map[place]time.Duration
}

// drawFaults draws the faults. No node has the same fault twice at once, so that the end of one is
// not the end of another; but it may have different ones.
func (p *Plan) drawFaults(rng *rand.Rand, arena Limits, nodes, clients int) {
	s := p.Scenario
	kinds := arena.Able(s.Troubles)
	if len(kinds) == 0 {
		return
	}
	d := faultDraw{plan: p, rng: rng, nodes: nodes, limit: s.Limit, back: make([]bool, nodes), moved: make([]time.Duration, nodes), busy: make(map[place]time.Duration)}
	weak := rng.Perm(nodes)
	for i := range d.back {
		d.back[i] = rng.IntN(4) == 0
	}
	switch {
	case s.Minority, p.Large:
		// A set of which a majority has lost its data may be made anew by others, with other settings. If
		// that gets lost as well, nodes of both are left, and no more than a majority ever agrees: an
		// operator has to empty the others.
		weak = weak[:(nodes-1)/2]
	case s.Weak > 0:
		weak = weak[:s.Weak]
	}
	d.ahead = slices.Contains(kinds, history.Boot) && rng.IntN(2) == 0
	if d.limit == 0 {
		d.limit = p.TTL * 3 / 2
	}
	for at := Below(rng, p.TTL/2); ; {
		f := history.Fault{At: at, Kind: Pick(rng, kinds)}
		at += 1 + Below(rng, time.Duration(2*float64(p.TTL)/s.Rate))
		if at > p.Span {
			break
		}
		f.Node = Pick(rng, weak)
		where := place{group(f.Kind), f.Node}
		if f.Kind.OnClient() {
			f.Node, f.Client = 0, 1+rng.IntN(clients)
			where = place{"client", f.Client}
		}
		f.For = 1 + Below(rng, d.limit)
		if !d.extent(&f, &where) {
			continue
		}
		if s.Slight && (f.Kind == history.Hang || f.Kind == history.Pause) {
			f.For = 1 + f.For%p.slight()
		}
		// No two faults of nodes begin or end at the same instant.
		f.At = f.At.Truncate(model.Slot) + time.Duration(len(p.Faults)%model.Actors)
		f.For = min(f.For, p.Span-f.At).Truncate(model.Slot)
		if f.At < d.busy[where] || f.For < 0 {
			continue
		}
		if f.Kind == history.PowerCut || s.Most && f.Kind == history.KillEmpty {
			d.together(f)
			continue
		}
		d.busy[where] = f.At + f.For
		p.Faults = append(p.Faults, f)
	}
	if s.Lost {
		at := func(n int) time.Duration {
			return p.Span + (time.Duration(n) * p.TTL / 16).Truncate(model.Slot) + time.Duration(len(p.Faults)%model.Actors)
		}
		p.Faults = append(p.Faults, history.Fault{At: at(1), Kind: history.Remake})
		for i := range clients {
			p.Faults = append(p.Faults, history.Fault{At: at(2 + i), Kind: history.Crash, Client: i + 1, For: p.RTT.Truncate(model.Slot)})
		}
	}
}

// extent draws the size of a fault, and reports whether the fault is possible.
func (d *faultDraw) extent(f *history.Fault, where *place) bool {
	p, s, rng := d.plan, d.plan.Scenario, d.rng
	switch f.Kind {
	case history.Hang, history.Cut, history.CutRequests, history.CutReplies:
		// With a longer time, a request whose client has given up is carried out after the release
		// that followed it: that is another kind of fault.
		if s.Limit == 0 {
			f.For = min(f.For, 1+Below(rng, 900*time.Millisecond))
		}
	case history.Slow, history.Jitter:
		f.By = 1 + Below(rng, min(p.TTL/4, 300*time.Millisecond))
		if s.Slight {
			f.By = 1 + f.By%p.slight()
		}
	case history.LoseReplies, history.TearReplies, history.Repeat, history.Evict:
		f.For, f.Times = 0, 1+rng.IntN(3)
	case history.RepeatLate:
		// A copy that comes within NodeTimeout, but after its release, is carried out; no real
		// connection makes such a copy. The same goes for one that comes a little later, by as much
		// as the clock may have drifted since the node's last reply.
		f.By, f.For, f.Times = 2*(p.Options.NodeTimeout+p.Span/50)+f.For, 0, 1+rng.IntN(3)
		if slices.Contains(s.Fails, "nothing left") {
			f.By = 1 + Below(rng, p.Options.NodeTimeout)
		}
	case history.Reset, history.Forget, history.Remake, history.Flush, history.FlushScripts, history.Deafen:
		f.For = 0
	case history.Churn:
		f.By = (ms + Below(rng, 20*ms)).Truncate(model.Slot)
	case history.Mislead, history.Restore:
		f.Times = 1 + rng.IntN(64)
	case history.CutFile, history.FlipFile, history.OtherFile:
		f.Times = 1 + rng.IntN(1<<20)
	case history.OldFile:
		f.By = Below(rng, f.At)
	case history.Slew:
		f.By = Below(rng, 19800*us) - 9900*us
	case history.Step:
		return d.step(f, where)
	case history.Boot:
		return d.boot(f)
	case history.Skew:
		f.For, f.By = 0, 1+Below(rng, p.TTL)
	}
	return true
}

// together makes all nodes die at the moment of a fault of one of them, unless one is dead already. Each is restarted after
// another time, and has lost more or less of its last second, as with appendfsync everysec, or all its data: then one or two
// nodes do not die.
func (d *faultDraw) together(f history.Fault) {
	for i := range d.nodes {
		if f.At < d.busy[place{group(f.Kind), i}] {
			return
		}
	}
	stay := 0
	if d.plan.Scenario.Most {
		stay = 1 + d.rng.IntN(2)
	}
	for i, node := range d.rng.Perm(d.nodes) {
		if i < stay {
			continue
		}
		f := f
		if f.Node = node; f.Kind == history.PowerCut {
			f.By = Below(d.rng, time.Second)
		} else {
			f.At = f.At.Truncate(time.Microsecond) + time.Duration(i) // so that their order is the same in each run
		}
		f.For = min(1+Below(d.rng, d.limit), d.plan.Span-f.At).Truncate(model.Slot)
		d.busy[place{group(f.Kind), node}] = f.At + f.For
		d.plan.Faults = append(d.plan.Faults, f)
	}
}

// step sets a node's clock: not before all clients have seen it, and always in the same direction.
// If a clock is set back where it was, only clients that have looked in between can know. Where nodes become members, a
// client may meet one after its clock was set, and docs/safety.md promises nothing if that was forward: there it is back.
func (d *faultDraw) step(f *history.Fault, where *place) bool {
	p, rng := d.plan, d.rng
	f.At += 20 * p.RTT
	f.For, f.By = 0, 1+Below(rng, []time.Duration{2 * p.TTL, p.TTL / 8}[rng.IntN(2)])
	if d.back[f.Node] || p.Scenario.Reserve > 0 {
		f.By = -f.By
	}
	if p.Scenario.Near {
		if (d.moved[f.Node] + f.By).Abs() > 120*ms { // the default MaxNodeSkew is 250 ms at least
			return false
		}
		d.moved[f.Node] += f.By
	}
	if p.Scenario.Poison { // here it is set right again, and only at a minority of nodes
		f.For, f.By = 1+Below(rng, d.limit), time.Hour+Below(rng, 60*24*time.Hour)
		if f.Node %= (d.nodes - 1) / 2; f.At < d.busy[place{"step", f.Node}] {
			return false
		}
		where.number = f.Node
	}
	return true
}

// boot starts a node with a wrong clock. The clock is set right before the node votes, or fences of
// the future would be forgotten again.
func (d *faultDraw) boot(f *history.Fault) bool {
	p, rng := d.plan, d.rng
	f.For = 1 + Below(rng, p.TTL)
	f.By = []time.Duration{time.Hour, 2 * p.TTL}[rng.IntN(2)]
	if !d.ahead {
		f.By = -f.By
		return true
	}
	// Fences of the future are larger than others only as long as the nodes remember them.
	return len(p.Faults) == 0 || f.At <= p.Faults[0].At+p.TTL/4
}

// group names the place that a kind of fault takes at a node while it lasts.
func group(t history.FaultKind) string {
	switch t {
	case history.Kill, history.KillEmpty, history.Hang, history.Still, history.Boot, history.Mislead, history.Restore,
		history.CutFile, history.FlipFile, history.OldFile, history.OtherFile, history.PowerCut:
		return "process"
	case history.Slow, history.Jitter:
		return "delay"
	case history.Cut, history.CutRequests, history.CutReplies, history.Part:
		return "cut"
	case history.FlushScripts, history.Churn:
		return "scripts"
	case history.Full, history.ReadOnly, history.Loading, history.Locked, history.Crowded, history.Busy, history.Mute:
		return "refusal"
	}
	return string(t)
}
