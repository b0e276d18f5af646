package model

import (
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// A Call is one step at one node, with what the node says: Value is the reply of
// the step's script in internal/script, as go-redis gives it, unless there is an
// Err. An acquire of plain commands has no Value, but Plain; and what needs no script has
// Said. An error of the server's is a [redis.Error]; any other means that the connection failed.
type Call struct {
	Op    wire.Op
	Keys  []string
	Modes string // to hold the keys; see wire.Mode
	Token string
	TTL   time.Duration

	// Of a lock that is one slot of several: how many there are, and which one it is,
	// from 1.
	Slots, Slot int

	Fence  int64  // Acquire: the number proposed; Raise: the one to store
	Latest int64  // Acquire, Yield: refused after this time of the node's, in microseconds; Acquire, 0: never; Plain: for the reader of the answer
	Mark   string // what the node's marker is if it has not forgotten; "": not asked

	// Acquire, Leave, Yield: who waits; see internal/script/queue.lua.
	Ticket int64
	Waiter string
	Lease  time.Duration

	Broken time.Duration // Break: for how long the node notes it

	Args []string // Choose, Merge: of the script

	Native bool // Extend, Release: without a script; see wire.NativeAnswer

	Value any
	Plain *wire.PlainAnswer  // of an acquire of plain commands
	Shown *wire.Trailer      // of an extension: what came after it
	Said  *wire.NativeAnswer // of an extension or release without a script
	Err   error
}
