package client

import (
	"context"
	"time"

	"github.com/quorumlock/redlock"
)

// A Process is where one client lives.
type Process interface {
	Locker(*redlock.Options) (*redlock.Locker, error)

	// Token is a new one, its name, a dot and the number of it.
	Token() string

	// Addrs lists the addresses of all nodes. Give says which of them its Lockers are given from then on;
	// before, it is all.
	Addrs() []string
	Give(addrs []string)

	// Plain returns the nodes for a client of another library.
	Plain() []PlainNode

	// Foreign returns the nodes for another such client, which waits for an answer for this long.
	Foreign(patience time.Duration) []ForeignNode

	// Pass returns when a worker's n-th step may go on: at any point of a program
	// the process may be held up.
	Pass(worker, n int)

	// Hold stops the process for some time, or suspends its machine.
	Hold(d time.Duration, machine bool)

	// Skew sets its clock forward; real converts an instant of its clock to the right time.
	Skew(d time.Duration)
	Real(t time.Time) time.Time

	// Lanes gives the number of requests that its Locker keeps for each node.
	Lanes() []int

	// Holders looks for a token under a key: how many nodes have it, and how many do not answer.
	Holders(key, token string) (has, silent int)

	// Crash ends it: no message leaves it or reaches it any more.
	Crash()
}

// A PlainNode is a node as the Redlock page's own algorithm uses it.
type PlainNode interface {
	SetNX(ctx context.Context, key, token string, ttl time.Duration) (bool, error)
	CompareAndDelete(ctx context.Context, key, token string) error
}

// A ForeignNode is a node as a client uses it that also extends its locks.
type ForeignNode interface {
	PlainNode
	CompareAndExpire(ctx context.Context, key, token string, ttl time.Duration) (had bool, err error)
}
