package chaos

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
)

// A hold is a lock in a client's hands.
type hold struct {
	client *client
	worker int
	rng    *rand.Rand
	op     int
	want   want
	lock   *redlock.Lock
	ctx    context.Context
	until  time.Time // as noted last
	told   chan struct{}
	steps  int

	renewed bool // by the library
}

// turn is one lock's story, in one of the ways in which people write it.
func (c *client) turn(ctx context.Context, worker int, rng *rand.Rand) {
	h := &hold{client: c, worker: worker, rng: rng, op: int(c.ops.Add(1)), want: c.plan.draw(rng)}
	if c.plan.scenario.Names {
		h.want = c.plan.unheard(rng, c.number, h.op)
	}
	options := h.want.options()
	h.renewed = rng.IntN(2) == 0
	if h.renewed {
		options = append(options, redlock.Renewed())
	}
	if rng.IntN(4) == 0 {
		options = append(options, redlock.WithTTL((c.options().TTL * 3 / 4).Truncate(time.Millisecond)))
	}
	if rng.IntN(8) == 0 {
		options = append(options, redlock.MaxHold(1+below(rng, 2*c.plan.TTL)))
	}
	limit := 1 + below(rng, c.plan.TTL)
	verb := pick(rng, c.plan.scenario.verbs())
	h.renewed = h.renewed || verb == "do"
	asking := ctx
	// Nobody is in the way of one who is alone, and a single round is enough; but on a
	// real machine a node that is well may be late for it.
	alone := c.plan.Run.Exact && c.plan.Run.Clients*c.plan.Workers == 1
	patient := c.plan.scenario.Queue
	if (c.plan.Run.Always || patient) && (verb != "try" || alone) && (rng.IntN(2) == 0 || patient) {
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
	ask := h.want.ask(Event{Kind: Ask, Op: h.op, Verb: verb, Limit: limit})
	if h.renewed {
		ask.Why = "renewed"
	}
	c.note(ask)
	var err error
	switch verb {
	case "try":
		h.lock, err = c.locker.TryAcquire(asking, h.want.Name, options...)
	case "acquire":
		h.lock, err = c.locker.Acquire(asking, h.want.Name, options...)
	case "do":
		err = c.locker.Do(asking, h.want.Name, func(_ context.Context, l *redlock.Lock) error {
			h.lock = l
			h.begin()
			h.live()
			c.note(Event{Kind: Release, Op: h.op, Name: h.want.Name, Until: c.at(l.Until()), Limit: c.plan.options.NodeTimeout})
			return nil
		}, options...)
		if h.lock != nil {
			c.note(Event{Kind: Released, Op: h.op, Name: h.want.Name, Why: why(err), Error: text(err)})
			<-h.told
			return
		}
	}
	if err != nil {
		c.note(Event{Kind: Denied, Op: h.op, Name: h.want.Name, Why: why(err), Error: text(err)})
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
	c.note(h.want.ask(Event{Kind: Got, Op: h.op, Token: h.lock.Token(), Fence: h.fence(), Until: c.at(h.until)}))
	if h.handed() {
		c.note(Event{Kind: Renewed, Op: h.op, Name: h.want.Name, Until: c.at(h.until)})
	}
	h.find()
	h.watch()
}

// handed reports whether the lock was handed over: then the library extends it once by
// itself.
func (h *hold) handed() bool { return handed(h.lock.Token()) }

// handed reports whether a token is that of a lock that was handed over.
func handed(token string) bool { return strings.Count(token, ".") > 1 }

// watch has the client told of the end.
func (h *hold) watch() {
	c := h.client
	h.told = make(chan struct{})
	c.holds(h, true)
	h.ctx = h.lock.Context(context.Background())
	context.AfterFunc(h.ctx, func() {
		cause := context.Cause(h.ctx)
		if why(cause) != "detached" {
			c.note(Event{Kind: Told, Op: h.op, Name: h.want.Name, Until: c.at(h.lock.Until()), Why: why(cause), Error: text(cause)})
		}
		c.holds(h, false)
		close(h.told)
	})
}

func (h *hold) fence() uint64 { return uint64(h.lock.Fence()) }

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
		c.note(Event{Kind: Renewed, Op: h.op, Name: h.want.Name, Until: c.at(until)})
	}
}

