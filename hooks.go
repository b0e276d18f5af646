package redlock

import (
	"log/slog"
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
func LogHooks(log *slog.Logger) *Hooks {
	return &Hooks{
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
}
