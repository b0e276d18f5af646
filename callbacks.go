package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/internal/aside"
	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/quorumlock/redlock/redlocktrace"
)

// callbacks calls the hooks of one Locker, in order, and off the path of everything else: each method
// returns at once, and may be called under any mutex. What an operator has to know is News, so that the last
// word about each node is not lost; an operation that Trace follows is Detail, and its end is Final.
//
// The one callback that is not called here is Trace.Start of an operation that acquires, attaches or breaks a lock, since
// the attempt carries what Trace.ID makes of it: see begins.
type callbacks struct {
	hooks *Hooks
	queue aside.Queue
}

// newCallbacks takes hooks that nobody else changes.
func newCallbacks(hooks *Hooks) *callbacks {
	c := &callbacks{hooks: hooks}
	c.queue.Dropped = func(n int, slowest string, took time.Duration) {
		c.hooks.warning(fmt.Errorf("redlock: %s not told, since a hook is slow: %s took %s; locks do not wait for hooks", counted(n, "event was", "events were"), slowest, printable.Duration(took)))
	}
	return c
}

// counted is a number with its noun.
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// wait waits until everything has been told that has happened so far, or for so long.
func (c *callbacks) wait(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c.queue.Wait(ctx)
}

// close waits for so long until everything has been told, and returns an error if it has not been.
func (c *callbacks) close(limit time.Duration) error {
	left, stuck := c.queue.Close(limit)
	if stuck == "" {
		return nil
	}
	return fmt.Errorf("redlock: closed; %s has not returned, and %s not told", stuck, counted(left, "event was", "events were"))
}

// tell queues one event for a hook.
func (c *callbacks) tell(hook string, call func()) { c.queue.Add(aside.News, hook, call) }

func (c *callbacks) warning(err error) {
	if c.hooks.Warning != nil {
		c.tell("Hooks.Warning", func() { c.hooks.Warning(err) })
	}
}

func (c *callbacks) joined(m Members) {
	if c.hooks.Joined != nil {
		c.tell("Hooks.Joined", func() { c.hooks.Joined(m) })
	}
}

func (c *callbacks) renewalFailed(l *Lock, err error) {
	if c.hooks.RenewalFailed != nil {
		c.tell("Hooks.RenewalFailed", func() { c.hooks.RenewalFailed(l, l.left(), err) })
	}
}

func (c *callbacks) renewalRecovered(l *Lock, failed int) {
	if c.hooks.RenewalRecovered != nil {
		c.tell("Hooks.RenewalRecovered", func() { c.hooks.RenewalRecovered(l, failed) })
	}
}

func (c *callbacks) lost(l *Lock, cause error) {
	if c.hooks.Lost != nil {
		c.tell("Hooks.Lost", func() { c.hooks.Lost(l, cause) })
	}
}

func (c *callbacks) unreleased(l *Lock, err error) {
	if c.hooks.Unreleased != nil {
		c.tell("Hooks.Unreleased", func() { c.hooks.Unreleased(l, err) })
	}
}

// events are the callbacks, as the lanes know them.
type events struct{ *callbacks }

func (e events) Warning(err error) { e.warning(err) }

func (e events) Down(node string, why *lane.Failure) {
	if e.hooks.NodeDown != nil {
		e.tell("Hooks.NodeDown", func() {
			e.hooks.NodeDown(&NodeError{Node: node, Outcome: Outcome(why.Status), Err: why.Err})
		})
	}
}

func (e events) Up(node string, down time.Duration) {
	if e.hooks.NodeUp != nil {
		e.tell("Hooks.NodeUp", func() { e.hooks.NodeUp(node, down) })
	}
}

func (e events) Quarantined(node string, d time.Duration, why error) {
	if e.hooks.Quarantined != nil {
		since := time.Now()
		e.tell("Hooks.Quarantined", func() { e.hooks.Quarantined(node, max(0, d-time.Since(since)), why) })
	}
}

func (e events) Votes(node string) {
	if e.hooks.Votes != nil {
		e.tell("Hooks.Votes", func() { e.hooks.Votes(node) })
	}
}

func (e events) ClockStep(node string, by time.Duration) {
	if e.hooks.ClockStep != nil {
		e.tell("Hooks.ClockStep", func() { e.hooks.ClockStep(node, by) })
	}
}

func (e events) Joined(d *wire.Description) { e.joined(described(d)) }

func (e events) Members(d *wire.Description) {
	if e.hooks.Members != nil {
		e.tell("Hooks.Members", func() { e.hooks.Members(described(d)) })
	}
}

