package redlock

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// Hooks are called when something happens that an operator may want to know.
// Each may be nil. They are called from the library's own goroutines, some of
// which carry other callers' requests: a hook must be quick, must not call back
// into the Locker, and may be called from several goroutines at once.
type Hooks struct {
	// Warning reports what should be changed, but is not unsafe: an even number of nodes,
	// a node that could not be checked. It is called once, when that is found.
	Warning func(err error)

	// NodeDown tells that a node has stopped answering and gets no requests until
	// it answers again, and why.
	NodeDown func(*NodeError)

	// NodeUp tells that a node answers again, after how long.
	NodeUp func(node string, down time.Duration)

	// Quarantined tells that a node's grants are no votes for so long, and why: it
	// is new, or may have forgotten what it granted.
	Quarantined func(node string, d time.Duration, why error)

	// ClockStep tells that a node's clock has been set, by more than the drift
	// leaves room for; or that it runs faster or slower than that.
	ClockStep func(node string, by time.Duration)

	// Lost tells that a lock ended before its holder gave it back, and why.
	Lost func(l *Lock, cause error)

	// Unreleased tells that a release could not be confirmed by a quorum of nodes
	// in time. The nodes are told as soon as they can be; the TTL is the backstop.
	Unreleased func(l *Lock, err error)

	// Start, Wait, Node and End follow each operation. Where all four are nil they cost
	// nothing.
	//
	// Start tells that one begins. What it returns goes to the other three in the place
	// of the caller's context, and nowhere else. A renewal has no caller: Start gets what
	// it had returned when the lock was acquired, without its end.
	Start func(context.Context, Operation) context.Context

	// Wait tells that an Acquire has to wait: before the first time, and each time that
	// it has asked in vain.
	Wait func(context.Context, Operation)

	// Node tells what a node said to a step of an operation. A step is over as soon as
	// enough nodes have said the same, so the rest comes later, perhaps after the end.
	// A node that was not asked, because the step was lost without it, says nothing.
	Node func(context.Context, NodeReply)

	// End tells what came of it, once for each Start.
	End func(context.Context, Operation)
}

// JoinHooks returns Hooks that call all of these, in this order; any may be nil. What
// one Start returns is what the next one gets.
func JoinHooks(hooks ...*Hooks) *Hooks {
	all := slices.DeleteFunc(slices.Clone(hooks), func(h *Hooks) bool { return h == nil })
	each := func(call func(*Hooks)) {
		for _, h := range all {
			call(h)
		}
	}
	j := &Hooks{
		Warning:     func(err error) { each(func(h *Hooks) { h.warning(err) }) },
		NodeDown:    func(e *NodeError) { each(func(h *Hooks) { h.nodeDown(e) }) },
		NodeUp:      func(node string, down time.Duration) { each(func(h *Hooks) { h.nodeUp(node, down) }) },
		Quarantined: func(node string, d time.Duration, why error) { each(func(h *Hooks) { h.quarantined(node, d, why) }) },
		ClockStep:   func(node string, by time.Duration) { each(func(h *Hooks) { h.clockStep(node, by) }) },
		Lost:        func(l *Lock, cause error) { each(func(h *Hooks) { h.lost(l, cause) }) },
		Unreleased:  func(l *Lock, err error) { each(func(h *Hooks) { h.unreleased(l, err) }) },
	}
	if slices.ContainsFunc(all, (*Hooks).follow) {
		j.Start = func(ctx context.Context, op Operation) context.Context {
			each(func(h *Hooks) { ctx = h.start(ctx, op) })
			return ctx
		}
		j.Wait = func(ctx context.Context, op Operation) { each(func(h *Hooks) { h.wait(ctx, op) }) }
		j.Node = func(ctx context.Context, a NodeReply) { each(func(h *Hooks) { h.node(ctx, a) }) }
		j.End = func(ctx context.Context, op Operation) { each(func(h *Hooks) { h.end(ctx, op) }) }
	}
	return j
}

// follow reports whether anybody wants to know of operations.
func (h *Hooks) follow() bool {
	return h.Start != nil || h.Wait != nil || h.Node != nil || h.End != nil
}

func (h *Hooks) start(ctx context.Context, op Operation) context.Context {
	if h.Start != nil {
		return h.Start(ctx, op)
	}
	return ctx
}

func (h *Hooks) wait(ctx context.Context, op Operation) {
	if h.Wait != nil {
		h.Wait(ctx, op)
	}
}

func (h *Hooks) node(ctx context.Context, a NodeReply) {
	if h.Node != nil {
		h.Node(ctx, a)
	}
}

func (h *Hooks) end(ctx context.Context, op Operation) {
	if h.End != nil {
		h.End(ctx, op)
	}
}

func (h *Hooks) warning(err error) {
	if h.Warning != nil {
		h.Warning(err)
	}
}

func (h *Hooks) nodeDown(e *NodeError) {
	if h.NodeDown != nil {
		h.NodeDown(e)
	}
}

