package memredis

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// rebindFor bounds how long Restart waits for its port. A port that was free
// when we were given it may, while the node is down, briefly serve somebody's
// outgoing connection.
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

// Close kills all nodes. It leaves no goroutine.
func (c *Cluster) Close() {
	for _, n := range c.Nodes {
		n.Kill()
	}
}

// A TCPNode is one Redis of a Cluster, on the loopback interface.
type TCPNode struct {
	engine *Engine
	addr   string

	mu       sync.Mutex // one Kill or Restart at a time
	listener net.Listener
	accepted chan struct{} // closed when nobody accepts connections any more
}

func startNode() (*TCPNode, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	addr := l.Addr().(*net.TCPAddr)
	n := &TCPNode{engine: NewEngine(addr.Port), addr: addr.String()}
	n.accept(l)
	return n, nil
}

// Addr is host:port. It stays the same over restarts.
func (n *TCPNode) Addr() string { return n.addr }

// URL is the address as redis://host:port.
func (n *TCPNode) URL() string { return "redis://" + n.addr }

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
	l, err := listenAgain(n.addr)
	if err != nil {
		return fmt.Errorf("embedded: restart %s: %w", n.addr, err)
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
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return l, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
