package client

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// A hold is a lock that a client holds.
type hold struct {
	client  *Client
	worker  int
	rng     *rand.Rand
	op      int
	request history.Request
	lock    *redlock.Lock
	ctx     context.Context
	until   time.Time // as last recorded
	told    chan struct{}
	steps   int

	renewed bool        // by the library
	failed  atomic.Bool // an extension has, which late answers may confirm
}

// turn is one lock from request to release, in one of the usual forms of a program.
func (c *Client) turn(ctx context.Context, worker int, rng *rand.Rand) {
	h := &hold{client: c, worker: worker, rng: rng, op: int(c.ops.Add(1)), request: c.Plan.Draw(rng)}
	if c.Plan.Scenario.Names {
		h.request = c.Plan.DrawNew(rng, c.Number, h.op)
	}
	if c.Plan.Scenario.Folder {
		if time.Since(c.Start) < c.Plan.Beat() { // the client does not know the set yet: a try would take long
			h.request = c.Plan.Wants[1]
		}
		at := c.Plan.Beat() / 4
		if h.request.Shared { // a few round trips after those that ask once
			at += 10 * c.Plan.RTT
		}
		Wait(ctx, c.inTurn(at, rng))
		h.pass()
		if ctx.Err() != nil {
			return
		}
	}
	options := h.drawOptions()
	asking, cancel, verb, limit := h.drawLimit(ctx)
	defer cancel()
	ask := h.request.Fill(history.Event{Kind: history.Ask, Op: h.op, Verb: verb, Limit: limit})
	if h.renewed {
		ask.Why = "renewed"
	}
	c.note(ask)
	var err error
	switch verb {
	case "try":
		h.lock, err = c.locker.TryAcquire(asking, h.request.Name, options...)
	case "acquire":
		h.lock, err = c.locker.Acquire(asking, h.request.Name, options...)
	case "do":
		err = c.locker.Do(asking, h.request.Name, func(_ context.Context, l *redlock.Lock) error {
			h.lock = l
			h.begin()
			h.live()
			c.note(history.Event{Kind: history.Release, Op: h.op, Name: h.request.Name, Until: c.at(l.Until()), Limit: c.Plan.Options.NodeTimeout})
			return nil
		}, options...)
		if h.lock != nil {
			c.note(history.Event{Kind: history.Released, Op: h.op, Name: h.request.Name, Why: why(err), Error: text(err)})
			<-h.told
			return
		}
	}
	if err != nil {
		c.denied(h.op, h.request.Name, err)
		return
	}
	h.begin()
	h.live()
	if c.Plan.Scenario.Unended && !h.renewed && rng.IntN(8) == 0 {
		c.Leftovers.Add(h.lock.Token())
		<-h.told
		return
	}
	h.release(ctx)
}

// pairs runs one of the first two clients of a folder (Plan.Beat) until ctx ends.
func (c *Client) pairs(ctx context.Context) {
	rng := rand.New(rand.NewPCG(c.Plan.Run.Seed, uint64(c.Number)<<8))
	c.workers.Go(func() {
		for n := 0; ; n++ {
			Wait(ctx, c.inTurn(0, rng))
			c.Process.Pass(0, n)
			if ctx.Err() != nil {
				return
			}
			h := &hold{client: c, op: int(c.ops.Add(1)), request: c.Plan.Wants[1], rng: rng}
			if !h.acquire(ctx) {
				continue
			}
			Wait(h.ctx, c.Plan.Beat()*3/4)
			h.pass()
			h.release(ctx)
		}
	})
}

// acquire waits for the lock until the run's bound, whether ctx ends or not, and begins the hold; false: it was denied.
func (h *hold) acquire(ctx context.Context) bool {
	c, limit := h.client, h.client.Plan.Run.Bound
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	c.note(h.request.Fill(history.Event{Kind: history.Ask, Op: h.op, Verb: "acquire", Limit: limit}))
	var err error
	if h.lock, err = c.locker.Acquire(asking, h.request.Name, Options(h.request)...); err != nil {
		c.denied(h.op, h.request.Name, err)
		return false
	}
	h.begin()
	return true
}

