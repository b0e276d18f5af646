// Package redlocktrace follows the operations of a Locker, as net/http/httptrace follows requests.
// A [Trace] is for those who measure or trace. What an operator should know is told by the hooks of
// redlock.Hooks, of which a Trace is a part.
package redlocktrace

import (
	"context"
	"slices"
	"time"
)

// A Trace has callbacks that follow each operation of a Locker (redlock.Hooks.Trace). Each may be
// nil. Without a Trace nothing of this costs anything.
//
// They are called as hooks are (redlock.Hooks): one after another on a goroutine of their own, a moment after
// the event, which Operation.At and Reply.At say. So a slow callback delays no lock. The exceptions are Start and
// ID of an operation that acquires, attaches or breaks a lock: the caller waits for these, before anything
// is sent, on its own goroutine, and other callers may be in them at the same time.
//
// Where callbacks are slower than the operations, the next operations are not followed at all, and of others Wait
// and Node may be missing; redlock.Hooks.Warning tells how much was dropped.
type Trace struct {
	// Start is called when an operation begins. What it returns is passed to the other callbacks in the place of the
	// caller's context, and nowhere else. A renewal has no caller: Start gets what it returned when the lock was
	// acquired, without its end. Start must not call the Locker.
	Start func(context.Context, Operation) context.Context

	// Wait is called when an acquire has to wait: before the first time, and each time that it has asked in vain.
	Wait func(context.Context, Operation)

	// Node is called with a node's answer to a step of an operation. A step is over as soon as
	// enough nodes have answered alike, so the other answers come later, perhaps after the end. A
	// node that was not asked, because the step was lost without it, has no answer.
	Node func(context.Context, Reply)

	// End is called with the result of an operation, once for each Start, unless the Locker is closed
	// and a callback does not return.
	End func(context.Context, Operation)

	// ID is called with what Start returned, once for each operation that acquires a lock. What it returns is
	// part of the lock's token, and shown with the lock by everybody who looks at it
	// (redlock.Identity): at most 64 bytes, the rest is cut off. "": the attempt belongs to no trace.
	ID func(context.Context) string
}

// Join returns a Trace that calls all of these, in this order; any may be nil. Each Start gets the context that the one
// before has returned. The first ID that is not empty counts. Join returns nil if no callback is set.
func Join(traces ...*Trace) *Trace {
	all := slices.DeleteFunc(slices.Clone(traces), func(t *Trace) bool {
		return t == nil || t.Start == nil && t.Wait == nil && t.Node == nil && t.End == nil && t.ID == nil
	})
	if len(all) == 0 {
		return nil
	}
	j := new(Trace)
	j.Start = func(ctx context.Context, op Operation) context.Context {
		for _, t := range all {
			if t.Start != nil {
				ctx = t.Start(ctx, op)
			}
		}
		return ctx
	}
	j.Wait = func(ctx context.Context, op Operation) {
		for _, t := range all {
			if t.Wait != nil {
				t.Wait(ctx, op)
			}
		}
	}
	j.Node = func(ctx context.Context, r Reply) {
		for _, t := range all {
			if t.Node != nil {
				t.Node(ctx, r)
			}
		}
	}
	j.End = func(ctx context.Context, op Operation) {
		for _, t := range all {
			if t.End != nil {
				t.End(ctx, op)
			}
		}
	}
	j.ID = func(ctx context.Context) string {
		for _, t := range all {
			if t.ID == nil {
				continue
			}
			if id := t.ID(ctx); id != "" {
				return id
			}
		}
		return ""
	}
	return j
}

// An Operation is one call for a lock, from beginning to end, and what is known of it when a callback is called.
//
// What sends nothing is no operation: to join a hold under the lock's own context, to release a hold that other handles
// are still in, or a lock that has ended (redlock.Hooks.Lost has told that). Nor is it one to give back what a failed
// attempt was granted.
type Operation struct {
	Op   string // "acquire", "try-acquire", "attach", "extend", "renew" (an extension by the library itself), "release" or "break"
	Name string // the lock
	Lock Lock   // acquire, attach: at the end, the lock that was acquired; extend, renew, release: the lock; else nil

	At      time.Time     // when this happened, by redlock.Options.Clock; callbacks are called later
	Tries   int           // acquire: attempts so far
	Elapsed time.Duration // since the start
	Waited  time.Duration // acquire: since it first had to wait; 0: it did not wait

	// Err at the end is what the call returns. While an acquire waits it is the reason: ErrHeld,
	// ErrNoQuorum, or nil behind another call of this Locker's for the same lock.
	Err error
}

// A Lock is what a Trace may look at of a *redlock.Lock, and is one.
type Lock interface {
	Name() string
	Fence() int64
	Since() time.Time
	Until() time.Time
}

// A Reply is one node's answer to one step of an operation.
type Reply struct {
	Step    string        // "acquire", "raise" (its fence, where one round was not enough), "extend" or "release"
	Name    string        // the lock
	Node    string        // the node's address, as the client was given it
	At      time.Time     // when it came, by redlock.Options.Clock; callbacks are called later
	Elapsed time.Duration // since the step began

	// Late: the step was already over, decided by the other nodes or given up. A late grant is part
	// of the lock all the same.
	Late bool

	Outcome string // "granted", or what a redlock.Outcome prints
	Err     error  // nil: granted; else a *redlock.NodeError
}
