// Package wire is what a client and a node say to each other, as values: the steps of the
// protocol, what a node answers, and what its marker says. It knows no connection, no clock
// and no lock.
package wire

import "time"

// An Op is one step of the protocol: which script a node runs.
type Op uint8

const (
	Acquire Op = iota
	Raise
	Extend
	Release
	Leave
	Yield // a release by a waiter that keeps its place in the queue
	Inspect
	Plain  // an acquire of plain commands, without a script: see plain.go
	Choose // takes part in the choice of a description: see choose.lua
	Merge  // gives the tables of counters, or makes them larger: see merge.lua
	Break  // a release after which the token cannot come back: see break.lua
	Wake   // calls the waiters of a key that was released without a script: see native.go
	Set    // the SET NX PX of another Redlock client, for test doubles

	Ops = int(Wake) + 1 // the number of the library's own steps
)

func (o Op) String() string {
	return [...]string{"acquire", "raise", "extend", "release", "leave", "yield", "inspect", "plain", "choose", "merge", "break", "wake", "set"}[o]
}

const (
	// Clamp is how far from its own time a node accepts the fence that a client proposes for a
	// lock. It is the S of fence.go.
	Clamp = 500 * time.Millisecond

	// MaxFence is the largest number up to which Lua's numbers have no gaps.
	MaxFence = 1 << 53
)

// A Mark is what join.lua replies: the node's marker, what was there before, and the node's
// time in microseconds.
type Mark struct {
	Value, Before string
	Now           int64
	ScriptOnly    bool // the client may not release what it acquires by plain commands
	Kept          Kept // what the node keeps
}

// RunID is the part of a marker that names the server's process; "": it is no marker of this version.
func RunID(mark string) string {
	m, _ := ParseMarker(mark)
	return m.RunID
}

// A Hello is what a client tells a node about itself when it joins the node.
type Hello struct {
	Marked bool  // the client wants the node to have a marker
	Time   int64 // what the client's clock shows, in milliseconds

	// What the node is to keep, if it keeps an earlier description of the set. A node that keeps none
	// is to keep it while it has this marker, or if it has taken it in the choice.
	Keep  Kept
	While string
}
