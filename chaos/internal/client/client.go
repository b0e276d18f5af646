// Package client is one client of a run: a process that works with a Locker, and records what it does.
package client

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// A Client is one process with a Locker. It acquires locks in every way there is, holds them,
// writes, extends them, lets them expire, releases them, and records all of it.
type Client struct {
	Number    int
	Role      Role
	Plan      *scenario.Plan
	Process   Process
	Store     Resource
	Tell      func(history.Event)            // records an event
	Start     time.Time                      // of the history
	Leftovers interface{ Add(token string) } // the tokens that no client will release

	locker  *redlock.Locker // nil: the set has refused its settings
	lockers int             // so many, one after another
	opts    redlock.Options // of the last one

	ops     atomic.Int64
	dead    atomic.Bool
	workers sync.WaitGroup
	stop    context.CancelFunc
	gone    context.Context // ends when the client has left: until then its hooks sleep
	left    context.CancelFunc

	mu   sync.Mutex // protects live; and locker, where another goroutine than a worker looks
	live map[*hold]bool
}

// A Role is what a client is for, and what it begins with.
type Role struct {
	Operator bool     // it changes the set, and locks nothing but in the end
	Given    []string // the addresses of the nodes that it is given; nil: those that are members at first
}

// note records an event, unless the client is dead.
func (c *Client) note(e history.Event) {
	if !c.dead.Load() {
		e.Client = c.Number
		c.Tell(e)
	}
}

// at converts an instant of the client's clock to the clock of the history.
func (c *Client) at(t time.Time) time.Duration { return c.Process.Real(t).Sub(c.Start) }

// ProcessName is the prefix of all tokens of a client.
func ProcessName(client int) string { return fmt.Sprintf("c%d", client) }

// Enter starts the client's work.
func (c *Client) Enter(ctx context.Context) (err error) {
	ctx, c.stop = context.WithCancel(ctx)
	c.gone, c.left = context.WithCancel(context.Background())
	if c.Plan.Scenario.Plain && c.Number == 1 {
		(&plainClient{Client: c, nodes: c.Process.Plain()}).work(ctx)
		return nil
	}
	if d := c.Plan.Dialect(c.Number); d != nil {
		(&foreignClient{Client: c, Dialect: d, nodes: c.Process.Foreign(d.Patience)}).work(ctx)
		return nil
	}
	if n := c.Plan.Run.Members; n > 0 {
		given := c.Role.Given
		if given == nil {
			given = c.Process.Addrs()[:n]
		}
		c.Process.Give(given)
	}
	if skews := c.Plan.Skews; skews != nil {
		c.Process.Skew(skews[c.Number%len(skews)])
	}
	if err = c.open(); err != nil {
		c.stop()
		return err
	}
	if p, can := c.Process.(distant); can && c.Plan.Scenario.Tries {
		for node := range c.Plan.Run.Nodes {
			if node != c.Number%c.Plan.Run.Nodes {
				p.Far(node, c.Plan.Far)
			}
		}
	}
	switch {
	case c.Role.Operator && c.Plan.Scenario.Planned:
		c.replaces(ctx)
	case c.Role.Operator && c.Plan.Scenario.Moves:
		c.moves(ctx)
	case c.Role.Operator:
		c.operate(ctx)
	case c.Plan.Scenario.Break && c.Number == 1:
		c.breaks(ctx)
	case c.Plan.Scenario.Stalls && c.Number == 1:
		c.keeps(ctx)
	case c.Plan.Emptied && c.Number == 2:
		c.contends(ctx)
	case c.Plan.Scenario.Folder && c.Number <= 2:
		c.pairs(ctx)
	default:
		c.work(ctx)
	}
	return nil
}

// open makes the client's Locker, unless the set refuses its settings.
func (c *Client) open() error {
	c.opts = c.options()
	c.lockers++
	opts := c.opts
	opts.Owner = cmp.Or(opts.Owner, ProcessName(c.Number))
	locker, err := c.Process.Locker(&opts)
	if why(err) == "refused" {
		c.refused(err)
		return nil
	}
	c.use(locker)
	return err
}

// use makes a Locker the client's; nil: it has none.
func (c *Client) use(locker *redlock.Locker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.locker = locker
}

// close closes the client's Locker, if it has one.
func (c *Client) close() {
	c.mu.Lock()
	locker := c.locker
	c.mu.Unlock()
	if locker != nil {
		_ = locker.Close()
	}
}

