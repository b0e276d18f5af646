package redlock

import (
	"fmt"

	"github.com/quorumlock/redlock/internal/nodeurl"
	"github.com/redis/go-redis/v9"
)

// New returns a Locker over the servers that the caller's clients speak to, one
// client for each node: standalone or failover clients; Cluster and Ring are
// refused. It takes the clients' settings (address, dialer, TLS, credentials,
// database, OnConnect) and makes a connection of its own to each node, tuned for
// locking; hooks that were added to a client are not called. The clients stay
// the caller's: New does not use, change or close them.
//
// New waits for the nodes to say what they are, at most a second or
// Options.NodeTimeout, whichever is longer (to connect takes several round trips),
// and not as long for the last of them once a quorum has. It
// refuses what would break a lock: the same server twice, a replica, a cluster
// node, one that may evict locks, one whose scripts reach other processes (Redis
// before 7.0, KeyDB) or that is not supported (Dragonfly, Garnet, Kvrocks). A node that does not answer yet is no error:
// it has no vote until it does, and is checked then.
func New[C redis.UniversalClient](nodes []C, opts *Options) (*Locker, error) {
	origins := make([]origin, len(nodes))
	for i, client := range nodes {
		c, ok := any(client).(interface{ Options() *redis.Options })
		if null, isClient := any(client).(*redis.Client); isClient && null == nil {
			return nil, fmt.Errorf("redlock: node %d: the *redis.Client is nil", i)
		}
		if !ok {
			return nil, fmt.Errorf("redlock: node %d: a %T is no client of one Redis server; give a *redis.Client for each node", i, client)
		}
		if c.Options().MaxRetries < -1 { // go-redis makes no attempt at all: redismock's clients are so
			return nil, fmt.Errorf("redlock: node %d: the %T has MaxRetries %d, with which it sends nothing, so it is a mock; a Locker would not use it but connect to %s: test with package redlocktest", i, client, c.Options().MaxRetries, c.Options().Addr)
		}
		origins[i] = originOf(c.Options())
	}
	return open(origins, opts)
}

// Connect returns a Locker over the servers at these URLs, one for each node:
// redis://user:password@host:port/db, rediss:// for TLS, or
// unix://user:password@/path/to/socket?db=0. In a password, @ : / ? # and % are
// percent-encoded. Errors quote nothing of a URL. Otherwise it is like [New].
func Connect(urls []string, opts *Options) (*Locker, error) {
	origins := make([]origin, len(urls))
	for i, url := range urls {
		o, err := nodeurl.Parse(url)
		if err != nil {
			return nil, fmt.Errorf("redlock: node %d is no URL of a Redis server: %w", i, err)
		}
		client := redis.NewClient(o)
		origins[i] = originOf(client.Options()) // with go-redis's defaults filled in
		client.Close()
	}
	return open(origins, opts)
}
