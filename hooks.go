package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/aside"
	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/quorumlock/redlock/redlocktrace"
)

// Hooks are called when something happens that an operator may want to know. Each may be nil. New and Connect copy them.
//
// A Locker calls its hooks, and the callbacks of Trace, one after another, in the order in which things happened, on a
// goroutine of their own. So a hook that sleeps, or writes to a pipe that nobody reads, delays the hooks after it and
// nothing else: no renewal, no release, no end of a lock. It may call the Locker's methods. Two Lockers may call the
// same hooks at once.
//
// A hook is called a moment after the event. [New] and [Connect] return when the hooks have been called for their
// events, and Close waits for the rest, each for Options.NodeTimeout at most, or a second if that is longer.
//
// Where hooks are slower than events, 1,024 events wait for them, and 8,192 callbacks of Trace. What is more is dropped: the
// oldest events, and the newest operations. At most once a minute, Warning says how many, and which hook was slow.
//
// A panic in a hook is not recovered. It ends the process with the hook's stack, as in any goroutine.
type Hooks struct {
	// Warning reports what should be changed, but is not unsafe: an even number of nodes, a node that could not be
	// checked. It is called once, when that is found.
	Warning func(err error)

	// NodeDown reports that a node has stopped answering and gets no requests until it answers again, and why. It is
	// called for a node whose connection breaks when the node cannot be reached again; for a silent node, when it has owed
	// an answer for four times NodeTimeout, and at least a second.
	NodeDown func(*NodeError)

	// NodeUp reports that a node answers again, and for how long it was down.
	NodeUp func(node string, down time.Duration)

	// Quarantined reports that a node's grants are no votes for the time d, and why: the node is new, or may have
	// forgotten what it granted. It is called again if that takes longer.
	Quarantined func(node string, d time.Duration, why error)

	// Votes reports that a node has a vote again: after Quarantined, or after a Warning about its clock.
	Votes func(node string)

	// ClockStep reports that a node's clock has been set, by more than the drift leaves room for; or that it runs faster
	// or slower than that. A node whose clock was set forward has no vote for a quarantine; one whose clock was set back
	// (by is negative) keeps its vote. If most nodes have made the same step, a Warning says that it is more likely this
	// computer's own clock.
	ClockStep func(node string, by time.Duration)

	// Joined reports the set of nodes when the Locker begins to use it: first the nodes that New or Connect was given
	// (Members.Epoch is 0), before any other hook is called for them; and again when the Locker learns the description of
	// the set, which may have other members and another quorum. Members reports changes after that.
	Joined func(Members)

	// Members reports that the set was changed, and what it is now. For the description that the Locker learns first,
	// Joined is called.
	Members func(Members)

	// RenewalFailed reports the first renewal that has failed since the last one that succeeded, and why. The lock is
	// still valid for the time left, and renewals go on.
	RenewalFailed func(l *Lock, left time.Duration, err error)

	// RenewalRecovered reports that a renewal has succeeded after RenewalFailed, and how many had failed in a row.
	RenewalRecovered func(l *Lock, failed int)

	// Lost reports that a lock ended before its holder released it, and why.
	Lost func(l *Lock, cause error)

	// Unreleased reports that no quorum of nodes has confirmed a release in time. The other nodes get the release as soon
	// as they can be reached; the TTL is the backstop.
	Unreleased func(l *Lock, err error)

	// Trace follows each operation, node by node. Nil: it costs nothing.
	Trace *redlocktrace.Trace
}

// JoinHooks returns Hooks that call all of these, in this order; any may be nil. Their traces are joined, too
// ([redlocktrace.Join]).
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

// LogHooks returns Hooks that write to a structured logger: warnings and failures at the level Warn, recoveries at the
// level Info. Each event has one line, in the order in which the events of a node happened.
//
// The keys are the same in all lines: name, fence and left (how long it is still valid) of a lock; node, outcome (what
// the node did) and error; for (how long something took or takes) and until (when that ends); by (how far a clock was
// set); tries, failed and waited; set, epoch, members and quorum of a set that was changed. No line has a token or a
// password in it. Durations are numbers of milliseconds, and the names of their attributes end in _ms.
//
// If debug messages are enabled when LogHooks is called, each operation is logged at its end, and each wait. The level
// is not checked again later, so programs without debug messages pay nothing for them. The replies of single nodes are
// not logged.
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

// callbacks calls the hooks of one Locker, in order, on a goroutine of their own: each method returns at once, and may
// be called under any mutex. What an operator has to know is News (package aside), so that the last word about each
// node is not dropped; an operation of Trace is Detail, and its end is Final.
//
// It does not call Trace.Start of an operation that acquires, attaches or breaks a lock, since the attempt carries the
// id that Trace.ID makes of the result: see begins.
type callbacks struct {
	hooks *Hooks
	queue aside.Queue
}