// An opTrace is an operation under way that a Trace follows. Nil: there is no Trace, or its callbacks are so
// slow that it does not follow this operation; that costs nothing, not even a look at the clock.
//
// It belongs to the goroutine that carries the operation out, but for what answers need, which does not
// change, and for ctx.
type opTrace struct {
	told  *callbacks
	trace *redlocktrace.Trace
	clock Clock
	op    redlocktrace.Operation
	begun time.Time
	waits time.Time // since when; zero: it does not
	id    string    // of the trace that the operation belongs to; "": none

	// ctx is what Start has made of the caller's context. Start has returned when begins has, if the operation
	// is for a lock that nobody has yet. Otherwise only callbacks look at it, and Start comes before them.
	ctx context.Context
}

// begins tells that an operation begins. Under no mutex.
//
// If the operation is for a lock that is held (l), Start is queued like all callbacks: the caller may have to
// extend or release the lock in time. Otherwise Start is called here, on the caller's own goroutine, where it
// delays this call alone. The caller of begins has entered nothing, so that Close does not wait for Start.
func (lk *Locker) begins(ctx context.Context, op, name string, l *Lock) *opTrace {
	told := lk.settings().told
	trace := told.hooks.Trace
	if trace == nil || told.queue.Full() {
		return nil
	}
	t := &opTrace{told: told, trace: trace, clock: lk.settings().Clock, begun: lk.now(), ctx: ctx, op: redlocktrace.Operation{Op: op, Name: name}}
	began := t.at(t.begun)
	switch {
	case l != nil:
		t.op.Lock, began.Lock = l, l
		if trace.Start != nil {
			told.queue.Add(aside.Final, "Trace.Start", func() { t.ctx = trace.Start(ctx, began) })
		}
	case trace.Start != nil:
		t.ctx = trace.Start(ctx, began)
	}
	if l == nil && trace.ID != nil {
		t.id = trace.ID(t.ctx)
	}
	return t
}

// renewing is the context for what is done for a lock when no caller is there: that in
// which it was acquired, which may have ended since.
func (t *opTrace) renewing() context.Context {
	if t == nil {
		return context.Background()
	}
	return context.WithoutCancel(t.ctx)
}

// traceID is the id of the trace that the operation belongs to; "": none.
func (t *opTrace) traceID() string {
	if t == nil {
		return ""
	}
	return t.id
}

// tries counts an attempt.
func (t *opTrace) tries() {
	if t != nil {
		t.op.Tries++
	}
}

// wait tells that the operation has to wait, and why.
func (t *opTrace) wait(why *QuorumError) {
	if t == nil {
		return
	}
	now := t.clock.Now()
	if t.waits.IsZero() {
		t.waits = now
	}
	op := t.at(now)
	if why != nil {
		told := *why // the waiter's will say what ended it
		op.Err = &told
	}
	if t.trace.Wait != nil {
		t.told.queue.Add(aside.Detail, "Trace.Wait", func() { t.trace.Wait(t.ctx, op) })
	}
}

// ends tells what came of it.
func (t *opTrace) ends(l *Lock, err error) {
	if t == nil {
		return
	}
	op := t.at(t.clock.Now())
	op.Lock, op.Err = nil, err
	if l != nil {
		op.Lock = l
	}
	if t.trace.End != nil {
		t.told.queue.Add(aside.Final, "Trace.End", func() { t.trace.End(t.ctx, op) })
	}
}

// at is the operation at an instant.
func (t *opTrace) at(now time.Time) redlocktrace.Operation {
	op := t.op
	op.At, op.Elapsed = now, elapsed(t.begun, now)
	if !t.waits.IsZero() {
		op.Waited = elapsed(t.waits, now)
	}
	return op
}

// answer tells what a node said in a round of the operation. It comes from the node's
// lane: after the end, perhaps, and at the same time as others.
func (t *opTrace) answer(r *round, n *lane.Lane, a *wire.Reply, late bool) {
	if t == nil || t.trace.Node == nil {
		return
	}
	now := t.clock.Now()
	reply := redlocktrace.Reply{
		Step: r.op.String(), Name: r.lock.name, Node: n.Name, Outcome: a.Status.String(),
		At: now, Elapsed: elapsed(r.sent, now), Late: late,
	}
	if a.Status != wire.Granted {
		why := nodeError(reply.Node, a, reply.Elapsed)
		reply.Err = &why
	}
	t.told.queue.Add(aside.Detail, "Trace.Node", func() { t.trace.Node(t.ctx, reply) })
}
