// Package redlock is a lock over N independent Redis servers, after the Redlock
// algorithm: a lock is held when a majority of the servers has granted it and
// time is left of its TTL.
//
// # What it promises
//
// While the process runs, a majority of the nodes answers, and the nodes' clocks
// run at the speed of ours to within [Options].Drift:
//
//   - At most one [Lock] on a name is valid at any moment, across all processes,
//     and across all other clients that speak plain Redlock (SET name token NX PX
//     ttl, compare-and-delete) to the same nodes.
//   - The holder is told that its lock has ended before anyone else can have it.
//     The end of validity is a local timer; the network can only move it forward.
//   - Each lock carries a fencing token, [Lock.Fence]: a number that is larger than those of all
//     locks on the name before it, whatever clocks, pauses and lost messages do.
//   - A node that may have forgotten what it granted (restarted, emptied, promoted,
//     its clock set) has no vote until all of that has expired: see [Options].Quarantine.
//     New nodes are no different, so the first lock on them waits: see [Locker.WaitReady].
//   - To acquire and to release costs what the slowest node of the fastest
//     majority costs. A hung, slow or dead minority adds nothing.
//   - An attempt that fails, is cancelled or times out leaves nothing behind, as
//     soon as the nodes can be told. The TTL is the backstop.
//
// # What it does not promise
//
//   - That a process which is paused (by the scheduler or a debugger) stops working
//     when its lock ends. It is told when it wakes. What it writes to can refuse it:
//     that is what the fence is for.
//   - Exclusion when a node drops single keys, or its clock was set before this
//     process first reached it; or, when nodes forget, against clients that know nothing
//     of quarantines.
//
// # Which method
//
// Most callers want [Locker.Do]: it waits for the lock, renews it while a
// function runs, and cancels the function's context when the lock ends.
// [Locker.Acquire] waits and hands out the [Lock]; [Locker.TryAcquire] asks once.
//
// A lock excludes everybody else on its name. With [Shared] it is the reader's half of a
// read-write lock, with [Slots] a semaphore, with [Also] it takes in other names, and with
// [Options].Separator it is hierarchical and takes in all that lies below it. With [Reentrant]
// a call under [Lock.Context] joins the lock. With [Lock.Detach] and [Locker.Attach] a lock goes
// from one process to another.
//
// Package redlocktest is for tests of code that uses locks.
package redlock

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/nodeurl"
	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/redis/go-redis/v9"
)

// A Locker acquires locks on one set of nodes. It may be used from any number of
// goroutines. It has a goroutine and a connection for each node (eight, where the
// round trip takes a millisecond or more), and one goroutine for renewals, however
// many locks are held or waited for.
type Locker struct {
	opts     Options
	lanes    *lane.Set
	renewals *renew.Scheduler
	waiting  *waitlist.List
	rounds   sync.Pool
	closing  chan struct{}

	mu     sync.Mutex // protects closed: after it, active gets no more calls
	closed bool
	active sync.WaitGroup // calls that may still use the lanes
}

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
		if m, ok := any(client).(lane.Client); ok {
			origins[i] = origin{addr: m.Addr, model: m.Open}
			continue
		}
		c, ok := any(client).(interface{ Options() *redis.Options })
		if null, isClient := any(client).(*redis.Client); isClient && null == nil {
			return nil, fmt.Errorf("redlock: node %d: the *redis.Client is nil", i)
		}
		if !ok {
			return nil, fmt.Errorf("redlock: node %d: a %T is no client of one Redis server; give a *redis.Client for each node", i, client)
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

// Format prints the nodes' addresses and what is asked of them, whatever the verb, and no user or
// password.
func (lk *Locker) Format(f fmt.State, _ rune) {
	if lk == nil || lk.lanes == nil {
		io.WriteString(f, "<nil>")
		return
	}
	names := make([]string, len(lk.lanes.Lanes))
	for i, n := range lk.lanes.Lanes {
		names[i] = n.Name
	}
	fmt.Fprintf(f, "redlock.Locker(%d of %d nodes: %s; TTL %v)", lk.opts.Quorum, len(names), strings.Join(names, ", "), lk.opts.TTL)
}

// Close ends all waiting, sends what is left to be released, for at most twice
// Options.NodeTimeout, and leaves no goroutine and no connection. Locks that are
// held are not released: their contexts end, and the nodes keep them until
// their TTL is over.
func (lk *Locker) Close() error {
	lk.mu.Lock()
	if lk.closed {
		lk.mu.Unlock()
		return ErrClosed
	}
	lk.closed = true
	lk.mu.Unlock()
	close(lk.closing)
	lk.renewals.Close()
	lk.active.Wait() // those who wait have been told; rounds are bounded by NodeTimeout, and may have something to give back
	lk.waiting.Close()
	lk.lanes.Close(lk.opts.NodeTimeout)
	return nil
}

// nodeTimeout is how long one round of a lock with this TTL may take.
func (lk *Locker) nodeTimeout(ttl time.Duration) time.Duration {
	return min(lk.opts.NodeTimeout, ttl/2)
}

// enter lets a call use the lanes until it leaves.
func (lk *Locker) enter() error {
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if lk.closed {
		return ErrClosed
	}
	lk.active.Add(1)
	return nil
}

func (lk *Locker) leave() { lk.active.Done() }

func (lk *Locker) isClosing() bool {
	select {
	case <-lk.closing:
		return true
	default:
		return false
	}
}
