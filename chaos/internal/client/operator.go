package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// Removes begins the Name of a change that removes the node with the address that follows.
const Removes = "remove "

// An operator changes the set, one thing after another, and goes by what its Locker knows: so it goes on
// where another one has died.
type operator struct {
	*Client
	rng    *rand.Rand
	leaves string // the member that is to go next, for which another one has come
}

// operate runs an operator until ctx ends.
func (c *Client) operate(ctx context.Context) {
	o := &operator{Client: c, rng: rand.New(rand.NewPCG(c.Plan.Run.Seed, uint64(c.Number)<<8))}
	c.workers.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			Wait(ctx, o.pause())
			c.Process.Pass(0, n)
			if c.Plan.Scenario.Late > 0 && time.Since(c.Start) > c.Plan.Days[0]*3/4 {
				return // no change is under way when the clients begin
			}
			if ctx.Err() == nil {
				o.change(ctx)
			}
		}
	})
}

// pause is for how long it does nothing. Rivals begin at nearly the same moments: what they do is under way
// at once, and one of them may be stopped in the middle of it.
func (o *operator) pause() time.Duration {
	if !o.Plan.Scenario.Rivals {
		return 1 + scenario.Below(o.rng, o.Plan.TTL)
	}
	if o.rng.IntN(2) == 0 {
		return 1 + scenario.Below(o.rng, 4*o.Plan.RTT)
	}
	every := o.Plan.TTL
	now := time.Since(o.Start)
	return now.Truncate(every) + every - now + scenario.Below(o.rng, 4*o.Plan.RTT)
}

// change makes one change, and sometimes gives it up.
func (o *operator) change(ctx context.Context) {
	change, what := o.draw()
	limit := 24 * o.Plan.TTL
	if o.rng.IntN(3) == 0 {
		limit = 1 + scenario.Below(o.rng, 4*o.Plan.TTL)
	}
	o.make(ctx, change, what, limit)
}

// make makes a change within a limit.
func (o *operator) make(ctx context.Context, change redlock.Change, what string, limit time.Duration) {
	op := int(o.ops.Add(1))
	o.note(history.Event{Kind: history.Changing, Op: op, Name: what, Limit: limit})
	changing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := o.locker.Change(changing, change, nil)
	if err != nil {
		o.note(history.Event{Kind: history.Changed, Op: op, Name: what, Why: why(err), Error: text(err)})
		return
	}
	o.note(history.Event{Kind: history.Changed, Op: op, Name: what, Also: strings.Join(m.Nodes, " "), Value: int(m.Epoch), Was: m.Quorum})
}

// draw draws the next change: a node comes, a member goes, a member is replaced, which is two changes, or
// another quorum; or it is of the longest TTL alone. There are as many members at least as the scenario says, or two, mostly three.
func (o *operator) draw() (redlock.Change, string) {
	if o.Plan.Scenario.Settings {
		most := scenario.Pick(o.rng, []time.Duration{o.opts.TTL, o.opts.TTL, o.Plan.TTL})
		return redlock.Change{MaxTTL: &most}, fmt.Sprint("max-ttl ", most)
	}
	members := o.locker.Members().Nodes
	others := slices.DeleteFunc(slices.Clone(o.Process.Addrs()), func(addr string) bool { return slices.Contains(members, addr) })
	add := func() (redlock.Change, string) {
		addr := scenario.Pick(o.rng, others)
		return redlock.Change{Add: addr}, "add " + addr
	}
	if leaves := o.leaves; slices.Contains(members, leaves) {
		o.leaves = ""
		if len(members) > max(o.Plan.Scenario.Least, 2) { // the node that was to take its place may not have come
			return redlock.Change{Remove: leaves}, Removes + leaves
		}
	}
	// Rivals: from four members two may be removed at once that leave no node in common. Late: the first members go soon.
	if o.Plan.Scenario.Rivals || o.Plan.Scenario.Late > 0 {
		if len(members) > max(o.Plan.Scenario.Least, 3) || len(others) == 0 {
			addr := scenario.Pick(o.rng, members)
			return redlock.Change{Remove: addr}, Removes + addr
		}
		return add()
	}
	switch least := max(o.Plan.Scenario.Least, 2+min(o.rng.IntN(4), 1)); o.rng.IntN(8) {
	case 0, 1:
		if len(others) > 0 {
			return add()
		}
	case 2, 3, 4:
		if len(others) > 0 {
			o.leaves = scenario.Pick(o.rng, members)
			return add()
		}
	case 5, 6:
		if len(members) > least {
			addr := scenario.Pick(o.rng, members)
			return redlock.Change{Remove: addr}, Removes + addr
		}
	}
	quorum := 0
	if n := len(members); o.rng.IntN(2) == 0 && o.Plan.Scenario.Least == 0 {
		quorum = n/2 + 1 + o.rng.IntN(n-n/2)
	}
	return redlock.Change{Quorum: &quorum}, fmt.Sprint("quorum ", quorum)
}

