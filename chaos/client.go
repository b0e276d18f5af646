package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
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
	opts := c.plan.options
	if c.locker, err = c.process.locker(&opts); err != nil {
		c.stop()
		return err
	}
	c.work(ctx)
	return nil
}

// work has the client live until ctx ends.
func (c *client) work(ctx context.Context) {
	for w := range c.plan.Workers {
		rng := rand.New(rand.NewPCG(c.plan.Run.Seed, uint64(c.number)<<8|uint64(w)))
		c.workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				wait(ctx, 1+below(rng, c.plan.TTL/4))
				if ctx.Err() != nil {
					return
				}
				c.process.pass(w, n)
				c.turn(ctx, w, rng)
			}
		})
	}
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

// A hold is a lock in a client's hands.
type hold struct {
	client *client
	worker int
	rng    *rand.Rand
	op     int
	name   string
	lock   *redlock.Lock
	ctx    context.Context
	until  time.Time // as noted last
	told   chan struct{}
	steps  int

	renewed bool // by the library
}

// turn is one lock's story, in one of the ways in which people write it.
func (c *client) turn(ctx context.Context, worker int, rng *rand.Rand) {
	h := &hold{client: c, worker: worker, rng: rng, op: int(c.ops.Add(1)), name: pick(rng, c.plan.Names)}
	var options []redlock.AcquireOption
	h.renewed = rng.IntN(2) == 0
	if h.renewed {
		options = append(options, redlock.Renewed())
	}
	if rng.IntN(4) == 0 {
		options = append(options, redlock.WithTTL((c.plan.TTL * 3 / 4).Truncate(time.Millisecond)))
	}
	if rng.IntN(8) == 0 {
		options = append(options, redlock.MaxHold(1+below(rng, 2*c.plan.TTL)))
	}
	limit := 1 + below(rng, c.plan.TTL)
	verb := []string{"try", "acquire", "acquire", "do"}[rng.IntN(4)]
	h.renewed = h.renewed || verb == "do"
	asking := ctx
	if alone := c.plan.Run.Clients*c.plan.Workers == 1; c.plan.Run.Always && (verb != "try" || alone) && rng.IntN(2) == 0 {
		limit = c.plan.Run.Bound // it has to be served then, and gets the time for it
		asking = context.WithoutCancel(ctx)
	}
	asking, cancel := context.WithTimeout(asking, limit)
	defer cancel()
	if rng.IntN(8) == 0 {
		limit = 1 + below(rng, c.plan.TTL/4) // somebody changes his mind
		time.AfterFunc(limit, cancel)
	}
	if verb == "do" {
		asking, limit = ctx, 0 // its context bounds the work, too
	}
	ask := Event{Kind: Ask, Op: h.op, Name: h.name, Verb: verb, Limit: limit}
	if h.renewed {
		ask.Why = "renewed"
	}
	c.note(ask)
	var err error
	switch verb {
	case "try":
		h.lock, err = c.locker.TryAcquire(asking, h.name, options...)
	case "acquire":
		h.lock, err = c.locker.Acquire(asking, h.name, options...)
	case "do":
		err = c.locker.Do(asking, h.name, func(_ context.Context, l *redlock.Lock) error {
			h.lock = l
			h.begin()
			h.live()
			c.note(Event{Kind: Release, Op: h.op, Name: h.name, Until: c.at(l.Until()), Limit: c.plan.options.NodeTimeout})
			return nil
		}, options...)
		if h.lock != nil {
			c.note(Event{Kind: Released, Op: h.op, Name: h.name, Why: why(err), Error: text(err)})
			<-h.told
			return
		}
	}
	if err != nil {
		c.note(Event{Kind: Denied, Op: h.op, Name: h.name, Why: why(err), Error: text(err)})
		return
	}
	h.begin()
	h.live()
	if c.plan.scenario.Unended && !h.renewed && rng.IntN(8) == 0 {
		c.lots.add(h.lock.Token())
		<-h.told
		return
	}
	h.release(ctx)
}

// begin notes what the client has, and has itself told of the end.
func (h *hold) begin() {
	c := h.client
	h.until = h.lock.Until()
	c.note(Event{Kind: Got, Op: h.op, Name: h.name, Token: h.lock.Token(), Until: c.at(h.until)})
	h.told = make(chan struct{})
	c.holds(h, true)
	h.ctx = h.lock.Context(context.Background())
	context.AfterFunc(h.ctx, func() {
		cause := context.Cause(h.ctx)
		c.note(Event{Kind: Told, Op: h.op, Name: h.name, Until: c.at(h.lock.Until()), Why: why(cause), Error: text(cause)})
		c.holds(h, false)
		close(h.told)
	})
}

// pass is where the process may be held up.
func (h *hold) pass() {
	h.steps++
	h.client.process.pass(h.worker, -h.op<<8-h.steps)
}

// look notes that the lock has been renewed since the last look.
func (h *hold) look() {
	c := h.client
	if until := h.lock.Until(); !until.Equal(h.until) {
		h.until = until
		c.note(Event{Kind: Renewed, Op: h.op, Name: h.name, Until: c.at(until)})
	}
}