// newCallbacks returns the callbacks of hooks. The caller must not change hooks after that.
func newCallbacks(hooks *Hooks) *callbacks {
	c := &callbacks{hooks: hooks}
	c.queue.Dropped = func(n int, slowest string, took time.Duration) {
		c.hooks.warning(fmt.Errorf("redlock: %s not told, since a hook is slow: %s took %s; locks do not wait for hooks", counted(n, "event was", "events were"), slowest, printable.Duration(took)))
	}
	return c
}

// counted is a number with its noun, for example "1 event was".
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// wait waits until the hooks have been called for all that has happened so far, for limit at most.
func (c *callbacks) wait(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c.queue.Wait(ctx)
}

// close waits for limit at most until the hooks have been called for everything. Its error says which hook is not done.
func (c *callbacks) close(limit time.Duration) error {
	left, stuck := c.queue.Close(limit)
	if stuck == "" {
		return nil
	}
	return fmt.Errorf("redlock: closed; %s has not returned, and %s not told", stuck, counted(left, "event was", "events were"))
}

// tell queues call, which calls one hook. The hook's name is for reports of slow hooks.
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

// events are the callbacks that packages set and vote call.
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

// An opTrace is an operation under way (an Acquire, for instance) that Hooks.Trace follows. It is nil if there is no Trace,
// or if its callbacks are so slow that too many wait already: its methods then cost nothing, not even a look at the clock.
//
// The goroutine that carries the operation out owns it. The goroutines that deliver answers read only ctx, and what
// does not change.
type opTrace struct {
	callbacks *callbacks
	trace     *redlocktrace.Trace
	clock     Clock
	op        redlocktrace.Operation
	begun     time.Time
	waits     time.Time // when it began to wait; zero: it does not
	id        string    // of the caller's trace; "": none

	// ctx is what Trace.Start has made of the caller's context. For a lock that nobody has yet, Start has returned before
	// begins does. Otherwise only callbacks read ctx, and they run after Start.
	ctx context.Context
}

// begins reports that operation op begins, and returns the opTrace of it; nil: it is not traced. Caller holds no mutex.
//
// If the operation is for a lock that is held (l), Start is queued like all callbacks: the caller may have to extend or
// release the lock in time. If l is nil, begins calls Start itself, on the caller's goroutine, where it delays this call
// alone. The caller has not called Locker.enter yet, so Close does not wait for Start.
func (c *callbacks) begins(ctx context.Context, clock Clock, op, name string, l *Lock) *opTrace {
	trace := c.hooks.Trace
	if trace == nil || c.queue.Full() {
		return nil
	}
	t := &opTrace{callbacks: c, trace: trace, clock: clock, begun: clock.Now(), ctx: ctx, op: redlocktrace.Operation{Op: op, Name: name}}
	began := t.at(t.begun)
	switch {
	case l != nil:
		t.op.Lock, began.Lock = l, l
		if trace.Start != nil {
			c.queue.Add(aside.Final, "Trace.Start", func() { t.ctx = trace.Start(ctx, began) })
		}
	case trace.Start != nil:
		t.ctx = trace.Start(ctx, began)
	}
	if l == nil && trace.ID != nil {
		t.id = trace.ID(t.ctx)
	}
	return t
}

// renewing returns the context for a lock's renewals. It has its acquisition's values, none if t is nil, and never ends.
func (t *opTrace) renewing() context.Context {
	if t == nil {
		return context.Background()
	}
	return context.WithoutCancel(t.ctx)
}

// traceID is the id of the caller's trace; "": none.
func (t *opTrace) traceID() string {
	if t == nil {
		return ""
	}
	return t.id
}

// tries counts an attempt (Operation.Tries).
func (t *opTrace) tries() {
	if t != nil {
		t.op.Tries++
	}
}

// wait reports that the operation waits. why is the error of its last attempt; nil: other calls of this process come first.
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
		told := *why // a copy, since why.Cause may be set later
		op.Err = &told
	}
	if t.trace.Wait != nil {
		t.callbacks.queue.Add(aside.Detail, "Trace.Wait", func() { t.trace.Wait(t.ctx, op) })
	}
}

// ends reports the result of the operation to Trace.End: l is the lock that it is for, or nil, and err its error, or nil.
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
		t.callbacks.queue.Add(aside.Final, "Trace.End", func() { t.trace.End(t.ctx, op) })
	}
}

// at returns the operation as it stands at the time now, for a callback.
func (t *opTrace) at(now time.Time) redlocktrace.Operation {
	op := t.op
	op.At, op.Elapsed = now, elapsed(t.begun, now)
	if !t.waits.IsZero() {
		op.Waited = elapsed(t.waits, now)
	}
	return op
}