// replaces runs an operator that replaces one member after another, when the plan says. The node that comes is added
// first, as the documents have it; but a member that is dead is removed first.
func (c *Client) replaces(ctx context.Context) {
	o := &operator{Client: c}
	c.workers.Go(func() {
		for n, r := range c.Plan.Replaced {
			leaves, comes := c.Process.Addrs()[r.Leaves], c.Process.Addrs()[r.Comes]
			both := []struct {
				change redlock.Change
				what   string
			}{{redlock.Change{Add: comes}, "add " + comes}, {redlock.Change{Remove: leaves}, Removes + leaves}}
			if r.Dead {
				slices.Reverse(both)
			}
			Wait(ctx, r.At-time.Since(c.Start))
			for i, one := range both {
				c.Process.Pass(0, 2*n+i)
				if ctx.Err() != nil {
					return
				}
				o.make(ctx, one.change, one.what, r.Limit)
			}
		}
	})
}

// moves runs an operator that moves the set, when the plan says. It goes by what its Locker knows, and leaves out what was
// due before it came in. A node comes that has been no member for long.
func (c *Client) moves(ctx context.Context) {
	o := &operator{Client: c}
	c.workers.Go(func() {
		addrs := slices.Clone(c.Process.Addrs()) // those that were removed last are at the end
		for n, m := range c.Plan.Moves {
			rest := m.At - time.Since(c.Start)
			if rest < 0 {
				continue
			}
			Wait(ctx, rest)
			c.Process.Pass(0, 2*n)
			if ctx.Err() != nil {
				return
			}
			members := o.locker.Members().Nodes
			others := slices.DeleteFunc(slices.Clone(addrs), func(addr string) bool { return slices.Contains(members, addr) })
			if m.Adds && len(others) > 0 {
				comes := others[m.Comes%((len(others)+1)/2)]
				o.make(ctx, redlock.Change{Add: comes}, "add "+comes, m.Limit)
				c.Process.Pass(0, 2*n+1)
			}
			if m.Leaves && len(o.locker.Members().Nodes) > c.Plan.Scenario.Least && len(members) > 0 {
				o.make(ctx, redlock.Change{Remove: members[0]}, Removes+members[0], m.Limit)
				addrs = append(slices.DeleteFunc(addrs, func(addr string) bool { return addr == members[0] }), members[0])
			}
		}
	})
}

// A breaker is an operator that takes locks away from their holders, as redlock break does: it looks who has a
// lock, and some time later breaks that very one.
type breaker struct {
	*Client
	rng *rand.Rand
}

// A distant process can be made to reach nodes late that others reach in time. Where it cannot, the faults of the
// nodes are all that comes between.
type distant interface {
	Far(node int, d time.Duration)
}

// breaks runs a breaker until ctx ends.
func (c *Client) breaks(ctx context.Context) {
	b := &breaker{Client: c, rng: rand.New(rand.NewPCG(c.Plan.Run.Seed, uint64(c.Number)<<8))}
	c.workers.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			Wait(ctx, 1+scenario.Below(b.rng, c.Plan.TTL/8))
			c.Process.Pass(0, 2*n)
			if ctx.Err() == nil {
				b.breakOne(ctx, n)
			}
		}
	})
}

// breakOne breaks a lock that it finds.
func (b *breaker) breakOne(ctx context.Context, n int) {
	name := scenario.Pick(b.rng, b.Plan.Names)
	s, err := b.locker.Inspect(ctx, name)
	if b.rng.IntN(4) == 0 { // until it answers the question
		Wait(ctx, 1+scenario.Below(b.rng, b.Plan.TTL/2))
	}
	b.Process.Pass(0, 2*n+1)
	if err != nil || ctx.Err() != nil {
		return
	}
	var tokens []string
	for _, node := range s.Nodes {
		if node.Token != "" {
			tokens = append(tokens, node.Token)
		}
	}
	for _, h := range s.Holders {
		if h.Mode == redlock.ModeShared || h.Mode == redlock.ModeSlot {
			tokens = append(tokens, h.Token)
		}
	}
	slices.Sort(tokens)
	if tokens = slices.Compact(tokens); len(tokens) == 0 {
		return
	}
	token := scenario.Pick(b.rng, tokens)
	b.Leftovers.Add(token) // its keys on other names, or what comes late, go with their TTL

	if p, can := b.Process.(distant); can {
		most := b.rng.IntN(b.Plan.Run.Nodes + 1)
		for node := range b.Plan.Run.Nodes {
			far := time.Duration(0)
			if b.rng.IntN(b.Plan.Run.Nodes) < most {
				far = scenario.Below(b.rng, b.Plan.TTL/time.Duration(1+b.rng.IntN(16)))
			}
			p.Far(node, far)
			defer p.Far(node, 0)
		}
	}
	op, limit := int(b.ops.Add(1)), 1+scenario.Below(b.rng, 2*b.Plan.TTL)+4*b.Plan.Options.NodeTimeout
	e := history.Event{Kind: history.Break, Op: op, Name: name, Token: token, Limit: limit}
	b.note(e)
	breaking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = b.locker.Break(breaking, name, token)
	e.Kind, e.Limit, e.Why, e.Error = history.Broke, 0, why(err), text(err)
	if err == nil { // an extension that began before it is valid for so long
		e.Until = time.Since(b.Start) + b.Plan.TTL - b.Plan.TTL/100 - 2*time.Millisecond
	}
	b.note(e)
}