// drawOptions draws the kind of hold.
func (h *hold) drawOptions() []redlock.AcquireOption {
	c, rng := h.client, h.rng
	options := Options(h.request)
	if c.Plan.Scenario.Tries {
		return options
	}
	h.renewed = rng.IntN(2) == 0
	if h.renewed {
		options = append(options, redlock.AutoRenew())
	}
	if rng.IntN(4) == 0 {
		options = append(options, redlock.TTL((c.opts.TTL * 3 / 4).Truncate(time.Millisecond)))
	}
	if rng.IntN(8) == 0 {
		options = append(options, redlock.MaxHold(1+scenario.Below(rng, 2*c.Plan.TTL)))
	}
	return options
}

// drawLimit draws by which verb the client asks, and for how long: 0 is for as long as ctx.
func (h *hold) drawLimit(ctx context.Context) (asking context.Context, cancel context.CancelFunc, verb string, limit time.Duration) {
	p, rng := h.client.Plan, h.rng
	if p.Scenario.Tries {
		limit = p.Options.NodeTimeout
		if h.op == 1 { // the nodes keep no description of their set yet
			limit = 5 * limit / 2
		}
		return context.WithoutCancel(ctx), func() {}, "try", limit
	}
	limit = 1 + scenario.Below(rng, p.TTL)
	verb = scenario.Pick(rng, p.Scenario.Verbs())
	if p.Scenario.Folder && !h.request.Shared {
		verb = "try"
	}
	h.renewed = h.renewed || verb == "do"
	asking = ctx
	// A client that is alone meets no conflict, and a single round is enough; but on a real machine
	// a node without faults may answer too late.
	alone := p.Run.Exact && p.Run.Clients*p.Workers == 1
	patient := p.Scenario.Queue
	if (p.Run.Always || patient) && (verb != "try" || alone) && (rng.IntN(2) == 0 || patient) {
		limit = p.Run.Bound // within this it must be served
		asking = context.WithoutCancel(ctx)
	}
	asking, cancel = context.WithTimeout(asking, limit)
	if rng.IntN(8) == 0 {
		limit = 1 + scenario.Below(rng, p.TTL/4) // a caller that changes its mind
		time.AfterFunc(limit, cancel)
	}
	if verb == "do" {
		return ctx, cancel, verb, 0 // the context also bounds the work
	}
	return asking, cancel, verb, limit
}

// begin records the hold, and makes the client watch for its end.
func (h *hold) begin() {
	c := h.client
	h.until = h.lock.Until()
	c.note(h.request.Fill(history.Event{Kind: history.Got, Op: h.op, Token: h.lock.Token(), Fence: h.fence(), Until: c.at(h.until)}))
	h.find()
	h.watch()
}

// watch makes the client record the end of the hold.
func (h *hold) watch() {
	c := h.client
	h.told = make(chan struct{})
	c.holds(h, true)
	h.ctx = h.lock.Context(context.Background())
	context.AfterFunc(h.ctx, func() {
		cause := context.Cause(h.ctx)
		if why(cause) != "detached" {
			c.note(history.Event{Kind: history.Told, Op: h.op, Name: h.request.Name, Until: c.at(h.lock.Until()), Why: why(cause), Error: text(cause)})
		}
		c.holds(h, false)
		close(h.told)
	})
}

func (h *hold) fence() uint64 { return uint64(h.lock.Fence()) }

// pass is where the process may be held up.
func (h *hold) pass() {
	h.steps++
	h.client.Process.Pass(h.worker, -h.op<<8-h.steps)
}

