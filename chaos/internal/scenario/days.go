package scenario

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/testbed/model"
)

const (
	hour = time.Hour
	day  = 24 * hour
)

// drawDays draws the days on which the clients work, and the faults in between: the clocks of a
// minority of nodes are off by up to months, from some time before the clients work to some time
// after; then they are set right, and the nodes lose their data. No lock is held when a clock is
// set: a client that has not seen the clock before cannot know (Options.MaxNodeSkew). But what
// locks leave behind must last.
func (p *Plan) drawDays(rng *rand.Rand, arena Limits, nodes int) {
	s := p.Scenario
	p.Work = p.Span
	at := day / 2
	for range 2 + rng.IntN(s.Days-1) {
		p.Days = append(p.Days, at.Truncate(model.Slot))
		p.Span = (at + p.Work).Truncate(model.Slot)
		gap := 25*hour + Below(rng, hour)
		if rng.IntN(2) == 0 {
			gap = 25*hour + Below(rng, 59*day)
		}
		at += gap
	}
	if s.Ahead {
		p.drawAhead(rng, nodes)
		return
	}
	kinds, weak := arena.Able(s.Troubles), rng.Perm(nodes)[:(nodes-1)/2]
	if len(kinds) == 0 || len(weak) == 0 {
		return
	}
	off := make(map[int]int) // by node: the first day on which its clock is right again
	for i, at := range p.Days {
		for n := range rng.IntN(3) {
			f := history.Fault{At: at - hour, Kind: Pick(rng, kinds), Node: Pick(rng, weak)}
			switch f.Kind {
			case history.Clock:
				last := min(i+rng.IntN(2), len(p.Days)-1)
				if off[f.Node] > i {
					continue
				}
				off[f.Node] = last + 1
				f.For, f.By = p.Days[last]+p.Work+hour-f.At, hour+Below(rng, 60*day)
				if rng.IntN(3) == 0 {
					f.By = -f.By
				}
				if last == len(p.Days)-1 {
					f.For = p.Span - f.At // it is never set right
				}
			case history.Flush:
			default: // it is back before a client works
				f.For = (1 + Below(rng, time.Minute)).Truncate(model.Slot)
			}
			f.At += time.Duration(n) * 10 * time.Minute
			f.At = f.At.Truncate(model.Slot) + time.Duration(len(p.Faults)%model.Actors)
			f.For = f.For.Truncate(model.Slot)
			p.Faults = append(p.Faults, f)
		}
	}
	slices.SortStableFunc(p.Faults, func(a, b history.Fault) int { return cmp.Compare(a.At, b.At) })
}

// drawAhead draws nodes whose clocks are ahead on the first day, all by the same, and so far that on the next day time has not
// caught up with the numbers that they have counted. If they are no quorum, the others are away when the clients begin: a
// client that has not heard of those takes the wrong clocks for right. No node loses its data: fences would begin again.
// No lock is held when a clock is set: it is wrong from a while before the clients work to a while after.
func (p *Plan) drawAhead(rng *rand.Rand, nodes int) {
	const before, after = 20 * time.Second, 20 * time.Second
	first, by := p.Days[0], p.Days[1]-p.Days[0]+hour+Below(rng, 60*day)
	ahead := 1 + rng.IntN(nodes)
	for i, node := range rng.Perm(nodes) {
		f := history.Fault{At: first - before + time.Duration(i)*time.Second, Kind: history.Clock, Node: node, For: before + p.Work + after, By: by}
		if i >= ahead {
			if ahead > nodes/2 {
				break
			}
			f.Kind, f.By = Pick(rng, []history.FaultKind{history.Kill, history.Cut}), 0
			f.For = first + Below(rng, p.Work) - f.At
		}
		f.At, f.For = f.At.Truncate(model.Slot)+time.Duration(i), f.For.Truncate(model.Slot)
		p.Faults = append(p.Faults, f)
	}
}

