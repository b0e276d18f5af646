// Package seam is where something else can stand in for what a Locker meets: a
// model for its nodes, and a seed for what is left to chance in its process. The
// chaos harness runs the whole library on it, in virtual time, and can repeat a
// run; programs do not.
package seam

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// An Op is one step of the protocol: which script a node is to run.
type Op uint8

const (
	Acquire Op = iota
	Raise
	Extend
	Release
	Leave
	Yield
	Inspect
	Set // no step of ours: the SET NX PX of a client that is no redlock
)

func (o Op) String() string {
	return [...]string{"acquire", "raise", "extend", "release", "leave", "yield", "inspect", "set"}[o]
}

// A Call is one step at one node, with what the node says: Value is the reply of
// the step's script in internal/script, as go-redis gives it, unless there is an
// Err. An error of the server's is a [redis.Error]; any other means that the
// connection failed.
type Call struct {
	Op    Op
	Keys  []string
	Ways  string // to hold the keys; see internal/ways
	Token string
	TTL   time.Duration

	// Of a lock that is one slot of several: how many there are, and which one it is,
	// from 1.
	Slots, Slot int

	Fence  int64  // Acquire: the number proposed; Raise: the one to store; Release: proposed for whom the lock is handed to, 0: it is not to be
	Latest int64  // Acquire, Yield: refused after this time of the node's, in microseconds; Acquire, 0: never
	Mark   string // what the node's marker is if it has not forgotten; "": not asked

	// Acquire, Leave, Yield: who waits; see internal/script/queue.lua.
	Ticket int64
	Waiter string
	Lease  time.Duration
	Owner  string
	Try    int64 // the attempt that he can be handed the lock for; 0: he cannot

	Value any
	Err   error
}

// A Mark is what internal/script's join replies: the node's marker, what was there
// before, and the node's time in microseconds.
type Mark struct {
	Value, Before string
	Now           int64
}

// RunID is the part of a marker that names the server's process.
func RunID(mark string) string {
	id, _, _ := strings.Cut(mark, ":")
	return id
}

// A Hello is what a client says of itself when it joins a node.
type Hello struct {
	Marked  bool          // the node is to have a marker
	Longest time.Duration // the longest TTL that it knows of
	Time    int64         // what its clock shows, in milliseconds
}

// A Server is one connection to one node.
type Server interface {
	// Connect makes the connection, prepares the node (Join) and says how long a
	// round trip takes.
	Connect(ctx context.Context, hello Hello) (rtt time.Duration, mark Mark, err error)

	// Join sees to the node's marker, if there is to be one, and gives the node the
	// scripts, which it may have dropped: a Call's error is NOSCRIPT then.
	Join(hello Hello) (Mark, error)

	// Exec carries out the calls in their order. An error means that the
	// connection failed; those of the calls which have it, too, may have been
	// carried out or not.
	Exec(calls []Call) error

	// Hear listens to a channel, over a connection of its own, until that breaks or
	// ctx ends. It says when it has begun to, and what it hears.
	Hear(ctx context.Context, channel string, ready func(), heard func(message string)) error

	// Interrupt has the others return soon with an error, now and ever after.
	Interrupt()

	// Fork gives another connection to the same node, not connected yet.
	Fork() Server
}

// A Client is what redlock.New takes in the place of a go-redis client: one node
// that is no Redis. Open gets the time after which a node that owes a reply is to
// be given up.
type Client struct {
	redis.UniversalClient // nil

	Addr string
	Open func(patience time.Duration) Server
}

// A Host is a process as far as luck is concerned. If the Clock in a Locker's
// options is one, it is asked in the place of [Chance].
type Host interface {
	// Token is a name that nobody else has.
	Token() string

	// Jitter is a number from 0 to 1.
	Jitter() float64

	// Woke is called by a goroutine that has been waiting and goes on now, and
	// returns when the scheduler lets it: after a moment as a rule, and after
	// everything else if the process was stopped in between. Key and n tell the
	// goroutine and the occasion apart from others of its role.
	Woke(as Role, key string, n int)
}

// A Role is what a goroutine does in the library.
type Role uint8

const (
	Caller   Role = iota // waits for a round; key is the lock's token
	Alarm                // is a timer for the end of a lock; key is its token
	Strand               // works a connection; key is its name
	Renewals             // begins renewals
)

// Chance is a Host that leaves it all to chance and the runtime.
type Chance struct{}

func (Chance) Token() string          { return uuid.NewString() }
func (Chance) Jitter() float64        { return rand.Float64() }
func (Chance) Woke(Role, string, int) {}