// look records that the lock has been renewed since the last look.
func (h *hold) look() {
	c := h.client
	if until := h.lock.Until(); !until.Equal(h.until) {
		h.until = until
		c.note(history.Event{Kind: history.Renewed, Op: h.op, Name: h.request.Name, Until: c.at(until)})
	}
}

// live is the work of a holder.
func (h *hold) live() {
	c, rng := h.client, h.rng
	if brief := c.Plan.Scenario.Brief; brief || c.Plan.Scenario.Queue {
		most := c.Plan.TTL / 16
		if brief {
			most /= 8
		}
		Wait(h.ctx, 1+scenario.Below(rng, most))
		h.pass()
		return
	}
	for c.Plan.Scenario.Extend && h.ctx.Err() == nil && rng.IntN(16) > 0 {
		Wait(h.ctx, 1+scenario.Below(rng, c.Plan.TTL/32))
		h.pass()
		h.look()
		switch {
		case h.ctx.Err() != nil:
		case c.Plan.Scenario.Hands && !h.renewed && rng.IntN(2) == 0:
			h.handOn()
		default:
			h.extend()
		}
	}
	if c.Plan.Scenario.Hands && !c.Plan.Scenario.Extend && !h.renewed && rng.IntN(2) == 0 {
		h.handOn() // at once, while some nodes have not answered yet
	}
	if c.Plan.Scenario.Keep && h.renewed && rng.IntN(2) == 0 {
		Wait(h.ctx, scenario.Below(rng, 16*c.Plan.TTL))
		h.pass()
	}
	if rest := c.Plan.Span - time.Since(c.Start); c.Plan.Scenario.Planned && h.renewed && rest > 0 && rng.IntN(2) == 0 {
		Wait(h.ctx, min(scenario.Below(rng, 2*rest), rest)) // half of them to the end
		h.pass()
	}
	if c.Plan.Scenario.Tries { // or one that asks a little later would get it next
		Wait(h.ctx, 2*c.Plan.Options.NodeTimeout)
		h.pass()
		return
	}
	for range rng.IntN(4) {
		Wait(h.ctx, 1+scenario.Below(rng, c.Plan.TTL/2))
		h.pass()
		if h.ctx.Err() != nil {
			return
		}
		h.look()
		switch rng.IntN(4) {
		case 0:
			if c.Plan.Scenario.Hands && !h.renewed {
				h.handOn()
			} else {
				h.extend()
			}
		case 1, 2:
			if c.Plan.Scenario.Write {
				h.write()
			}
		}
	}
	if rng.IntN(6) == 0 {
		Wait(h.ctx, scenario.Below(rng, 2*c.Plan.TTL)) // perhaps until it has expired
		h.pass()
	}
}

func (h *hold) extend() {
	c := h.client
	limit := 1 + scenario.Below(h.rng, c.Plan.TTL)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c.note(history.Event{Kind: history.Extend, Op: h.op, Name: h.request.Name, Limit: limit})
	if err := h.lock.Extend(ctx); err != nil {
		h.failed.Store(true)
		c.note(history.Event{Kind: history.Failed, Op: h.op, Name: h.request.Name, Why: why(err), Error: text(err)})
		return
	}
	if h.renewed {
		h.look() // a renewal before the extension may be news, too
	}
	h.until = h.lock.Until()
	c.note(history.Event{Kind: history.Extended, Op: h.op, Name: h.request.Name, Until: c.at(h.until)})
}

