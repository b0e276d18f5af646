// Package wire is what a client and a node say to each other, as values: the steps of the protocol, what a node
// answers, and what its marker says. It knows no connection, no clock and no lock.
package wire

import "time"

// An Op is one step of the protocol. A node runs a script of internal/script for it, or some commands.
type Op uint8

const (
	Acquire Op = iota
	Raise      // stores the fence (fencing token) of a lock where a smaller number was stored
	Extend
	Release
	Leave   // removes a waiter from a lock's queue
	Yield   // a release by a waiter that keeps its place in the queue
	Inspect // reads what a node has about a lock
	Plain   // an acquire by plain commands, without a script: see PlainAnswer
	Choose  // a vote on the next description of the set: see choose.lua
	Merge   // reads or raises the node's tables of counters for fences: see merge.lua
	Break   // a release after which the token cannot be extended: see break.lua
	Wake    // calls the waiters of a key that was released without a script: see NativeAnswer
	Set     // SET NX PX, as other Redlock clients send it; only for test doubles

	Ops = int(Wake) + 1 // the number of the library's own steps, which are all but Set
)

func (o Op) String() string {
	return [...]string{"acquire", "raise", "extend", "release", "leave", "yield", "inspect", "plain", "choose", "merge", "break", "wake", "set"}[o]
}

const (
	// Clamp is how far from its own time a node accepts the fence that a client proposes for a lock: a proposed number
	// is a time in microseconds. It is the S of fence.go.
	Clamp = 500 * time.Millisecond

	// MaxFence is the bound up to which Lua's numbers, which are doubles, represent all integers.
	MaxFence = 1 << 53
)

// A Mark is the reply of join.lua, which each new connection runs. Value is the node's marker (it names the process,
// and since when it has its data), Before the one that was found ("": none), and Now the node's time in microseconds.
type Mark struct {
	Value, Before string
	Now           int64
	ScriptOnly    bool // the user may not run the release script: so the client may not acquire by plain commands
	Kept          Kept // the description of the set that the node keeps
}

// RunID returns the run_id of the server process in a marker; "" if the text is no marker of this version.
func RunID(mark string) string {
	m, _ := ParseMarker(mark)
	return m.RunID
}

// A Hello is what a client tells a node when it joins the node (join.lua).
type Hello struct {
	Marked bool  // the node is to have a marker; false: the client does not ask nodes whether they have lost data
	Time   int64 // the client's clock, in milliseconds

	// Keep is the description that the node is to keep in the place of an earlier one of the same set. A node that
	// keeps no description stores it only if its marker is While, or if it took part in the choice of this description.
	Keep  Kept
	While string
}
