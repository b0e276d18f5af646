package miniarena

import (
	"bytes"
	"context"
	"net"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// A subscription is a connection that may become a subscription: it is one from when the client
// sends SUBSCRIBE.
type subscription struct {
	net.Conn
	node *node
}

// Options returns options with the dialer Dial.
func (n *node) Options() *redis.Options {
	o := n.Node.Options()
	o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return n.Dial(ctx) }
	return o
}

// Dial returns a connection that deafen can break.
func (n *node) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := n.Node.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &subscription{conn, n}, nil
}

// deafen breaks all subscriptions, as CLIENT KILL TYPE pubsub does.
func (n *node) deafen() {
	n.mu.Lock()
	ears := n.subscriptions
	n.subscriptions = nil
	n.mu.Unlock()
	for e := range ears {
		_ = e.Conn.Close()
	}
}

func (e *subscription) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("*2\r\n$9\r\nsubscribe\r\n")) {
		n := e.node
		n.mu.Lock()
		if n.subscriptions == nil {
			n.subscriptions = make(map[*subscription]struct{})
		}
		n.subscriptions[e] = struct{}{}
		n.mu.Unlock()
	}
	return e.Conn.Write(b)
}

func (e *subscription) Close() error {
	e.node.mu.Lock()
	delete(e.node.subscriptions, e)
	e.node.mu.Unlock()
	return e.Conn.Close()
}

// SyscallConn is what go-redis uses to check whether an idle connection was closed.
func (e *subscription) SyscallConn() (syscall.RawConn, error) {
	return e.Conn.(syscall.Conn).SyscallConn()
}
