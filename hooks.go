package redlock

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/redlocktrace"
)

// Hooks are called when something happens that an operator may want to know. Each may be nil. A
// Locker copies them when it is made.
//
// A Locker calls its hooks, and the callbacks of Trace, one after another, in the order in which things
// happened, on a goroutine of their own. So a hook that sleeps, or writes to a pipe that nobody reads,
// delays the hooks after it and nothing else: no renewal, no release, no end of a lock. It may call the
// Locker's methods. Two Lockers with the same hooks may call them at the same time.
//
// A hook is called a moment after the event. [New] and [Connect] return when their events have been told, and
// Close waits for the rest, each for Options.NodeTimeout at most, or a second if that is longer.
//
// Where hooks are slower than what happens, 1,024 events wait for them, and 8,192 callbacks of Trace. What is
// more is dropped: the oldest events, and the newest operations. Warning tells how many were dropped, and
// which hook was slow, at most once a minute.
//
// A panic in a hook is not recovered. It ends the process with the hook's stack, as in any goroutine.
type Hooks struct {
	// Warning reports what should be changed, but is not unsafe: an even number of nodes,
	// a node that could not be checked. It is called once, when that is found.
	Warning func(err error)

	// NodeDown tells that a node has stopped answering and gets no requests until
	// it answers again, and why. A node whose connection breaks is told of when it cannot be
	// reached again; one that is silent, when it has owed an answer for four times NodeTimeout,
	// and at least a second.
	NodeDown func(*NodeError)

	// NodeUp tells that a node answers again, after how long.
	NodeUp func(node string, down time.Duration)

	// Quarantined tells that a node's grants are no votes for so long, and why: it
	// is new, or may have forgotten what it granted. It is told again if that takes longer.
	Quarantined func(node string, d time.Duration, why error)

	// Votes tells that a node has a vote again: after Quarantined, or after a Warning that it has
	// none because of its clock.
	Votes func(node string)

	// ClockStep tells that a node's clock has been set, by more than the drift
	// leaves room for; or that it runs faster or slower than that. A node whose clock was set forward
	// has no vote for a quarantine; one whose clock was set back (by is negative) keeps its vote. If
	// most nodes have made the same step, a Warning says that it is more likely this
	// computer's own clock.
	ClockStep func(node string, by time.Duration)

	// Joined tells what the set is when the Locker begins to use it: first the nodes that New or
	// Connect was given (Members.Epoch is 0), before anything is told of them; and again when the
	// Locker learns the description of the set, which may have other members and another quorum.
	// Members tells of changes after that.
	Joined func(Members)

	// Members tells that the set was changed, and what it is now. It is not called for the
	// description that the Locker learns first: Joined is.
	Members func(Members)

	// RenewalFailed tells that a renewal has failed for the first time since the last one that
	// succeeded, and why. The lock is still valid for so long, and renewals go on.
	RenewalFailed func(l *Lock, left time.Duration, err error)

	// RenewalRecovered tells that a renewal has succeeded after RenewalFailed, and how many had
	// failed in a row.
	RenewalRecovered func(l *Lock, failed int)

	// Lost tells that a lock ended before its holder gave it back, and why.
	Lost func(l *Lock, cause error)

	// Unreleased tells that a release could not be confirmed by a quorum of nodes
	// in time. The nodes are told as soon as they can be; the TTL is the backstop.
	Unreleased func(l *Lock, err error)

	// Trace follows each operation, node by node. Nil: it costs nothing.
	Trace *redlocktrace.Trace
}

// JoinHooks returns Hooks that call all of these, in this order; any may be nil. Their traces are
// joined, too ([redlocktrace.Join]).
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
		Joined:      func(m Members) { each(func(h *Hooks) { h.joined(m) }) },
		Members:     func(m Members) { each(func(h *Hooks) { h.members(m) }) },
		RenewalFailed: func(l *Lock, left time.Duration, err error) {
			each(func(h *Hooks) { h.renewalFailed(l, left, err) })
		},
		RenewalRecovered: func(l *Lock, failed int) { each(func(h *Hooks) { h.renewalRecovered(l, failed) }) },
		ClockStep:        func(node string, by time.Duration) { each(func(h *Hooks) { h.clockStep(node, by) }) },
		Lost:             func(l *Lock, cause error) { each(func(h *Hooks) { h.lost(l, cause) }) },
		Unreleased:       func(l *Lock, err error) { each(func(h *Hooks) { h.unreleased(l, err) }) },
	}
	if slices.ContainsFunc(all, func(h *Hooks) bool { return h.Votes != nil }) {
		j.Votes = func(node string) { each(func(h *Hooks) { h.votes(node) }) }
	}
	for _, h := range all {
		j.Trace = redlocktrace.Join(j.Trace, h.Trace)
	}
	return j
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