// live is what a holder does.
func (h *hold) live() {
	c, rng := h.client, h.rng
	for range rng.IntN(4) {
		wait(h.ctx, 1+below(rng, c.plan.TTL/2))
		h.pass()
		if h.ctx.Err() != nil {
			return
		}
		h.look()
		switch rng.IntN(4) {
		case 0:
			h.extend()
		case 1, 2:
			if c.plan.scenario.Write {
				h.write()
			}
		}
	}
	if rng.IntN(6) == 0 {
		wait(h.ctx, below(rng, 2*c.plan.TTL)) // until it has run out, perhaps
	}
}

func (h *hold) extend() {
	c := h.client
	limit := 1 + below(h.rng, c.plan.TTL)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c.note(Event{Kind: Extend, Op: h.op, Name: h.name, Limit: limit})
	if err := h.lock.Extend(ctx); err != nil {
		c.note(Event{Kind: Failed, Op: h.op, Name: h.name, Why: why(err), Error: text(err)})
		return
	}
	if h.renewed {
		h.look() // what it was extended from may be news, too
	}
	h.until = h.lock.Until()
	c.note(Event{Kind: Extended, Op: h.op, Name: h.name, Until: c.at(h.until)})
}

// write adds one to what it has read at the resource, as somebody does who trusts
// his lock: he looks whether it is valid for as long as the work takes, does it
// while nobody tells him of an end, and writes.
func (h *hold) write() {
	c := h.client
	value := c.store.read(h.name)
	c.note(Event{Kind: Read, Op: h.op, Name: h.name, Value: value})
	work, way := 1+below(h.rng, c.plan.TTL/8), 1+below(h.rng, c.plan.TTL/64)
	if time.Until(c.process.real(h.lock.Until())) < work+2*way+c.plan.Run.Lag {
		return
	}
	wait(h.ctx, work)
	if h.ctx.Err() != nil {
		return
	}
	h.pass() // between the look and the write any time may go by
	time.Sleep(way)
	if !c.dead.Load() {
		c.store.write(Event{Client: c.number, Op: h.op, Name: h.name, Value: value + 1})
	}
}

// release gives it back, sometimes with a context that has ended.
func (h *hold) release(ctx context.Context) {
	c := h.client
	if h.rng.IntN(4) == 0 {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	c.note(Event{Kind: Release, Op: h.op, Name: h.name, Until: c.at(h.lock.Until()), Limit: c.plan.options.NodeTimeout})
	err := h.lock.Release(ctx)
	c.note(Event{Kind: Released, Op: h.op, Name: h.name, Why: why(err), Error: text(err)})
	<-h.told
}

// suffer has one of its troubles come and go.
func (c *client) suffer(f Fault) {
	switch f.Trouble {
	case Pause, Suspend:
		c.process.hold(f.For, f.Trouble == Suspend)
		c.note(Event{Kind: Held, Until: f.At + f.For})
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
		if h.renewed {
			c.note(Event{Kind: Renewed, Op: h.op, Name: h.name, Until: c.at(h.lock.Until())})
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
		l, err := c.locker.Acquire(asking, name)
		cancel()
		if err != nil {
			c.note(Event{Kind: Denied, Op: op, Name: name, Why: why(err), Error: text(err)})
			continue
		}
		h := &hold{client: c, op: op, name: name, lock: l, rng: rand.New(rand.NewPCG(1, 1))}
		h.begin()
		h.release(ctx)
	}
}

// why puts an error into a word.
func why(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, redlock.ErrClosed):
		return "closed"
	case errors.Is(err, redlock.ErrLost) && strings.Contains(err.Error(), "MaxHold"):
		return "max hold"
	case errors.Is(err, redlock.ErrLost):
		return "lost"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNoQuorum):
		return "cancelled"
	case errors.Is(err, redlock.ErrHeld):
		return "held"
	case errors.Is(err, redlock.ErrNoQuorum):
		return "no quorum"
	case strings.Contains(err.Error(), "released"):
		return "released"
	}
	return "other"
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// left remembers the tokens that nobody will release: those that were forgotten,
// and those of processes that died.
type left struct {
	mu     sync.Mutex
	tokens map[string]bool
	dead   []string // beginnings of tokens
}

func (l *left) add(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens[token] = true
}

func (l *left) died(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = append(l.dead, name+".")
}

func (l *left) has(token string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, beginning := range l.dead {
		if strings.HasPrefix(token, beginning) {
			return true
		}
	}
	return l.tokens[token]
}

// A resource is what locks are for: something that is read, and written some time
// later, by many.
type resource interface {
	read(name string) int

	// write puts an event's Value under its Name, and notes the event, with what was
	// there before. What is noted has the order in which it was written.
	write(Event)
}

// A memory is a resource in this process.
type memory struct {
	note func(Event)

	mu     sync.Mutex
	values map[string]int
}

func (m *memory) read(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[name]
}

func (m *memory) write(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Kind, e.Was = Wrote, m.values[e.Name]
	m.note(e)
	m.values[e.Name] = e.Value
}
