package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Proxy is a Path in front of a TCP server, with an address of its own on the
// loopback interface.
//
// A new connection is accepted by the kernel, even while the path is cut: a
// client sees a server that accepts and never answers, which is also what a
// stopped Redis looks like. Use Refuse for one that cannot be reached.
type Proxy struct {
	*Path

	target   string
	listener net.Listener
	refuse   atomic.Bool
	closing  context.Context // ends the dialling
	close    context.CancelFunc
	workers  sync.WaitGroup
}

// Listen starts a proxy for the server at target, host:port. The server need not
// be there yet.
func Listen(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{Path: NewPath(), target: target, listener: l}
	p.closing, p.close = context.WithCancel(context.Background())
	p.workers.Go(p.accept)
	return p, nil
}

// Addr is the address for clients, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Refuse resets new connections as soon as they are made, until it is called with false. The proxy keeps
// the port meanwhile, so a client sees a reset (ECONNRESET) and not a refusal.
func (p *Proxy) Refuse(refuse bool) { p.refuse.Store(refuse) }

// Close stops listening, closes all connections and waits until no goroutine is
// left. Closing twice does no harm.
func (p *Proxy) Close() {
	p.close()
	_ = p.listener.Close()
	p.Path.Close() // before waiting: connects under way give up
	p.workers.Wait()
	p.Path.Close() // a closed path accepts no connection, so this only waits
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// It was reset before it was accepted, or there is no file descriptor left,
			// which a busy loop would not change.
			sleepUntil(time.Now().Add(5*time.Millisecond), p.closing.Done())
		case p.refuse.Load():
			abort(client)
		default:
			// Not in this goroutine: a target that does not answer must not keep
			// other clients from being accepted.
			p.workers.Go(func() { p.connect(client) })
		}
	}
}

// connect resets the client if the server cannot be reached.
func (p *Proxy) connect(client net.Conn) {
	var d net.Dialer
	server, err := d.DialContext(p.closing, "tcp", p.target)
	if err != nil {
		abort(client)
		return
	}
	p.Join(client, server)
}
