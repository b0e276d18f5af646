package client

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// keeps runs the first client where requests stall (Plan.drawStalls). It acquires the lock once before, so that the nodes
// have a set. When the stall begins it acquires the lock again, extends it, and keeps it until it ends.
func (c *Client) keeps(ctx context.Context) {
	p, rng := c.Plan, rand.New(rand.NewPCG(c.Plan.Run.Seed, uint64(c.Number)<<8))
	c.workers.Go(func() {
		if h := c.gets(ctx, 0, p.Names[0], rng); h != nil {
			h.release(ctx)
		}
		h := c.gets(ctx, p.TTL/2, p.Names[0], rng)
		switch {
		case h == nil:
			return
		case p.Emptied:
			for n := range time.Duration(2) { // it meets the node again, and gives it the set's description
				if other := c.gets(ctx, p.TTL*3/2-(5-n)*p.Stride(), p.Names[1], rng); other != nil {
					other.release(ctx)
				}
			}
			c.far(9 * p.Stride())
			Wait(h.ctx, p.TTL*3/2-3*p.Stride()-time.Since(c.Start))
			h.pass()
			h.extend()
			c.far(0)
		default:
			for n := 3 + rng.IntN(2); n > 0 && h.ctx.Err() == nil; n-- {
				Wait(h.ctx, p.TTL/8+scenario.Below(rng, p.TTL*5/8))
				h.pass()
				if h.ctx.Err() == nil {
					h.extend()
				}
			}
		}
		c.Leftovers.Add(h.lock.Token())
		<-h.told
	})
}

// contends runs the second client where requests stall and the node loses its data. Its requests reach the node over a new
// connection, just before that, and another node when the lock has ended there.
func (c *Client) contends(ctx context.Context) {
	p, rng := c.Plan, rand.New(rand.NewPCG(c.Plan.Run.Seed, uint64(c.Number)<<8))
	c.workers.Go(func() {
		Wait(ctx, p.TTL*5/4-time.Since(c.Start))
		if c.again(func(k int) { c.Process.Pass(0, k) }) != nil {
			return
		}
		if h := c.gets(ctx, p.TTL*11/8, p.Names[1], rng); h != nil { // it learns of the set
			h.release(ctx)
		}
		Wait(ctx, p.TTL*3/2-9*p.Stride()-time.Since(c.Start))
		c.far(9 * p.Stride())
		h := c.gets(ctx, p.TTL*3/2-8*p.Stride(), p.Names[0], rng)
		c.far(0)
		if h != nil {
			h.release(ctx)
		}
	})
}

// gets acquires a lock at this time of the history; nil: it was denied.
func (c *Client) gets(ctx context.Context, at time.Duration, name string, rng *rand.Rand) *hold {
	Wait(ctx, at-time.Since(c.Start))
	h := &hold{client: c, op: int(c.ops.Add(1)), request: history.Request{Name: name}, rng: rng}
	h.pass()
	limit := c.Plan.Run.Bound
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	c.note(h.request.Fill(history.Event{Kind: history.Ask, Op: h.op, Verb: "acquire", Limit: limit}))
	var err error
	if h.lock, err = c.locker.Acquire(asking, name); err != nil {
		c.denied(h.op, name, err)
		return nil
	}
	h.begin()
	h.pass()
	return h
}

// far makes requests take longer by d, from now on, to the node after that at which requests stall.
func (c *Client) far(d time.Duration) {
	if p, can := c.Process.(distant); can {
		p.Far((c.Plan.Faults[0].Node+1)%c.Plan.Run.Nodes, d)
	}
}
