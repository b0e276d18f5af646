package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// A plainClient locks as https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
// says, without this library, as a client of another library does.
type plainClient struct {
	*Client
	nodes []PlainNode
	tries int
}

func (c *plainClient) work(ctx context.Context) {
	rng := rand.New(rand.NewPCG(c.Plan.Run.Seed, uint64(c.Number)<<8))
	c.workers.Go(func() {
		for ctx.Err() == nil {
			Wait(ctx, 1+scenario.Below(rng, c.Plan.TTL/4))
			c.Process.Pass(0, c.tries)
			c.turn(ctx, rng)
		}
	})
}

// each asks all nodes at once and counts those that say yes.
func (c *plainClient) each(ask func(PlainNode) bool) (yes int) {
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
	op, name, ttl := int(c.ops.Add(1)), scenario.Pick(rng, c.Plan.Names), c.Plan.TTL
	c.tries++
	token := fmt.Sprintf("%016x%016x", c.Number, c.tries) // of the form that node-redlock and redis-py make
	c.note(history.Event{Kind: history.Ask, Op: op, Name: name, Verb: "plain"})
	sent := time.Now()
	votes := c.each(func(n PlainNode) bool {
		ok, err := n.SetNX(ctx, name, token, ttl)
		return ok && err == nil
	})
	until := sent.Add(ttl - ttl/100 - 2*time.Millisecond)
	release := func() {
		c.each(func(n PlainNode) bool { return n.CompareAndDelete(context.WithoutCancel(ctx), name, token) == nil })
	}
	// It sends no release a second time, so the TTL is the backstop.
	c.Leftovers.Add(token)
	if votes < c.Plan.Run.Quorum || !time.Now().Before(until) {
		c.note(history.Event{Kind: history.Denied, Op: op, Name: name, Why: "held"})
		release()
		return
	}
	c.note(history.Event{Kind: history.Got, Op: op, Name: name, Token: token, Until: c.at(until)})
	Wait(ctx, min(scenario.Below(rng, ttl), time.Until(until)-1))
	c.note(history.Event{Kind: history.Release, Op: op, Name: name, Until: c.at(until)})
	release()
	c.note(history.Event{Kind: history.Released, Op: op, Name: name})
}
