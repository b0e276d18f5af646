package redlock

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// Hooks are called when something happens that an operator may want to know.
// Each may be nil. They are called from the library's own goroutines, some of
// which carry other callers' requests: a hook must be quick, must not call back
// into the Locker, and may be called from several goroutines at once.
type Hooks struct {
	// Warning tells of what is unwise, but not unsafe: an even number of nodes,
	// a node that could not be checked. Said once, when it is found.
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
	// in time. The nodes are told as soon as they can be; the TTL is the net.
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

// LogHooks returns Hooks that write to a structured logger: what is unwise and
// what went wrong as warnings, what is well again as information.
//
// If the logger takes debug messages when it is given, there is one for each operation
// at its end, and one for each wait. It is asked then and not later, so that those who
// do not debug pay for none. What each node says is left to those who count or trace.
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
