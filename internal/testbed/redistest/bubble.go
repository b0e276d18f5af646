package redistest

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

// A Bubble is a number of Redis nodes for use inside [testing/synctest]: the real
// go-redis over pipes to miniredis, with faults, in virtual time. Nothing in it
// touches the network, and a wait of ten seconds takes none.
//
// go-redis has two traps here. It holds the mutex of a PubSub while it reconnects: a second goroutine that
// calls Close, Ping or Subscribe meanwhile waits for a mutex, which stops the bubble's clock, and with it
// the timeout that would end the reconnecting; the test then hangs. So let one goroutine receive, with
// timeouts, and close the PubSub itself; PubSub.Channel would start a second one. And go-redis resolves
// the name in its address outside of the bubble, so Options has an IP.
type Bubble struct {
	nodes []*memredis.Node
	t     testing.TB
}

// NewBubble starts n nodes. It must be called inside the bubble; the test's
// cleanup stops them, after the clients that were made later.
func NewBubble(t testing.TB, n int) *Bubble {
	t.Helper()
	b := &Bubble{t: t}
	for i := range n {
		b.nodes = append(b.nodes, memredis.NewNode(i))
	}
	t.Cleanup(func() {
		for _, n := range b.nodes {
			n.Close()
		}
	})
	return b
}

// Len is the number of nodes.
func (b *Bubble) Len() int { return len(b.nodes) }

// Addr is the address of node i as clients know it.
func (b *Bubble) Addr(i int) string { return b.nodes[i].Addr() }

// Options are the defaults, except for the dialer, which leads to node i.
func (b *Bubble) Options(i int) *redis.Options { return b.nodes[i].Options() }

// Client returns a client of node i with default options, closed at cleanup.
func (b *Bubble) Client(i int) *redis.Client {
	c := redis.NewClient(b.Options(i))
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Clients returns one such client for each node.
func (b *Bubble) Clients() []*redis.Client {
	clients := make([]*redis.Client, len(b.nodes))
	for i := range clients {
		clients[i] = b.Client(i)
	}
	return clients
}

// HaveDelex gives node i the DELEX of a newer server. It must be called before a client connects.
func (b *Bubble) HaveDelex(i int) { b.nodes[i].Engine.HaveDelex() }

// Keys lists the keys of node i, sorted, whatever state it is in.
func (b *Bubble) Keys(i int) []string { return b.nodes[i].Engine.Keys() }

// Mini is the miniredis of node i, for a test that looks at values. It is the same one over all restarts.
// Its Close and Restart must not be called.
func (b *Bubble) Mini(i int) *miniredis.Miniredis { return b.nodes[i].Engine.Mini() }

// SetInfo overrides a field of node i's answer to INFO; an empty value ends that.
func (b *Bubble) SetInfo(i int, field, value string) { b.nodes[i].Engine.Info.Set(field, value) }

// Kill ends node i like SIGKILL: connections break, and new ones are refused.
// Its data are there until Restart says otherwise.
func (b *Bubble) Kill(i int) { b.nodes[i].Kill() }

// Restart starts node i again, with a new run_id and no scripts, killing it first
// if it runs.
func (b *Bubble) Restart(i int, keepData bool) { b.nodes[i].Restart(keepData) }

// Hang stops node i like SIGSTOP: it accepts connections and requests, and
// executes none before Resume, but then all.
func (b *Bubble) Hang(i int) { b.nodes[i].Path.Hang() }

// Resume ends Hang.
func (b *Bubble) Resume(i int) { b.nodes[i].Path.Resume() }

// Step sets the clock of node i forward by d, or back: its keys expire so much earlier, or later.
func (b *Bubble) Step(i int, d time.Duration) { b.nodes[i].Engine.Step(d) }

// Path is the network of node i, for delays, cuts, resets and lost replies.
func (b *Bubble) Path(i int) *faultproxy.Path { return b.nodes[i].Path }