// handOn detaches the lock, and attaches it again a little later from its handle, as the next
// process would, without a renewal in between. To the judge it is an extension, with one exception:
// the nodes may still have a lock that should have ended by then.
func (h *hold) handOn() {
	c := h.client
	limit, rest := 1+scenario.Below(h.rng, c.Plan.TTL/2), scenario.Below(h.rng, c.Plan.TTL/time.Duration(2<<h.rng.IntN(8)))
	c.note(history.Event{Kind: history.Extend, Op: h.op, Name: h.request.Name, Verb: history.VerbHandOn, Limit: limit + rest + c.Plan.Options.NodeTimeout})
	handle, err := h.lock.Detach()
	if err != nil {
		c.note(history.Event{Kind: history.Failed, Op: h.op, Name: h.request.Name, Why: why(err), Error: text(err)})
		return
	}
	<-h.told
	time.Sleep(rest)
	h.pass()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	l, err := c.locker.Attach(ctx, handle)
	if err != nil { // the hold ends, and the token stays for its TTL
		c.Leftovers.Add(handle.Token)
		c.note(history.Event{Kind: history.Failed, Op: h.op, Name: h.request.Name, Why: why(err), Error: text(err)})
		c.note(history.Event{Kind: history.Told, Op: h.op, Name: h.request.Name, Until: c.at(handle.Until), Why: why(err), Error: text(err)})
		return
	}
	h.lock, h.until = l, l.Until()
	c.note(history.Event{Kind: history.Extended, Op: h.op, Name: h.request.Name, Until: c.at(h.until)})
	h.watch()
}

// write adds one to the value that it has read at the resource, as a program does that relies on
// its lock: it checks that the lock is valid for as long as the work takes, works while the lock's
// context has not ended, and writes.
func (h *hold) write() {
	c, name := h.client, h.request.Name
	if within := c.Plan.Within(h.request); len(within) > 1 {
		name = scenario.Pick(h.rng, within)
	}
	value := c.Store.Read(name, h.fence())
	c.note(history.Event{Kind: history.Read, Op: h.op, Name: name, Value: value})
	if h.request.Shared || h.request.Slots > 0 {
		return // others may hold it, too
	}
	work, way := 1+scenario.Below(h.rng, c.Plan.TTL/8), 1+scenario.Below(h.rng, c.Plan.TTL/64)
	if time.Until(c.Process.Real(h.lock.Until())) < work+2*way+c.Plan.Run.Lag {
		return
	}
	Wait(h.ctx, work)
	if h.ctx.Err() != nil {
		return
	}
	h.pass() // any time may pass between the check and the write
	time.Sleep(way)
	if !c.dead.Load() {
		c.Store.Write(history.Event{Client: c.Number, Op: h.op, Name: name, Value: value + 1, Fence: h.fence()})
	}
}

// release releases the lock, sometimes with a context that has ended.
func (h *hold) release(ctx context.Context) {
	c := h.client
	if h.rng.IntN(4) == 0 {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	c.note(history.Event{Kind: history.Release, Op: h.op, Name: h.request.Name, Until: c.at(h.lock.Until()), Limit: c.Plan.Options.NodeTimeout})
	err := h.lock.Release(ctx)
	c.note(history.Event{Kind: history.Released, Op: h.op, Name: h.request.Name, Why: why(err), Error: text(err)})
	<-h.told
}

// Options returns the options for a request, beside its name.
func Options(w history.Request) (all []redlock.AcquireOption) {
	if w.Also != "" {
		all = append(all, redlock.Also(strings.Fields(w.Also)...))
	}
	if w.Shared {
		all = append(all, redlock.Shared())
	}
	if w.Slots != 0 {
		all = append(all, redlock.Slots(w.Slots))
	}
	return all
}

// find records how many nodes have the token that the client has just got.
func (h *hold) find() {
	c := h.client
	if !c.Plan.Run.Found {
		return
	}
	has, silent := c.Process.Holders(h.request.Name, h.lock.Token())
	c.note(history.Event{Kind: history.Found, Op: h.op, Name: h.request.Name, Value: has, Was: silent})
}

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
	if !h.acquire(ctx) {
		return nil
	}
	h.pass()
	return h
}

// far makes requests take longer by d, from now on, to the node after that at which requests stall.
func (c *Client) far(d time.Duration) {
	if p, can := c.Process.(distant); can {
		p.Far((c.Plan.Faults[0].Node+1)%c.Plan.Run.Nodes, d)
	}
}
