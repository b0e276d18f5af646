package memredis

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/sockerr"
	"github.com/quorumlock/redlock/internal/testbed/port"
)

// rebindFor bounds how long Restart waits for its port. While the node is down, a kernel that is told to may
// give the port to somebody's outgoing connection.
const rebindFor = 3 * time.Second

// A Cluster is a number of nodes that know nothing of each other.
type Cluster struct {
	Nodes []*TCPNode
}

// Available says why there can be no nodes here: miniredis takes a number that a script
// replies for an int, and ours, which are microseconds, need 64 bits.
func Available() error {
	if strconv.IntSize < 64 {
		return errors.New("embedded nodes need a 64-bit program: name real ones")
	}
	return nil
}

// Start starts n nodes on free ports of the loopback interface.
func Start(n int) (*Cluster, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("embedded: cannot start %d nodes", n)
	}
	c := &Cluster{}
	for range n {
		node, err := startNode()
		if err != nil {
			c.Close()
			return nil, err
		}
		c.Nodes = append(c.Nodes, node)
	}
	return c, nil
}

// URLs lists the nodes' addresses in the form that redlock.Connect takes.
func (c *Cluster) URLs() []string {
	urls := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		urls[i] = n.URL()
	}
	return urls
}

// Close kills all nodes for ever. It leaves no goroutine, and no port taken.
func (c *Cluster) Close() {
	for _, n := range c.Nodes {
		n.Kill()
		n.claim.Close()
	}
}

// A TCPNode is one Redis of a Cluster, on the loopback interface.
type TCPNode struct {
	engine *Engine
	claim  *port.Claim

	mu       sync.Mutex // one Kill or Restart at a time
	listener net.Listener
	accepted chan struct{} // closed when nobody accepts connections any more
}

func startNode() (*TCPNode, error) {
	var l net.Listener
	claim, err := port.Find(func(_ *port.Claim, listener net.Listener) error {
		l = listener
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	n := &TCPNode{engine: NewEngine(claim.Number), claim: claim}
	n.accept(l)
	return n, nil
}

// Addr is host:port. It stays the same over restarts.
func (n *TCPNode) Addr() string { return n.claim.Addr }

// URL is the address as redis://host:port.
func (n *TCPNode) URL() string { return "redis://" + n.claim.Addr }

// Keys lists the keys of the first database, also of a killed node.
func (n *TCPNode) Keys() []string { return n.engine.Keys() }

// SetInfo overrides one field of the answer to INFO, over restarts too; an empty
// value ends that.
func (n *TCPNode) SetInfo(field, value string) { n.engine.Info.Set(field, value) }

// Kill stops listening and drops all connections. Whether the data are lost is
// for Restart to say. Killing twice does no harm.
func (n *TCPNode) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kill()
}

func (n *TCPNode) kill() {
	if n.listener == nil {
		return
	}
	_ = n.listener.Close()
	<-n.accepted
	n.listener = nil
	n.engine.Stop()
}

// Restart makes the node listen on its port again, killing it first if it runs:
// with a new run_id, without loaded scripts, and with or without its data.
func (n *TCPNode) Restart(keepData bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kill()
	l, err := listenAgain(n.claim.Addr)
	if err != nil {
		return fmt.Errorf("embedded: restart %s: %w", n.claim.Addr, err)
	}
	n.engine.Start(keepData)
	n.accept(l)
	return nil
}

// accept hands connections to the engine until the listener is closed.
func (n *TCPNode) accept(l net.Listener) {
	done := make(chan struct{})
	n.listener, n.accepted = l, done
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			switch {
			case err == nil:
				n.engine.Serve(conn)
			case errors.Is(err, net.ErrClosed):
				return
			default:
				// One connection's trouble: reset while it waited, or no file
				// descriptor left for it, which a busy loop would not bring back.
				time.Sleep(5 * time.Millisecond)
			}
		}
	}()
}

func listenAgain(addr string) (net.Listener, error) {
	deadline := time.Now().Add(rebindFor)
	for {
		l, err := net.Listen("tcp", addr)
		if err == nil || !sockerr.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return l, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