func (h *Hooks) nodeUp(node string, down time.Duration) {
	if h.NodeUp != nil {
		h.NodeUp(node, down)
	}
}

func (h *Hooks) quarantined(node string, d time.Duration, why error) {
	if h.Quarantined != nil {
		h.Quarantined(node, d, why)
	}
}

func (h *Hooks) clockStep(node string, by time.Duration) {
	if h.ClockStep != nil {
		h.ClockStep(node, by)
	}
}

func (h *Hooks) lost(l *Lock, cause error) {
	if h.Lost != nil {
		h.Lost(l, cause)
	}
}

func (h *Hooks) unreleased(l *Lock, err error) {
	if h.Unreleased != nil {
		h.Unreleased(l, err)
	}
}

// LogHooks returns Hooks that write to a structured logger: warnings and failures at the level
// Warn, recoveries at the level Info.
//
// If debug messages are enabled when LogHooks is called, each operation is logged at its end, and
// each wait. The level is not checked again later, so that programs without debug messages pay
// nothing for them. The replies of single nodes are not logged.
func LogHooks(log *slog.Logger) *Hooks {
	h := &Hooks{
		Warning: func(err error) { log.Warn("redlock: unwise", "error", err) },
		NodeDown: func(e *NodeError) {
			log.Warn("redlock: node down", "node", e.Node, "outcome", e.Outcome.String(), "error", e.Err)
		},
		Quarantined: func(node string, d time.Duration, why error) {
			log.Warn("redlock: node has no vote", "node", node, "for", d, "error", why)
		},
		ClockStep:  func(node string, by time.Duration) { log.Warn("redlock: node's clock was set", "node", node, "by", by) },
		NodeUp:     func(node string, down time.Duration) { log.Info("redlock: node up", "node", node, "down", down) },
		Lost:       func(l *Lock, cause error) { log.Warn("redlock: lock lost", "lock", l, "error", cause) },
		Unreleased: func(l *Lock, err error) { log.Warn("redlock: lock not released", "lock", l, "error", err) },
	}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		h.Wait = func(ctx context.Context, op Operation) {
			log.DebugContext(ctx, "redlock: waiting", "name", op.Name, "tries", op.Tries, "waited", op.Waited, "error", op.Err)
		}
		h.End = func(ctx context.Context, op Operation) {
			log.DebugContext(ctx, "redlock: "+op.Op, "name", op.Name, "tries", op.Tries, "took", op.Elapsed, "waited", op.Waited, "error", op.Err)
		}
	}
	return h
}

// An Operation is one call for a lock, from beginning to end, and what is known of it
// by the time that a hook is told.
//
// A call that sends nothing is no operation: one that joins a lock under its context, or that
// releases a lock which others have joined, or one that has ended, which [Hooks].Lost has
// reported. Nor is the release of what a failed attempt was granted.
type Operation struct {
	Op   string // "acquire", "try-acquire", "attach", "extend", "renew" (an extension by [AutoRenew], or of a lock that was handed over) or "release"
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

// An opTrace is an operation under way. Nil: no hook wants to know of it, and it costs
// nothing, not even a look at the clock.
//
// It belongs to the goroutine that carries the operation out, but for what answers
// need, which does not change.
type opTrace struct {
	hooks *Hooks
	clock Clock
	ctx   context.Context // what Start has made of the caller's
	op    Operation
	begun time.Time
	waits time.Time // since when; zero: it does not
}

// begins tells that an operation begins. Under no mutex, like all that is told of it.
func (lk *Locker) begins(ctx context.Context, op, name string, l *Lock) *opTrace {
	h := lk.opts.Hooks
	if !h.follow() {
		return nil
	}
	t := &opTrace{hooks: h, clock: lk.opts.Clock, begun: lk.opts.Clock.Now(), op: Operation{Op: op, Name: name, Lock: l}}
	t.ctx = h.start(ctx, t.op)
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
	t.hooks.wait(t.ctx, op)
}

// ends tells what came of it.
func (t *opTrace) ends(l *Lock, err error) {
	if t == nil {
		return
	}
	op := t.at(t.clock.Now())
	op.Lock, op.Err = l, err
	t.hooks.end(t.ctx, op)
}

// at is the operation at an instant.
func (t *opTrace) at(now time.Time) Operation {
	op := t.op
	op.Elapsed = elapsed(t.begun, now)
	if !t.waits.IsZero() {
		op.Waited = elapsed(t.waits, now)
	}
	return op
}

// answer tells what a node said in a round of the operation. It comes from the node's
// lane: after the end, perhaps, and at the same time as others.
func (t *opTrace) answer(r *round, node int, a *wire.Reply, late bool) {
	if t == nil || t.hooks.Node == nil {
		return
	}
	t.hooks.node(t.ctx, NodeReply{
		Step: r.op.String(), Name: r.lock.name, Node: r.locker.lanes.Lanes[node].Name, Outcome: Outcome(a.Status),
		Elapsed: elapsed(r.sent, t.clock.Now()), Late: late, Err: a.Err,
	})
}