func (h *Hooks) votes(node string) {
	if h.Votes != nil {
		h.Votes(node)
	}
}

func (h *Hooks) joined(m Members) {
	if h.Joined != nil {
		h.Joined(m)
	}
}

func (h *Hooks) members(m Members) {
	if h.Members != nil {
		h.Members(m)
	}
}

func (h *Hooks) renewalFailed(l *Lock, left time.Duration, err error) {
	if h.RenewalFailed != nil {
		h.RenewalFailed(l, left, err)
	}
}

func (h *Hooks) renewalRecovered(l *Lock, failed int) {
	if h.RenewalRecovered != nil {
		h.RenewalRecovered(l, failed)
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
// Warn, recoveries at the level Info. Each event has one line, in the order in which the
// events of a node happened.
//
// The keys are the same in all lines: name, fence and left (how long it is still valid) of a lock;
// node, outcome (what the node did) and error; for (how long something took or takes) and until
// (when that ends); by (how far a clock was set); tries, failed and waited; set, epoch, members and
// quorum of a set that was changed. No line has a token or a password in it. Durations are numbers of
// milliseconds, and the names of their attributes end in _ms.
//
// If debug messages are enabled when LogHooks is called, each operation is logged at its end, and
// each wait. The level is not checked again later, so that programs without debug messages pay
// nothing for them. The replies of single nodes are not logged.
func LogHooks(log *slog.Logger) *Hooks {
	h := &Hooks{
		Warning: func(err error) { log.Warn("redlock: warning", "error", err) },
		NodeDown: func(e *NodeError) {
			log.Warn("redlock: node down", "node", e.Node, "outcome", e.Outcome.String(), "error", e.reason())
		},
		NodeUp: func(node string, down time.Duration) {
			log.Info("redlock: node up", "node", node, "for_ms", printable.Millis(down))
		},
		Quarantined: func(node string, d time.Duration, why error) {
			log.Warn("redlock: node has no vote", "node", node, "for_ms", printable.Millis(d), "until", time.Now().Add(d), "error", why)
		},
		Votes: func(node string) { log.Info("redlock: node votes again", "node", node) },
		ClockStep: func(node string, by time.Duration) {
			log.Warn("redlock: node's clock was set", "node", node, "by_ms", printable.Millis(by))
		},
		Members: func(m Members) {
			log.Info("redlock: members have changed", "set", m.Set, "epoch", m.Epoch, "members", m.Nodes, "quorum", m.Quorum)
		},
		RenewalFailed: func(l *Lock, left time.Duration, err error) {
			log.Warn("redlock: renewal failed", "name", l.name, "fence", l.claim.Fence, "left_ms", printable.Millis(left), "error", err)
		},
		RenewalRecovered: func(l *Lock, failed int) {
			log.Info("redlock: renewal recovered", "name", l.name, "fence", l.claim.Fence, "left_ms", printable.Millis(l.left()), "failed", failed)
		},
		Lost: func(l *Lock, cause error) {
			log.Warn("redlock: lock lost", "name", l.name, "fence", l.claim.Fence, "error", cause)
		},
		Unreleased: func(l *Lock, err error) {
			if errors.Is(err, ErrLost) {
				log.Warn("redlock: lock lost", "name", l.name, "fence", l.claim.Fence, "error", err)
				return
			}
			log.Warn("redlock: lock not released", "name", l.name, "fence", l.claim.Fence, "error", err)
		},
	}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		h.Trace = new(redlocktrace.Trace)
		h.Trace.Wait = func(ctx context.Context, op redlocktrace.Operation) {
			log.DebugContext(ctx, "redlock: waiting", "name", op.Name, "tries", op.Tries, "waited_ms", printable.Millis(op.Waited), "error", op.Err)
		}
		h.Trace.End = func(ctx context.Context, op redlocktrace.Operation) {
			log.DebugContext(ctx, "redlock: "+op.Op, "name", op.Name, "tries", op.Tries, "for_ms", printable.Millis(op.Elapsed), "waited_ms", printable.Millis(op.Waited), "error", op.Err)
		}
	}
	return h
}
