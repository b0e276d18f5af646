package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// An Operation is one call for a lock, from beginning to end, and what is known of it
// by the time that a hook is told.
//
// What puts nothing on the wire is none: to join a hold under the lock's own context,
// to release one that others are still in, or a lock that has ended, of which
// [Hooks].Lost has told. Nor is the giving back of what an attempt in vain was granted.
type Operation struct {
	Op   string // "acquire", "try-acquire", "attach", "extend", "renew" (an extension by [AutoRenew] or [Lock.KeepAlive], or of a lock that was handed over) or "release"
	Name string // the lock
	Lock *Lock  // acquire, attach: the one that was had, at the end; or the one that is extended or released

	Tries   int           // acquire: attempts so far
	Elapsed time.Duration // since the start
	Waited  time.Duration // acquire: since it first had to wait; 0: it had not. With no Err at the end, the lock was handed over

	// Err at the end is what the call returns. While waiting it is why: ErrHeld,
	// ErrNoQuorum, or nil behind another call of this Locker's for the same lock.
	Err error
}

// A NodeReply is what one node said to one step of an operation.
type NodeReply struct {
	Step    string // "acquire", "raise" (its fence, where one round was not enough), "extend" or "release"
	Name    string // the lock
	Node    string // its address, as the client was given it
	Outcome Outcome
	Elapsed time.Duration // since the step began

	// Late: the step was over, decided by the votes of others or given up. A late grant
	// is part of the lock all the same.
	Late bool
	Err  error // the client's or the server's own error, nil if there was none
}

// A course is an operation under way. Nil: no hook wants to know of it, and it costs
// nothing, not even a look at the clock.
//
// It belongs to the goroutine that carries the operation out, but for what answers
// need, which does not change.
type course struct {
	hooks *Hooks
	clock Clock
	ctx   context.Context // what Start has made of the caller's
	op    Operation
	begun time.Time
	waits time.Time // since when; zero: it does not
}

// begins tells that an operation begins. Under no mutex, like all that is told of it.
func (lk *Locker) begins(ctx context.Context, op, name string, l *Lock) *course {
	h := lk.opts.Hooks
	if !h.follow() {
		return nil
	}
	c := &course{hooks: h, clock: lk.opts.Clock, begun: lk.opts.Clock.Now(), op: Operation{Op: op, Name: name, Lock: l}}
	c.ctx = h.start(ctx, c.op)
	return c
}

// renewing is the context for what is done for a lock when no caller is there: that in
// which it was acquired, which may have ended since.
func (c *course) renewing() context.Context {
	if c == nil {
		return context.Background()
	}
	return context.WithoutCancel(c.ctx)
}

// tries counts an attempt.
func (c *course) tries() {
	if c != nil {
		c.op.Tries++
	}
}

// wait tells that the operation has to wait, and why.
func (c *course) wait(why *QuorumError) {
	if c == nil {
		return
	}
	now := c.clock.Now()
	if c.waits.IsZero() {
		c.waits = now
	}
	op := c.at(now)
	if why != nil {
		told := *why // the waiter's will say what ended it
		op.Err = &told
	}
	c.hooks.wait(c.ctx, op)
}

// ends tells what came of it.
func (c *course) ends(l *Lock, err error) {
	if c == nil {
		return
	}
	op := c.at(c.clock.Now())
	op.Lock, op.Err = l, err
	c.hooks.end(c.ctx, op)
}

// at is the operation at an instant.
func (c *course) at(now time.Time) Operation {
	op := c.op
	op.Elapsed = elapsed(c.begun, now)
	if !c.waits.IsZero() {
		op.Waited = elapsed(c.waits, now)
	}
	return op
}

// answer tells what a node said in a round of the operation. It comes from the node's
// lane: after the end, perhaps, and at the same time as others.
func (c *course) answer(r *round, node int, a *wire.Reply, late bool) {
	if c == nil || c.hooks.Node == nil {
		return
	}
	c.hooks.node(c.ctx, NodeReply{
		Step: r.op.String(), Name: r.lock.name, Node: r.locker.lanes.Lanes[node].Name, Outcome: Outcome(a.Status),
		Elapsed: elapsed(r.sent, c.clock.Now()), Late: late, Err: a.Err,
	})
}
