package memredis

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// A Listener gives a Node an address on the loopback interface, for clients that know nothing of
// the node but a URL. What they send takes the node's Path, so all faults of the node reach them.
//
// It does not work in a bubble: a goroutine that waits for the network stops a bubble's clock.
type Listener struct {
	node     *Node
	listener net.Listener
	accepted sync.WaitGroup
}

// Listen makes the node reachable over TCP, until the Listener is closed.
func (n *Node) Listen() (*Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	t := &Listener{node: n, listener: l}
	t.accepted.Go(t.accept)
	return t, nil
}

// URL is the address as redis://host:port.
func (t *Listener) URL() string { return "redis://" + t.listener.Addr().String() }

// Close stops listening, and leaves no goroutine. The node's Close ends the connections.
func (t *Listener) Close() {
	_ = t.listener.Close()
	t.accepted.Wait()
}

func (t *Listener) accept() {
	for {
		conn, err := t.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // a connection that was reset while it waited, or no file descriptor is left
			time.Sleep(5 * time.Millisecond)
		default:
			t.serve(conn.(*net.TCPConn))
		}
	}
}

// serve resets the connection if the node is down.
func (t *Listener) serve(conn *net.TCPConn) {
	far, server := net.Pipe()
	if !t.node.Engine.Serve(server) {
		_ = conn.SetLinger(0)
		_, _ = conn.Close(), far.Close()
		return
	}
	t.node.Path.Join(conn, far) // closes both if the node is closed
}
