package redlocktest

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

// Nodes are Redis nodes in the test's own process. They vote from the first moment, and a node that is
// restarted or wiped later is in quarantine like a real one.
//
// Nodes are counted from 0. Methods may be called from any goroutine. A call for a node that does not
// exist ends the test, as t.Fatal does.
type Nodes struct {
	t         testing.TB
	nodes     []*memredis.Node
	listeners []*memredis.Listener

	mu   sync.Mutex               // never held while waiting
	held map[*redlock.Lock]string // the locks of the Lockers made here, and their prefixes
	opts redlock.Options          // of the Locker that was made last
}

// New starts three nodes, enough for a quorum without one of them. For virtual time, call it inside of the bubble
// (package testing/synctest). The nodes, and what is made of them, end with the test.
func New(t testing.TB) *Nodes {
	t.Helper()
	return NewN(t, 3)
}

// NewN starts n nodes, as New does three.
func NewN(t testing.TB, n int) *Nodes {
	t.Helper()
	if n < 1 {
		t.Fatalf("redlocktest: %d nodes", n)
	}
	if err := memredis.Available(); err != nil {
		t.Fatalf("redlocktest: %v", err)
	}
	all := &Nodes{t: t, held: make(map[*redlock.Lock]string)}
	// For a Hold before the first Locker: the set is to have the MaxTTL of the program.
	all.opts.Quarantine = -1
	for i := range n {
		all.nodes = append(all.nodes, memredis.NewNode(i))
	}
	t.Cleanup(func() {
		for _, l := range all.listeners {
			l.Close()
		}
		for _, n := range all.nodes {
			n.Close()
		}
	})
	return all
}

// Len is the number of nodes.
func (n *Nodes) Len() int { return len(n.nodes) }

// node returns node i, or ends the test if there is none.
func (n *Nodes) node(i int) *memredis.Node {
	n.t.Helper()
	if i < 0 || i >= len(n.nodes) {
		n.t.Fatalf("redlocktest: there is no node %d: there are %d, counted from 0", i, len(n.nodes))
	}
	return n.nodes[i]
}

// Addr is the address of node i, by which errors name it: the one that Clients and Locker use.
func (n *Nodes) Addr(i int) string {
	n.t.Helper()
	return n.node(i).Addr()
}

// Keys returns the keys of locks, not of queues, at node i, with Options.Prefix, sorted, whatever state the node is in.
func (n *Nodes) Keys(i int) []string {
	n.t.Helper()
	return n.node(i).Engine.Keys()
}

// Locker returns a Locker on the nodes, with these options; nil means the defaults, as for redlock.New. Each call
// stands for another process. The Locker is closed with the test; a test that closes it itself does no harm.
func (n *Nodes) Locker(opts *redlock.Options) *redlock.Locker {
	n.t.Helper()
	var o redlock.Options
	if opts != nil {
		o = *opts
	}
	n.mu.Lock()
	n.opts = o
	n.mu.Unlock()
	return n.locker(o)
}

func (n *Nodes) locker(o redlock.Options) *redlock.Locker {
	n.t.Helper()
	replace.In(&o, replace.Parts{
		Held: func(lock any) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.held[lock.(*redlock.Lock)] = o.Prefix
		},
		Ended: func(lock any) {
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.held, lock.(*redlock.Lock))
		},
	})
	clients := n.clients()
	lk, err := redlock.New(clients, &o)
	for _, c := range clients { // a Locker has connections of its own
		_ = c.Close()
	}
	if err != nil {
		n.t.Fatalf("redlocktest: %v", err)
	}
	n.t.Cleanup(func() {
		n.calm()
		_ = lk.Close()
	})
	return lk
}

// calm ends the faults with which the nodes would make a Locker's Close wait.
func (n *Nodes) calm() {
	for _, node := range n.nodes {
		node.Path.SetDelay(0)
		node.Path.Heal()
		node.Path.Resume()
	}
}

// Clients returns a client for each node, for redlock.New or anything else. Each call returns new
// clients, as if for another process. They are closed with the test.
//
// They have default options, with two exceptions. The dialer leads to the node; if the node is down, the
// first use of the connection fails, and not the dialling, which keeps go-redis from logging it. And
// maintenance notifications are off: go-redis holds a mutex while it asks a node for them, and a goroutine
// that waits for a mutex stops a bubble's clock.
func (n *Nodes) Clients() []*redis.Client {
	clients := n.clients()
	n.t.Cleanup(func() {
		for _, c := range clients {
			_ = c.Close()
		}
	})
	return clients
}

