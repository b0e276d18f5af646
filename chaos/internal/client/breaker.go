package client

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

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
