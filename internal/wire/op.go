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
