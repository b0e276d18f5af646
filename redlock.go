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
//   - Each lock carries a number, [Lock.Fence], that is larger than those of all
//     locks on the name before it, whatever clocks, pauses and lost messages do.
//   - A node that may have forgotten what it granted (restarted, emptied, promoted,
//     its clock set) has no vote until that is over: see [Options].Quarantine. New
//     nodes are like that, so the first lock on them waits; [Locker.WaitReady].
//   - To acquire and to release costs what the slowest node of the fastest
//     majority costs. A hung, slow or dead minority adds nothing.
//   - An attempt that fails, is cancelled or times out leaves nothing behind, as
//     soon as the nodes can be told. The TTL is the net.
//
// # What it does not promise
//
//   - That a process which is paused (by the scheduler or a debugger) stops working
//     when its lock ends. It is told when it wakes. What it writes to can refuse it:
//     that is what the fence is for.
//   - Exclusion when a node drops single keys, or its clock was set before this
//     process had seen it; or against clients that know nothing of quarantines when
//     nodes forget.
//
// # Which verb
//
// Most callers want [Locker.Do]: it waits for the lock, renews it while a
// function runs, and cancels the function's context when the lock ends.
// [Locker.Acquire] waits and hands out the [Lock]; [Locker.TryAcquire] asks once.
//
// A lock excludes everybody else on its name. With [Shared] it is one of many readers,
// with [Slots] one of n, with [Also] it takes in other names, and with
// [Options].Separator all that lies below it. Whoever asks again under the lock's own
// context has it already. With [Lock.Detach] and [Locker.Attach] it goes from one process
// to another.
package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/nodeurl"
	"github.com/quorumlock/redlock/internal/redisnode"
	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
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
	hall     *hall
	rounds   sync.Pool
	closing  chan struct{}

	mu     sync.Mutex
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

// An origin is what a node is made from: the settings of a client, or a model.
type origin struct {
	network, addr string
	options       *redis.Options
	model         func(patience time.Duration, s lane.Session) lane.Server
}

func originOf(o *redis.Options) origin { return origin{network: o.Network, addr: o.Addr, options: o} }

// open makes the nodes and waits for them to say what they are.
func open(nodes []origin, opts *Options) (*Locker, error) {
	names := make([]string, len(nodes))
	for i, o := range nodes {
		names[i] = o.addr
		for j, other := range nodes[:i] {
			if o.network == other.network && o.addr == other.addr && o.addr != failoverAddr {
				return nil, fmt.Errorf("redlock: nodes %d and %d are both %s: each needs a server of its own", j, i, o.addr)
			}
		}
	}
	return start(names, opts, func(o *Options) func(int, lane.Session) lane.Server {
		registry := redisnode.NewRegistry(names, o.Hooks.warning)
		return func(i int, session lane.Session) lane.Server {
			if n := nodes[i]; n.model == nil {
				return redisnode.New(n.options, patience(o.NodeTimeout), func(about facts.Facts) error { return registry.Admit(i, about) }, session)
			}
			return nodes[i].model(patience(o.NodeTimeout), session)
		}
	})
}

// failoverAddr is what go-redis has for the address of a failover client, which
// asks its sentinels for one.
const failoverAddr = "FailoverClient"

// patience is how long a lane waits for a reply before it gives up the
// connection. It is longer than the callers', who do not wait with it: as long
// as the connection stands, what the node does late it does in order, and the
// release of an acquire that nobody waited for comes right after it.
func patience(nodeTimeout time.Duration) time.Duration { return max(4*nodeTimeout, time.Second) }

// start runs a Locker over the nodes of these names.
func start(names []string, opts *Options, servers func(*Options) func(int, lane.Session) lane.Server) (*Locker, error) {
	n := len(names)
	if n == 0 {
		return nil, errors.New("redlock: no nodes given")
	}
	o, err := opts.withDefaults(n)
	if err != nil {
		return nil, err
	}
	if n%2 == 0 {
		o.Hooks.warning(fmt.Errorf("redlock: %d nodes: an even number survives no more failures than %d would, and costs one more", n, n-1))
	}
	lk := &Locker{opts: o, closing: make(chan struct{})}
	tried := make(chan int, n)
	lk.lanes = lane.Open(lk.opts.laneConfig(names), names, servers(&lk.opts), tried)
	lk.renewals, lk.hall = newRenewals(lk), newHall(lk)
	if s, ok := lk.opts.host.(sim.Scales); ok {
		s.Weigh(lk.lanes.Weigh)
	}

	// Every node is asked what it is; but once a quorum has said so, the others get
	// no more than some times as long. They are checked whenever they do answer.
	begin := time.Now()
	longest := max(o.NodeTimeout, time.Second)
	limit := time.NewTimer(longest)
	defer limit.Stop()
	var unfit []error
	for asked, fit := n, 0; asked > 0; {
		select {
		case node := <-tried:
			asked--
			switch why := lk.lanes.Lanes[node].Away(); {
			case why == nil:
				if fit++; fit == o.Quorum {
					limit.Reset(min(max(4*time.Since(begin), 50*time.Millisecond), longest-time.Since(begin)))
				}
			case why.Status == wire.Unfit:
				unfit = append(unfit, fmt.Errorf("redlock: node %w", &NodeError{Node: names[node], Outcome: Outcome(why.Status), Err: why.Err}))
			}
		case <-limit.C:
			asked = 0
		}
	}
	if len(unfit) > 0 {
		lk.Close()
		return nil, errors.Join(unfit...)
	}
	return lk, nil
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
	lk.hall.close()
	lk.lanes.Close(lk.opts.NodeTimeout)
	return nil
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

// Do waits for the lock as [Locker.Acquire] does, calls fn while it is held, and
// releases it when fn returns or panics. The lock is renewed as long as fn runs;
// fn's context ends with ctx, or when the lock does, and fn should end then, too.
//
// The error is Acquire's if the lock could not be had: fn was not called. Else it
// is fn's, joined with the reason if the lock ended before fn did. That the lock
// could not be released in time is no error: the work is done, and the TTL is
// the net; Hooks.Unreleased tells.
func (lk *Locker) Do(ctx context.Context, name string, fn func(context.Context, *Lock) error, options ...AcquireOption) (err error) {
	l, err := lk.Acquire(ctx, name, append(options[:len(options):len(options)], AutoRenew())...)
	if err != nil {
		return err
	}
	defer func() {
		if lost := l.Release(ctx); errors.Is(lost, ErrLost) && !errors.Is(err, ErrLost) {
			err = errors.Join(err, lost)
		}
	}()
	return fn(l.Context(ctx), l)
}