func (n *Nodes) clients() []*redis.Client {
	clients := make([]*redis.Client, len(n.nodes))
	for i, node := range n.nodes {
		o := node.Options()
		o.Dialer = memredis.Quiet(o.Dialer)
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		clients[i] = redis.NewClient(o)
	}
	return clients
}

// URLs returns an address on the loopback interface for each node, for code that connects by itself: redlock.Connect,
// the command redlock, a program in another process. Faults reach these connections, too; a node that was killed resets
// them. It ends a test that calls it inside of a bubble, where nobody can wait for a network.
func (n *Nodes) URLs() []string {
	n.t.Helper()
	if inBubble() {
		n.t.Fatalf("redlocktest: URLs in a bubble: a goroutine that waits for the network stops the bubble's clock; use Locker or Clients")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.listeners) < len(n.nodes) {
		l, err := n.nodes[len(n.listeners)].Listen()
		if err != nil {
			n.t.Fatalf("redlocktest: %v", err)
		}
		n.listeners = append(n.listeners, l)
	}
	urls := make([]string, len(n.listeners))
	for i, l := range n.listeners {
		urls[i] = l.URL()
	}
	return urls
}

// Kill ends node i as SIGKILL does: connections break, and new ones are refused. Its data is kept for Restart.
func (n *Nodes) Kill(i int) {
	n.t.Helper()
	n.node(i).Kill()
}

// Restart starts node i with the data that it had, as a node with appendonly persistence does; keys have gone on expiring.
// If the node runs, Restart kills it first. The node does not vote until its quarantine is over (Options.Quarantine).
func (n *Nodes) Restart(i int) {
	n.t.Helper()
	n.node(i).Restart(true)
}

// RestartEmpty is [Nodes.Restart] without the data.
func (n *Nodes) RestartEmpty(i int) {
	n.t.Helper()
	n.node(i).Restart(false)
}

// Wipe deletes the data of node i while it runs: FLUSHALL. The node is in quarantine then. [Nodes.Lose]
// deletes one lock.
func (n *Nodes) Wipe(i int) {
	n.t.Helper()
	n.node(i).Engine.Mini().FlushAll()
}

// Hang stops node i as SIGSTOP does: it accepts requests, and carries them out when it is resumed.
func (n *Nodes) Hang(i int) {
	n.t.Helper()
	n.node(i).Path.Hang()
}

// Resume ends Hang.
func (n *Nodes) Resume(i int) {
	n.t.Helper()
	n.node(i).Path.Resume()
}

// Cut cuts node i off: nothing passes, not even the end of a connection.
func (n *Nodes) Cut(i int) {
	n.t.Helper()
	n.node(i).Path.Cut()
}

// Heal ends Cut. What was sent meanwhile arrives now.
func (n *Nodes) Heal(i int) {
	n.t.Helper()
	n.node(i).Path.Heal()
}

// Slow makes a round trip to node i take d longer; 0 ends that.
func (n *Nodes) Slow(i int, d time.Duration) {
	n.t.Helper()
	n.node(i).Path.SetDelay(d)
}

// Refuse makes node i answer every request with this error, as a server does that is out of memory, a
// replica or still loading: "OOM command not allowed when used memory > 'maxmemory'." An empty one ends that.
func (n *Nodes) Refuse(i int, message string) {
	n.t.Helper()
	var r *memredis.Refusal
	if message != "" {
		r = &memredis.Refusal{Error: message, Except: []string{"HELLO", "CLIENT", "INFO"}} // so that it can be connected to
	}
	n.node(i).Engine.Refuse(r)
}

// Step sets the clock of node i forward by d, or back if d is negative: its keys expire so much sooner, or later.
func (n *Nodes) Step(i int, d time.Duration) {
	n.t.Helper()
	n.node(i).Engine.Step(d)
}

// Sleep lets time pass. In a bubble (testing/synctest) no real time passes, and when Sleep returns all that was due by then
// has been done: expired keys are gone, locks renewed, holders told. Outside of a bubble it is time.Sleep.
func (n *Nodes) Sleep(d time.Duration) {
	time.Sleep(d)
	if inBubble() {
		synctest.Wait()
	}
}

// inBubble reports whether the goroutine that calls it is in a bubble. Package synctest does not tell; the
// first line of a stack does: "goroutine 7 [running, synctest bubble 1]:".
func inBubble() bool {
	text := make([]byte, 128)
	text = text[:runtime.Stack(text, false)]
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return bytes.Contains(first, []byte("synctest"))
}
