// Package contender puts every measured lock behind one small interface, a file
// for each. An adapter translates and adds nothing: what an adapter allocates
// would be charged to the library behind it, so the handles are the libraries'
// own, converted rather than wrapped.
package contender

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Locker is one process's use of a library.
type Locker interface {
	// Lock makes one attempt, without waiting for a held name.
	Lock(ctx context.Context, name string) (Lock, error)
	// Hold is Lock, and from then on the lock is extended every
	// Config.Renewal in the way the library's documentation recommends.
	Hold(ctx context.Context, name string) (Lock, error)
	// Close closes the clients; renewals still running end with it.
	Close() error
}

// A Lock is one acquisition.
type Lock interface {
	Release(ctx context.Context) error
}

// Config is the same for all contenders.
type Config struct {
	Addrs   []string      // one for each node
	TTL     time.Duration // how long a lock lasts unless extended
	Renewal time.Duration // how often Hold extends it
}

// A Contender is a library and how it is used here.
type Contender struct {
	Name   string
	Module string // whose version the report prints
	Single bool   // uses the first node only: a lock without a quorum
	Slow   bool   // a hung node holds it up for seconds, so it gets fewer iterations
	Note   string // printed beside the figures
	Open   func(Config) (Locker, error)
}

// Reference is the contender that ratios are taken against.
const Reference = "redsync"

// All returns the contenders in the order in which they run.
func All() []Contender {
	return []Contender{redsyncStock, redsyncFailFast, bsmRedislock, rueidisLock, floor, floorCommands, ours}
}

// dial gives every contender on go-redis the client that its README starts
// with: the address and nothing else.
func dial(addrs []string) []*redis.Client {
	clients := make([]*redis.Client, len(addrs))
	for i, addr := range addrs {
		clients[i] = redis.NewClient(&redis.Options{Addr: addr})
	}
	return clients
}

// Silence keeps go-redis from reporting each failed dial, which in a scenario
// with dead nodes are thousands, and take time.
func Silence() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func closeAll(clients []*redis.Client) error {
	var first error
	for _, c := range clients {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