// drawIdle draws when the clients work, and when their connections are cut, in between: by the servers, or by something
// on the way that tells the client, or does not. No connection is used for the time after which the library looks at it
// (package redisnode): one second, or ten where a look shows nothing.
func (p *Plan) drawIdle(rng *rand.Rand, arena Limits, nodes int) {
	p.Work = p.Span
	kinds := arena.Able(p.Scenario.Troubles)
	for at, n := time.Duration(0), 2+rng.IntN(5); ; n-- {
		p.Days = append(p.Days, at.Truncate(model.Slot))
		p.Span = (at + p.Work).Truncate(model.Slot)
		if n == 0 || len(kinds) == 0 {
			return
		}
		kind := Pick(rng, kinds)
		unused := 2*time.Second + Below(rng, 8*time.Second)
		if kind == history.Forget {
			unused = 11*time.Second + Below(rng, 10*time.Minute)
		}
		rest := 4 * p.TTL // until no lock is held or renewed
		cut := at + p.Work + rest + Below(rng, unused)
		for _, node := range rng.Perm(nodes)[:1+rng.IntN(nodes)] {
			p.Faults = append(p.Faults, history.Fault{At: cut.Truncate(model.Slot) + time.Duration(len(p.Faults)%model.Actors), Kind: kind, Node: node})
			cut += model.Slot
		}
		at += p.Work + rest + unused + time.Second
	}
}

// drawStalls makes the requests over one node's connections stall when the first client asks for its lock, and go on long
// after clients have given up these connections. In half of the plans the node sets the key late, and it is the release of
// that which stalls; another node is away for a while. In the others the acquire stalls, and shortly before the lock ends the
// node loses its data, with what it has granted to the second client. Other clients begin later.
func (p *Plan) drawStalls(rng *rand.Rand, nodes int) {
	at, timeout, node := p.TTL/2, p.Options.NodeTimeout, rng.IntN(nodes)
	add := func(at, long time.Duration, kind history.FaultKind, node int) {
		p.Faults = append(p.Faults, history.Fault{At: at.Truncate(model.Slot) + time.Duration(len(p.Faults)), Kind: kind, Node: node, For: long.Truncate(model.Slot)})
	}
	begin := at + p.TTL/4
	if p.Emptied = rng.IntN(2) == 0; p.Emptied {
		begin = at + p.TTL
		add(at, p.TTL-6*p.Stride(), history.CutRequests, node)
		add(at+p.TTL-7*p.Stride(), 0, history.Flush, node)
	} else {
		late := timeout + Below(rng, 2*timeout)
		add(at, late, history.CutRequests, node)
		add(at+late+model.Slot, p.TTL+Below(rng, 2*p.TTL), history.CutRequests, node)
		add(at+p.TTL/2+Below(rng, 2*p.TTL), p.TTL/4+Below(rng, p.TTL*3/4), history.Kill, (node+1+rng.IntN(nodes-1))%nodes)
	}
	p.Days, p.Work = []time.Duration{begin}, p.Span-begin
}

// Stride is the time between two events where a node at which requests stall loses its data.
func (p *Plan) Stride() time.Duration { return p.Options.NodeTimeout / 10 }

// drawAway makes one node be away for nearly as long as the clients work; or, if another node has a
// fault before, from when that fault is over and the node has a vote again.
func (p *Plan) drawAway(rng *rand.Rand, arena Limits, nodes int) {
	kinds := arena.Able(p.Scenario.Troubles)
	if len(kinds) == 0 {
		return
	}
	f := history.Fault{At: (p.TTL + Below(rng, p.TTL)).Truncate(model.Slot), Kind: Pick(rng, kinds), Node: rng.IntN(nodes)}
	f.For = (p.Span - 2*p.TTL - f.At).Truncate(model.Slot)
	if p.Scenario.Late > 0 { // no client has met the node before
		f.At, f.For = model.Slot, (p.Span-p.Work).Truncate(2*model.Slot)/2
	}
	if f.Kind == history.LoseReplies {
		f.Times = 1 << 30
	}
	if s := p.Scenario; s.Before != "" {
		earlier := history.Fault{At: f.At, Kind: s.Before, Node: (f.Node + 1 + rng.IntN(nodes-1)) % nodes, By: hour + Below(rng, 60*day)}
		earlier.For = (2*p.TTL + Below(rng, 2*p.TTL)).Truncate(model.Slot)
		p.Faults = append(p.Faults, earlier)
		rest := (earlier.For + p.TTL + 4*time.Second).Truncate(model.Slot)
		f.At, f.For = f.At+rest+1, f.For-rest
	}
	p.Faults = append(p.Faults, f)
}
