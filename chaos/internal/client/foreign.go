package client

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// A foreignClient locks as another library does: in a dialect of the Redlock page. It shares no code with this library.
//
// Between Ask and Denied, or Got, it may have the key on any nodes. It asks again for each try, but for a dialect that
// keeps what it has got between tries, where all tries are one request.
type foreignClient struct {
	*Client
	*scenario.Dialect
	nodes []ForeignNode
	rng   *rand.Rand
	steps int

	op          int
	name, token string
	granted     []bool // by node: it has granted the key in the last try
}

func (c *foreignClient) work(ctx context.Context) {
	c.rng = rand.New(rand.NewPCG(c.Plan.Run.Seed, uint64(c.Number)<<8))
	c.workers.Go(func() {
		for ctx.Err() == nil {
			c.rest(ctx, c.Plan.TTL/4)
			c.turn(ctx)
		}
	})
}

// rest waits for less than d, and then until the process runs.
func (c *foreignClient) rest(ctx context.Context, d time.Duration) {
	Wait(ctx, 1+scenario.Below(c.rng, d))
	c.Process.Pass(0, c.steps)
	c.steps++
}

// turn tries to acquire a lock, as often as the dialect does, and holds it.
func (c *foreignClient) turn(ctx context.Context) {
	c.name = scenario.Pick(c.rng, c.Plan.Names)
	c.ask()
	c.draw()
	for n := 1; ; n++ {
		until, won := c.try()
		if won {
			c.hold(ctx, until)
			return
		}
		last := n >= c.Tries || ctx.Err() != nil
		if last || !c.Keeps {
			_ = c.release()
			c.note(history.Event{Kind: history.Denied, Op: c.op, Name: c.name, Why: "held"})
		}
		if last {
			return
		}
		c.rest(ctx, min(c.Plan.TTL/4, 400*time.Millisecond))
		if !c.Keeps {
			c.ask()
		}
		if !c.Same {
			c.draw()
		}
	}
}

func (c *foreignClient) ask() {
	c.op = int(c.ops.Add(1))
	c.note(history.Event{Kind: history.Ask, Op: c.op, Name: c.name, Verb: "plain"})
}

// draw draws a token. No other client releases it, and the client itself no second time, so the TTL is the backstop.
func (c *foreignClient) draw() {
	b := make([]byte, 22)
	for i := range b {
		b[i] = byte(c.rng.Uint32())
	}
	switch c.Token {
	case "bytes":
		c.token = string(b[:20])
	case "hex":
		c.token = fmt.Sprintf("%x", b[:16])
	case "base64":
		c.token = base64.StdEncoding.EncodeToString(b[:16])
	case "letters":
		for i := range b {
			b[i] = 'a' + b[i]%26
		}
		c.token = string(b)
	default:
		c.token = fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
	}
	c.Leftovers.Add(c.token)
}

// each asks all nodes, and returns which of them say yes, and how many answer.
func (c *foreignClient) each(ask func(node int) (bool, error)) (yes []bool, answers int) {
	yes = make([]bool, len(c.nodes))
	errs := make([]error, len(c.nodes))
	var all sync.WaitGroup
	for i := range c.nodes {
		if c.InTurn {
			yes[i], errs[i] = ask(i)
			continue
		}
		all.Go(func() { yes[i], errs[i] = ask(i) })
	}
	all.Wait()
	for i, err := range errs {
		if err == nil {
			answers++
		}
		yes[i] = yes[i] && err == nil
	}
	return yes, answers
}

// counted returns until when a lock is valid that was asked for, or extended, at an instant, and whether that is so: a
// quorum has said yes, and there is time left.
func (c *foreignClient) counted(yes []bool, sent time.Time) (until time.Time, ok bool) {
	votes := 0
	for _, is := range yes {
		if is {
			votes++
		}
	}
	ttl := c.Plan.TTL
	until = sent.Add(ttl - ttl/100 - 2*time.Millisecond)
	return until, votes >= c.Plan.Run.Quorum && time.Now().Before(until)
}

func (c *foreignClient) try() (until time.Time, won bool) {
	sent := time.Now()
	c.granted, _ = c.each(func(i int) (bool, error) {
		return c.nodes[i].SetNX(context.Background(), c.name, c.token, c.Plan.TTL)
	})
	return c.counted(c.granted, sent)
}

// release deletes the key, and returns an error if a node may have it still.
func (c *foreignClient) release() error {
	_, answers := c.each(func(i int) (bool, error) {
		if c.Granted && !c.granted[i] {
			return false, nil
		}
		return true, c.nodes[i].CompareAndDelete(context.Background(), c.name, c.token)
	})
	if answers < len(c.nodes) {
		return fmt.Errorf("%d of %d nodes answered", answers, len(c.nodes))
	}
	return nil
}

// hold holds the lock for some time, but no longer than it is valid, and releases it.
func (c *foreignClient) hold(ctx context.Context, until time.Time) {
	shown := c.token
	if !utf8.ValidString(shown) { // a history is text
		shown = fmt.Sprintf("%x", shown)
	}
	c.note(history.Event{Kind: history.Got, Op: c.op, Name: c.name, Token: shown, Until: until.Sub(c.Start)})
	stay := c.Plan.TTL
	if c.Plan.Scenario.Queue {
		stay /= 16
	}
	work := func() { c.rest(ctx, min(stay, time.Until(until)-1)) }
	for range c.rng.IntN(4) {
		if !c.Extends {
			break
		}
		work()
		c.note(history.Event{Kind: history.Extend, Op: c.op, Name: c.name})
		sent := time.Now()
		yes, _ := c.each(func(i int) (bool, error) {
			return c.nodes[i].CompareAndExpire(context.Background(), c.name, c.token, c.Plan.TTL)
		})
		later, ok := c.counted(yes, sent)
		if !ok {
			c.note(history.Event{Kind: history.Failed, Op: c.op, Name: c.name})
			break
		}
		until = later
		c.note(history.Event{Kind: history.Extended, Op: c.op, Name: c.name, Until: until.Sub(c.Start)})
	}
	work()
	c.note(history.Event{Kind: history.Release, Op: c.op, Name: c.name, Until: until.Sub(c.Start)})
	err := c.release()
	c.note(history.Event{Kind: history.Released, Op: c.op, Name: c.name, Error: text(err)})
}

// A plainClient locks as https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
// says, without this library, as a client of another library does.
type plainClient struct {
	*Client
	nodes []ForeignNode
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
func (c *plainClient) each(ask func(ForeignNode) bool) (yes int) {
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
	votes := c.each(func(n ForeignNode) bool {
		ok, err := n.SetNX(ctx, name, token, ttl)
		return ok && err == nil
	})
	until := sent.Add(ttl - ttl/100 - 2*time.Millisecond)
	release := func() {
		c.each(func(n ForeignNode) bool { return n.CompareAndDelete(context.WithoutCancel(ctx), name, token) == nil })
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
