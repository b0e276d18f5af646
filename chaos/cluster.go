package chaos

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/chaos/internal/pipenode"
	"github.com/quorumlock/redlock/internal/memredis"
	"github.com/quorumlock/redlock/internal/sim"
)

// A Cluster is a number of Redis nodes in the test's own process, for tests of
// what a program does when nodes fail and locks are lost. It can kill them, hang
// them, wipe them, cut them off, slow them down and set their clocks.
//
// Nothing in it touches the network. It works in a testing/synctest bubble, where
// a TTL of ten seconds costs none, and outside of one. Nodes are counted from 0,
// and are miniredis: they do all that redlock asks of a Redis, and much else.
//
// Its methods may be called from any goroutine. A call for a node that does not exist ends the test, as
// t.Fatal does.
type Cluster struct {
	t     testing.TB
	nodes []*pipenode.Node

	mu   sync.Mutex // never held while waiting
	ends map[*time.Timer]struct{}
	over bool
	wait sync.WaitGroup // for faults that have yet to end
}

// NewCluster starts n nodes. For virtual time, call it inside of the
// bubble. The nodes, and the clients, end with the test.
//
// A worker that must stop when its lock is lost:
//
//	func TestWorkerStopsWithItsLock(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			cluster := chaos.NewCluster(t, 3)
//			locker, err := redlock.New(cluster.Clients(), nil)
//			if err != nil {
//				t.Fatal(err)
//			}
//			defer locker.Close()
//
//			stopped := make(chan error, 1)
//			go func() {
//				stopped <- locker.Do(t.Context(), "nightly", func(ctx context.Context, _ *redlock.Lock) error {
//					return work(ctx) // it returns when ctx ends
//				})
//			}()
//			time.Sleep(time.Minute) // it works, and its lock is renewed
//			cluster.Wipe(0)
//			cluster.Wipe(1)
//			if err := <-stopped; !errors.Is(err, redlock.ErrLost) {
//				t.Errorf("the worker said %v", err)
//			}
//		})
//	}
func NewCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	if n < 1 {
		t.Fatalf("chaos: a cluster of %d nodes", n)
	}
	c := &Cluster{t: t, ends: make(map[*time.Timer]struct{})}
	for i := range n {
		c.nodes = append(c.nodes, &pipenode.Node{Node: memredis.NewNode(i), Seed: sim.Seed(1).Of(i)})
	}
	t.Cleanup(c.close)
	return c
}

func (c *Cluster) close() {
	c.mu.Lock()
	c.over = true
	for end := range c.ends {
		if end.Stop() {
			c.wait.Done()
		}
	}
	c.mu.Unlock()
	c.wait.Wait()
	for _, n := range c.nodes {
		n.Close()
	}
}

// Len is the number of nodes.
func (c *Cluster) Len() int { return len(c.nodes) }

// node returns node i, or ends the test if there is none.
func (c *Cluster) node(i int) *pipenode.Node {
	c.t.Helper()
	if i < 0 || i >= len(c.nodes) {
		c.t.Fatalf("chaos: there is no node %d: the cluster has %d, counted from 0", i, len(c.nodes))
	}
	return c.nodes[i]
}

// Addr is the address of node i, by which errors name it.
func (c *Cluster) Addr(i int) string {
	c.t.Helper()
	return c.node(i).Addr()
}

// Clients returns a client for each node, for redlock.New or anything else. Each call returns new
// clients, as if for another process. They are closed with the test.
//
// They have default options, with two exceptions. The dialer leads to the node; if the node is down, the
// first use of the connection fails, and not the dialling, which keeps go-redis from logging it. And
// maintenance notifications are off: go-redis holds a mutex while it asks a node for them, and a goroutine
// that waits for a mutex stops a bubble's clock.
func (c *Cluster) Clients() []*redis.Client {
	clients := make([]*redis.Client, len(c.nodes))
	for i, n := range c.nodes {
		o := n.Options()
		o.Dialer = memredis.Quiet(o.Dialer)
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		client := redis.NewClient(o)
		c.t.Cleanup(func() { _ = client.Close() })
		clients[i] = client
	}
	return clients
}

// Keys lists the keys of node i, sorted, whatever state it is in.
func (c *Cluster) Keys(i int) []string {
	c.t.Helper()
	return c.node(i).Engine.Keys()
}

// Kill ends node i as SIGKILL does: connections break, and new ones are refused. Its data stays until it is
// restarted.
func (c *Cluster) Kill(i int) {
	c.t.Helper()
	c.node(i).Kill()
}

// Restart starts node i with the data that it had, as a node with appendonly persistence does; keys have
// gone on expiring. A node that runs is killed first.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.node(i).Restart(true)
}

// RestartEmpty starts node i without its data. A node that runs is killed first.
func (c *Cluster) RestartEmpty(i int) {
	c.t.Helper()
	c.node(i).Restart(false)
}

// Wipe deletes the data of node i while it runs: FLUSHALL.
func (c *Cluster) Wipe(i int) {
	c.t.Helper()
	c.node(i).Engine.Mini().FlushAll()
}

// Hang stops node i as SIGSTOP does: it accepts requests, and carries them out when it is resumed.
func (c *Cluster) Hang(i int) {
	c.t.Helper()
	c.node(i).Path.Hang()
}

// Resume ends Hang.
func (c *Cluster) Resume(i int) {
	c.t.Helper()
	c.node(i).Path.Resume()
}

// Cut cuts node i off: nothing passes, not even the end of a connection.
func (c *Cluster) Cut(i int) {
	c.t.Helper()
	c.node(i).Path.Cut()
}

// Heal ends Cut. What was sent meanwhile arrives now.
func (c *Cluster) Heal(i int) {
	c.t.Helper()
	c.node(i).Path.Heal()
}

// Slow makes a round trip to node i take d longer; 0 ends that.
func (c *Cluster) Slow(i int, d time.Duration) {
	c.t.Helper()
	c.node(i).Path.SetDelay(d)
}

// Step sets the clock of node i forward by d, or back: its keys expire so much
// sooner, or later.
func (c *Cluster) Step(i int, d time.Duration) {
	c.t.Helper()
	c.node(i).Engine.Step(d)
}

// Inject injects a fault at a node now, whatever its At says, and returns: it
// ends by itself when its time is over. The keys are for [Foreign].
func (c *Cluster) Inject(f Fault, keys ...string) {
	c.t.Helper()
	n := c.node(f.Node)
	if !n.Inject(f, true, keys) {
		c.t.Fatalf("chaos: %q is no fault of a node", f.Kind)
	}
	if f.For <= 0 {
		n.Inject(f, false, keys)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	var end *time.Timer
	c.wait.Add(1)
	end = time.AfterFunc(f.For, func() {
		defer c.wait.Done()
		c.mu.Lock()
		delete(c.ends, end)
		c.mu.Unlock()
		n.Inject(f, false, keys)
	})
	c.ends[end] = struct{}{}
}
