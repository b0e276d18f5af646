package memredis

import (
	"context"
	"net"
	"os"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
)

// A Node is an engine at the far end of in-memory connections, with the network (internal/testbed/faultproxy)
// before it.
type Node struct {
	Engine *Engine
	Path   *faultproxy.Path

	addr *net.TCPAddr
	turn chan struct{} // one Kill or Restart at a time; a mutex would stop a bubble's clock
}

// NewNode starts the i-th node of a set, without data. In a bubble it has to be
// called, and closed, inside.
func NewNode(i int) *Node {
	addr := &net.TCPAddr{IP: net.IPv4(10, 0, byte(i/250), byte(i%250+1)), Port: 6379}
	return &Node{
		Engine: NewEngine(addr.Port),
		Path:   faultproxy.NewPath(),
		addr:   addr,
		turn:   make(chan struct{}, 1),
	}
}

// Close ends the node and all its connections, and leaves no goroutine. The node
// cannot be started again.
func (n *Node) Close() {
	n.Path.Close()
	n.take(n.Engine.Stop)
}

func (n *Node) take(turn func()) {
	n.turn <- struct{}{}
	defer func() { <-n.turn }()
	turn()
}

// Addr is the node's address as clients know it: an IP, for go-redis looks up a
// name, and does so outside of the bubble.
func (n *Node) Addr() string { return n.addr.String() }

// Options are stock, but for the dialer that leads to the node.
func (n *Node) Options() *redis.Options {
	return &redis.Options{
		Addr:   n.Addr(),
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return n.Dial(ctx) },
	}
}

// Kill ends the node like SIGKILL: connections break, and new ones are refused.
// Its data are there until Restart says otherwise.
func (n *Node) Kill() { n.take(n.kill) }

func (n *Node) kill() {
	n.Engine.Stop()
	// What a hung process had not read dies with it; the next one is not hung.
	n.Path.Resume()
}

// Restart starts the node again, with a new run_id and no scripts, killing it
// first if it runs.
func (n *Node) Restart(keepData bool) {
	n.take(func() {
		n.kill()
		n.Engine.Start(keepData)
	})
}

// Dial does what connecting does: it takes a round trip, hangs while the node is
// cut off, and fails when nobody listens. The connection is a [syscall.Conn], as
// go-redis wants it.
func (n *Node) Dial(ctx context.Context) (net.Conn, error) {
	if err := n.Path.Handshake(ctx); err != nil {
		return nil, n.DialError(err)
	}
	client, near := pipe(n.addr)
	far, server := net.Pipe()
	// Served first: a node that is down must not leave a connection behind.
	if !n.Engine.Serve(server) || !n.Path.Join(near, far) {
		_, _ = near.Close(), far.Close()
		return nil, n.DialError(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	return client, nil
}

// DialError is err as net.Dial would return it.
func (n *Node) DialError(err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: n.addr, Err: err}
}