// options returns the options of its next Locker.
func (c *Client) options() redlock.Options {
	o := c.Plan.Options
	if c.Plan.Scenario.Own {
		c.own(&o)
	}
	if c.Plan.Scenario.Slow {
		o.Hooks = redlock.JoinHooks(o.Hooks, c.slowHooks())
	}
	if c.Plan.Sheet != nil {
		o.Hooks = redlock.JoinHooks(c.Plan.Sheet.Hooks(), o.Hooks)
	}
	if c.short() {
		o.TTL = (o.TTL / 8).Truncate(time.Millisecond)
		o.MaxTTL, o.NodeTimeout, o.Quarantine = o.TTL, 0, o.TTL+o.TTL/100+2*time.Millisecond
	}
	return o
}

// short reports whether its locks are shorter than those of other clients, and it makes a new
// Locker for each, as a command does.
func (c *Client) short() bool {
	return c.Plan.Scenario.Settings && (c.Number%2 == 0 || c.Role.Operator)
}

// again replaces the client's Locker. Before, in between and afterwards the client waits for its
// turn: so its next step is at no instant of another client.
func (c *Client) again(pass func(k int)) error {
	pass(0)
	if c.locker != nil {
		_ = c.locker.Close()
		if slices.ContainsFunc(c.Process.Lanes(), func(kept int) bool { return kept > 0 }) {
			c.abandon()
		}
		c.use(nil)
	}
	pass(1)
	if err := c.open(); err != nil {
		c.note(history.Event{Kind: history.Left, Error: fmt.Sprintf("client %d could not come in again: %v", c.Number, err)})
		return err
	}
	pass(2)
	return nil
}

// abandon notes that nothing follows of what the client's Locker, which is closed, still had for a node that hangs
// or is away: that may have tokens for a TTL.
func (c *Client) abandon() {
	name, number, _ := strings.Cut(c.Process.Token(), ".")
	last, _ := strconv.Atoi(number)
	for n := 1; n < last; n++ {
		c.Leftovers.Add(fmt.Sprintf("%s.%d.", name, n)) // and what is behind the dot
	}
}

// work runs the client until ctx ends.
func (c *Client) work(ctx context.Context) {
	for w := range c.Plan.Workers {
		rng := rand.New(rand.NewPCG(c.Plan.Run.Seed, uint64(c.Number)<<8|uint64(w)))
		c.workers.Go(func() {
			// A client may come in at the very instant at which ctx ends: its workers begin all the same, or the history
			// would depend on which of the two goroutines runs first.
			for n := 0; n == 0 || ctx.Err() == nil; n++ {
				pass := func(k int) { c.Process.Pass(w, 3<<20+4*n+k) }
				c.rise(ctx)
				pause := c.Plan.TTL / 4
				if c.Plan.Scenario.Brief || c.Plan.Scenario.Folder {
					pause /= 8
				}
				if c.Plan.Scenario.Moves { // a long life
					pause *= 8
				}
				wait := 1 + scenario.Below(rng, pause)
				if c.Plan.Scenario.Tries {
					wait = c.together(rng)
				}
				Wait(ctx, wait)
				c.Process.Pass(w, n)
				if ctx.Err() != nil {
					return
				}
				if (c.fresh() || c.locker == nil) && c.again(pass) != nil {
					return
				}
				if c.locker != nil {
					c.turn(ctx, w, rng)
				}
				if c.Plan.Scenario.Once || c.short() {
					_ = c.again(pass)
				}
			}
		})
	}
}

// together is for how long to wait until the clients ask again: all of them within a round trip.
func (c *Client) together(rng *rand.Rand) time.Duration {
	now := time.Since(c.Start)
	return now.Truncate(c.Plan.TTL) + c.Plan.TTL - now + scenario.Below(rng, c.Plan.RTT)
}

// inTurn is for how long to wait until a client of a folder asks: until a little later, by at, than a beat (Plan.Beat), and
// up to a round trip more.
func (c *Client) inTurn(at time.Duration, rng *rand.Rand) time.Duration {
	every, now := c.Plan.Beat(), time.Since(c.Start)
	return (now - at).Truncate(every) + every + at - now + scenario.Below(rng, c.Plan.RTT)
}

// rise waits for the next time at which clients work.
func (c *Client) rise(ctx context.Context) {
	p := c.Plan
	if p.Days == nil {
		return
	}
	next, now := p.Span, time.Since(c.Start)
	for _, day := range p.Days {
		if now < day+p.Work {
			next = day
			break
		}
	}
	if now < next {
		Wait(ctx, next-now)
	}
}