// live is what a holder does.
func (h *hold) live() {
	c, rng := h.client, h.rng
	if brief := c.plan.scenario.Brief; brief || c.plan.scenario.Queue {
		most := c.plan.TTL / 16
		if brief {
			most /= 8
		}
		wait(h.ctx, 1+below(rng, most))
		h.pass()
		return
	}
	if c.plan.scenario.Hands && !h.renewed && rng.IntN(2) == 0 {
		h.handOn() // while some nodes have not answered yet
	}
	for range rng.IntN(4) {
		wait(h.ctx, 1+below(rng, c.plan.TTL/2))
		h.pass()
		if h.ctx.Err() != nil {
			return
		}
		h.look()
		switch rng.IntN(4) {
		case 0:
			if c.plan.scenario.Hands && !h.renewed {
				h.handOn()
			} else {
				h.extend()
			}
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
	c.note(Event{Kind: Extend, Op: h.op, Name: h.want.Name, Limit: limit})
	if err := h.lock.Extend(ctx); err != nil {
		c.note(Event{Kind: Failed, Op: h.op, Name: h.want.Name, Why: why(err), Error: text(err)})
		return
	}
	if h.renewed {
		h.look() // what it was extended from may be news, too
	}
	h.until = h.lock.Until()
	c.note(Event{Kind: Extended, Op: h.op, Name: h.want.Name, Until: c.at(h.until)})
}

// handOn detaches the lock, and attaches it again a little later, as the next process does:
// by what was written down of it, and with nobody to renew it in between. It is an
// extension for the judge, in all but one thing: the nodes may still have a lock that was
// to have ended by then.
func (h *hold) handOn() {
	c := h.client
	limit, rest := 1+below(h.rng, c.plan.TTL/2), below(h.rng, c.plan.TTL/time.Duration(2<<h.rng.IntN(8)))
	c.note(Event{Kind: Extend, Op: h.op, Name: h.want.Name, Verb: handingOn, Limit: limit + rest + c.plan.options.NodeTimeout})
	handle, err := h.lock.Detach()
	if err != nil {
		c.note(Event{Kind: Failed, Op: h.op, Name: h.want.Name, Why: why(err), Error: text(err)})
		return
	}
	<-h.told
	time.Sleep(rest)
	h.pass()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	l, err := c.locker.Attach(ctx, handle)
	if err != nil { // with that the story ends, and the token stays for its TTL
		c.lots.add(handle.Token)
		c.note(Event{Kind: Failed, Op: h.op, Name: h.want.Name, Why: why(err), Error: text(err)})
		c.note(Event{Kind: Told, Op: h.op, Name: h.want.Name, Until: c.at(handle.Until), Why: why(err), Error: text(err)})
		return
	}
	h.lock, h.until = l, l.Until()
	c.note(Event{Kind: Extended, Op: h.op, Name: h.want.Name, Until: c.at(h.until)})
	h.watch()
}

// write adds one to what it has read at the resource, as somebody does who trusts
// his lock: he looks whether it is valid for as long as the work takes, does it
// while nobody tells him of an end, and writes.
func (h *hold) write() {
	c, name := h.client, h.want.Name
	if within := c.plan.within(h.want); len(within) > 1 {
		name = pick(h.rng, within)
	}
	value := c.store.read(name, h.fence())
	c.note(Event{Kind: Read, Op: h.op, Name: name, Value: value})
	if h.want.Shared || h.want.Slots > 0 {
		return // it is not his alone
	}
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
		c.store.write(Event{Client: c.number, Op: h.op, Name: name, Value: value + 1, Fence: h.fence()})
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
	c.note(Event{Kind: Release, Op: h.op, Name: h.want.Name, Until: c.at(h.lock.Until()), Limit: c.plan.options.NodeTimeout})
	err := h.lock.Release(ctx)
	c.note(Event{Kind: Released, Op: h.op, Name: h.want.Name, Why: why(err), Error: text(err)})
	<-h.told
}
