package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// A plainClient locks as https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
// says, and knows nothing of redlock: what everybody else's client does.
type plainClient struct {
	*client
	nodes []plainNode
	tries int
}

func (c *plainClient) work(ctx context.Context) {
	rng := rand.New(rand.NewPCG(c.plan.Run.Seed, uint64(c.number)<<8))
	c.workers.Go(func() {
		for ctx.Err() == nil {
			wait(ctx, 1+below(rng, c.plan.TTL/4))
			c.turn(ctx, rng)
		}
	})
}

// each asks all nodes at once and counts those that say yes.
func (c *plainClient) each(ask func(plainNode) bool) (yes int) {
	answers := make(chan bool, len(c.nodes))
	for _, n := range c.nodes {
		go func() { answers <- ask(n) }()
	}
	for range c.nodes {
		if <-answers {
			yes++
		}
	}
	return yes
}

func (c *plainClient) turn(ctx context.Context, rng *rand.Rand) {
	op, name, ttl := int(c.ops.Add(1)), pick(rng, c.plan.Names), c.plan.TTL
	c.tries++
	token := fmt.Sprintf("c%d.%d", c.number, c.tries)
	c.note(Event{Kind: Ask, Op: op, Name: name, Verb: "plain"})
	sent := time.Now()
	votes := c.each(func(n plainNode) bool {
		ok, err := n.setNX(ctx, name, token, ttl)
		return ok && err == nil
	})
	until := sent.Add(ttl - ttl/100 - 2*time.Millisecond)
	release := func() {
		c.each(func(n plainNode) bool { return n.compareAndDelete(context.WithoutCancel(ctx), name, token) == nil })
	}
	// It tells no node again what it could not tell once, so the TTL is its net.
	c.lots.add(token)
	if votes < c.plan.Run.Quorum || !time.Now().Before(until) {
		c.note(Event{Kind: Denied, Op: op, Name: name, Why: "held"})
		release()
		return
	}
	c.note(Event{Kind: Got, Op: op, Name: name, Token: token, Until: c.at(until)})
	wait(ctx, min(below(rng, ttl), time.Until(until)-1))
	c.note(Event{Kind: Release, Op: op, Name: name, Until: c.at(until)})
	release()
	c.note(Event{Kind: Released, Op: op, Name: name})
}