// fresh reports whether it makes a new Locker for each lock: one that knows nothing about the
// nodes' clocks and past, as in a program that starts, locks, and ends.
func (c *Client) fresh() bool {
	return (c.Plan.Scenario.Fresh || c.Plan.Scenario.Own) && c.Number%2 == 0
}

// Wait returns when d has gone by, or ctx has ended.
func Wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Apply begins and ends a fault of the client.
func (c *Client) Apply(f history.Fault) {
	switch f.Kind {
	case history.Pause, history.Suspend:
		c.Process.Hold(f.For, f.Kind == history.Suspend)
		held := history.Event{Kind: history.Held, Until: f.At + f.For}
		if f.Kind == history.Suspend {
			held.Why = history.WhySuspended
		}
		c.note(held)
		time.Sleep(f.For)
	case history.Skew:
		c.skew(f.By)
	}
}

// skew sets the client's clock. Before, it records the ends of locks that the client may not know, since
// they renew themselves, or an extension was confirmed late: by the new clock they would be other
// instants, and not those until which the nodes keep the locks.
func (c *Client) skew(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.live {
		if h.renewed || h.failed.Load() {
			c.note(history.Event{Kind: history.Renewed, Op: h.op, Name: h.request.Name, Until: c.at(h.lock.Until())})
		}
	}
	c.Process.Skew(by)
}

// holds has the locks that the client holds.
func (c *Client) holds(h *hold, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		c.live = make(map[*hold]bool)
	}
	if is {
		c.live[h] = true
	} else {
		delete(c.live, h)
	}
}

// Die is a crash: the client's process loses its locks and its memory.
func (c *Client) Die() {
	c.Process.Crash()
	c.note(history.Event{Kind: history.Crashed})
	c.dead.Store(true)
	c.Leave()
}

// Rest ends the client's work.
func (c *Client) Rest() {
	c.stop()
	c.workers.Wait()
}

// Leave ends its work and closes its Locker.
func (c *Client) Leave() {
	c.stop()
	c.close()
	c.workers.Wait()
	c.close() // the one that a worker was about to open
	c.left()
}

// Last acquires every lock, as every client must be able to once all faults are over. The client
// waits for its turn before each: the end of the one before, or of its workers, may still be under
// way.
func (c *Client) Last() {
	if c.Plan.Scenario.Own && c.locker == nil {
		_ = c.again(func(k int) { c.Process.Pass(0, 6<<20+k) })
	}
	if c.locker == nil {
		return
	}
	ctx := context.Background()
	for i, name := range c.Plan.Names {
		c.Process.Pass(0, 4<<20+i)
		op := int(c.ops.Add(1))
		limit := c.Plan.Run.Bound
		asking, cancel := context.WithTimeout(ctx, limit)
		c.note(history.Event{Kind: history.Ask, Op: op, Name: name, Verb: "acquire", Limit: limit})
		l, err := c.served(asking, name)
		cancel()
		if err != nil {
			c.denied(op, name, err)
			continue
		}
		h := &hold{client: c, op: op, request: history.Request{Name: name}, lock: l, rng: rand.New(rand.NewPCG(1, 1))}
		h.begin()
		h.release(ctx)
	}
}

// denied records that an acquisition has failed.
func (c *Client) denied(op int, name string, err error) {
	c.note(history.Event{Kind: history.Denied, Op: op, Name: name, Why: why(err), Error: text(err)})
	if why(err) == "refused" {
		c.refused(err)
	}
}

// served waits for a lock; or opens another Locker after each failed attempt.
func (c *Client) served(ctx context.Context, name string) (*redlock.Lock, error) {
	if !c.Plan.Scenario.Once {
		return c.locker.Acquire(ctx, name)
	}
	for n := 0; ; n++ {
		_ = c.again(func(k int) { c.Process.Pass(0, 5<<20+4*n+k) })
		l, err := c.locker.TryAcquire(ctx, name)
		if err == nil || ctx.Err() != nil {
			return l, err
		}
		Wait(ctx, c.Plan.TTL/64*time.Duration(7+c.Number)) // not all at once, or the clients split the votes
	}
}

// Weigh records how many requests the Locker keeps for each node.
func (c *Client) Weigh() {
	for i, n := range c.Process.Lanes() {
		c.note(history.Event{Kind: history.Weighed, Weight: &history.Weight{Node: i, Requests: n}})
	}
}
