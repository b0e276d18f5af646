package model

import (
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// A Call is one step at one node, and the node's answer: Value is the reply of the step's script in internal/script, as
// go-redis gives it. An acquire by plain commands has Plain instead, and an extension or release without a script has
// Said. If Err is a [redis.Error], the server sent it; any other error means that the connection failed.
type Call struct {
	Op    wire.Op
	Keys  []string
	Modes string // in which the lock holds each key: see wire.Mode
	Token string
	TTL   time.Duration

	// For a semaphore: how many slots it has, and which one the lock holds, from 1.
	Slots, Slot int

	Fence  int64  // Acquire, Plain: the proposed number; Raise: the one to store
	Latest int64  // Acquire, Yield: refused after this time of the node, in microseconds; Acquire, 0: never; Plain: for the reader of the answer
	Mark   string // the node's marker as the client knows it; "": not compared

	// Acquire, Leave, Yield: the waiter, its rank, and how long it counts in the queue; see internal/script/queue.lua.
	Ticket int64
	Waiter string
	Lease  time.Duration

	Broken time.Duration // Break: for how long the token counts as broken

	Args []string // Choose, Merge: the arguments of the script

	Native bool // Extend, Release: without a script; see wire.NativeAnswer

	Value any
	Plain *wire.PlainAnswer  // to an acquire by plain commands
	Shown *wire.Trailer      // to an extension: the trailer of its message
	Said  *wire.NativeAnswer // to an extension or release without a script
	Err   error
}
