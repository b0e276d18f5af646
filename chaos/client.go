package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock"
)

// A client is one process with a Locker, and what it does all day: it asks for
// locks in all the ways there are, holds them, writes, extends, lets them run
// out, gives them back, and writes down all of it.
type client struct {
	number  int
	plan    *Plan
	process process
	store   resource
	tell    func(Event)                    // writes it down
	start   time.Time                      // of the history
	lots    interface{ add(token string) } // that nobody will release

	locker *redlock.Locker

	ops     atomic.Int64
	dead    atomic.Bool
	workers sync.WaitGroup
	stop    context.CancelFunc

	mu   sync.Mutex
	live map[*hold]bool
}

// note writes an event down, unless the client is dead.
func (c *client) note(e Event) {
	if !c.dead.Load() {
		e.Client = c.number
		c.tell(e)
	}
}

// at is an instant of the client's clock, by the clock of the history.
func (c *client) at(t time.Time) time.Duration { return c.process.real(t).Sub(c.start) }

// processName is the beginning of all tokens of a client.
func processName(client int) string { return fmt.Sprintf("c%d", client) }

// enter has the client begin to work.
func (c *client) enter(ctx context.Context) (err error) {
	ctx, c.stop = context.WithCancel(ctx)
	if c.plan.scenario.Plain && c.number == 1 {
		(&plainClient{client: c, nodes: c.process.plain()}).work(ctx)
		return nil
	}
	opts := c.options()
	if skews := c.plan.Skews; skews != nil {
		c.process.skew(skews[c.number%len(skews)])
	}
	if c.locker, err = c.process.locker(&opts); err != nil {
		c.stop()
		return err
	}
	c.work(ctx)
	return nil
}

// options are those of its Locker.
func (c *client) options() redlock.Options {
	o := c.plan.options
	if c.short() {
		o.TTL = (o.TTL / 8).Truncate(time.Millisecond)
		o.MaxTTL, o.NodeTimeout, o.Quarantine = 0, 0, o.TTL+o.TTL/100+2*time.Millisecond
	}
	return o
}

// short reports whether its locks are shorter than those of others, and it ends with each, as
// a command does.
func (c *client) short() bool { return c.plan.scenario.Settings && c.number%2 == 0 }

// again opens another Locker in the place of the one that there is.
func (c *client) again() {
	_ = c.locker.Close()
	opts := c.options()
	locker, err := c.process.locker(&opts)
	if err != nil {
		c.note(Event{Kind: Left, Error: fmt.Sprintf("client %d could not come in again: %v", c.number, err)})
		return
	}
	c.locker = locker
}

// work has the client live until ctx ends.
func (c *client) work(ctx context.Context) {
	for w := range c.plan.Workers {
		rng := rand.New(rand.NewPCG(c.plan.Run.Seed, uint64(c.number)<<8|uint64(w)))
		c.workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				c.rise(ctx)
				pause := c.plan.TTL / 4
				if c.plan.scenario.Brief {
					pause /= 8
				}
				wait(ctx, 1+below(rng, pause))
				if ctx.Err() != nil {
					return
				}
				c.process.pass(w, n)
				if c.fresh() && c.renew(func(k int) { c.process.pass(w, 3<<20+2*n+k) }) != nil {
					return
				}
				c.turn(ctx, w, rng)
				if c.plan.scenario.Once || c.short() {
					c.again()
				}
			}
		})
	}
}

// rise waits for the next time at which clients work.
func (c *client) rise(ctx context.Context) {
	p := c.plan
	if p.Days == nil {
		return
	}
	next, now := p.Span, time.Since(c.start)
	for _, day := range p.Days {
		if now < day+p.Work {
			next = day
			break
		}
	}
	if now < next {
		wait(ctx, next-now)
	}
}

// fresh reports whether it makes a new Locker for each lock: one that knows nothing of the
// nodes' clocks and past, as in a program that runs, locks, and ends.
func (c *client) fresh() bool { return c.plan.scenario.Fresh && c.number%2 == 0 }

// renew closes the Locker and makes another one. In between, and afterwards, it takes its turn:
// what happens next is at no instant of another's.
func (c *client) renew(pass func(k int)) (err error) {
	_ = c.locker.Close()
	pass(1)
	opts := c.plan.options
	if c.locker, err = c.process.locker(&opts); err != nil {
		c.note(Event{Kind: Left, Error: fmt.Sprintf("client %d could not come in again: %v", c.number, err)})
	}
	pass(2)
	return err
}

// wait reports whether d went by before ctx ended.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// suffer has one of its troubles come and go.
func (c *client) suffer(f Fault) {
	switch f.Trouble {
	case Pause, Suspend:
		c.process.hold(f.For, f.Trouble == Suspend)
		held := Event{Kind: Held, Until: f.At + f.For}
		if f.Trouble == Suspend {
			held.Why = suspended
		}
		c.note(held)
		time.Sleep(f.For)
	case Skew:
		c.skew(f.By)
	}
}

// skew sets the client's clock. What renews itself has its end noted before: by the
// new clock it is another instant, and not the one until which the nodes keep it.
func (c *client) skew(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.live {
		if h.renewed || h.handed() {
			c.note(Event{Kind: Renewed, Op: h.op, Name: h.want.Name, Until: c.at(h.lock.Until())})
		}
	}
	c.process.skew(by)
}

// holds remembers what the client holds.
func (c *client) holds(h *hold, is bool) {
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

// die is a crash: what the client's process had in hand, and in mind, is gone.
func (c *client) die() {
	c.process.crash()
	c.note(Event{Kind: Crashed})
	c.dead.Store(true)
	c.leave()
}

// rest has the client end what it does.
func (c *client) rest() {
	c.stop()
	c.workers.Wait()
}

// leave has it end that, and its Locker.
func (c *client) leave() {
	c.stop()
	if c.locker != nil {
		_ = c.locker.Close()
	}
	c.workers.Wait()
}

// last is what everybody must be able to do once all is well: get every lock.
func (c *client) last() {
	if c.locker == nil {
		return
	}
	ctx := context.Background()
	for _, name := range c.plan.Names {
		op := int(c.ops.Add(1))
		limit := c.plan.Run.Bound
		asking, cancel := context.WithTimeout(ctx, limit)
		c.note(Event{Kind: Ask, Op: op, Name: name, Verb: "acquire", Limit: limit})
		l, err := c.served(asking, name)
		cancel()
		if err != nil {
			c.note(Event{Kind: Denied, Op: op, Name: name, Why: why(err), Error: text(err)})
			continue
		}
		h := &hold{client: c, op: op, want: want{Name: name}, lock: l, rng: rand.New(rand.NewPCG(1, 1))}
		h.begin()
		h.release(ctx)
	}
}

// served waits for a lock; or opens another Locker each time that it has asked in vain.
func (c *client) served(ctx context.Context, name string) (*redlock.Lock, error) {
	if !c.plan.scenario.Once {
		return c.locker.Acquire(ctx, name)
	}
	for {
		c.again()
		l, err := c.locker.TryAcquire(ctx, name)
		if err == nil || ctx.Err() != nil {
			return l, err
		}
		wait(ctx, c.plan.TTL/64*time.Duration(7+c.number)) // not all at once each time, or they share the votes
	}
}
