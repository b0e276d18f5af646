package faultproxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/sockerr"
	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// tcp is a server with a proxy in front of it. The server's connections can be
// taken from the channel.
func tcp(t *testing.T) (p *faultproxy.Proxy, s *server, dial func() *client, ends chan net.Conn) {
	t.Helper()
	leaks.Check(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s, ends = &server{}, make(chan net.Conn, 16)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			ends <- conn
			go s.serve(conn)
		}
	}()
	p, err = faultproxy.Listen(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	dial = func() *client {
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		return newClient(t, conn)
	}
	return p, s, dial, ends
}

// resetAtOnce connects and expects to be reset, either then or when it reads.
func resetAtOnce(t *testing.T, p *faultproxy.Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		err = newClient(t, conn).broken()
	}
	if !sockerr.Is(err, syscall.ECONNRESET) {
		t.Errorf("a new connection ends with %v", err)
	}
}

// broken reads until the connection ends, and says how.
func (c *client) broken() error {
	_, err := io.Copy(io.Discard, c.r)
	return err
}

// firstEnd waits until a connection of the server has ended, and says how.
func (s *server) firstEnd(t *testing.T) error {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var err error
		s.note(func() {
			if len(s.ends) > 0 {
				err = s.ends[0]
			}
		})
		if err != nil {
			return err
		}
	}
	t.Fatal("the server's connection has not ended")
	return nil
}

// TestProxyPassesOn: over TCP, a proxy passes on and counts as a path does.
func TestProxyPassesOn(t *testing.T) {
	p, s, dial, _ := tcp(t)
	c := dial()
	c.send("a")
	c.want("a")
	p.Cut()
	c.send("b")
	p.Heal()
	c.want("b")
	s.want(t, "[a b]")
	if got, want := p.Stats(), (faultproxy.Stats{Accepted: 1, RequestBytes: 4, ReplyBytes: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestProxyDelay: over TCP, a reply comes no earlier than after the delay.
func TestProxyDelay(t *testing.T) {
	p, _, dial, _ := tcp(t)
	c := dial()
	const delay = 30 * time.Millisecond
	p.SetDelay(delay)
	start := time.Now()
	c.send("a")
	c.want("a")
	if d := time.Since(start); d < delay {
		t.Errorf("took only %v", d)
	}
}

// TestProxyResetsBothSides: whichever way a connection is reset, both the client and the server see ECONNRESET, and a
// new connection works.
func TestProxyResetsBothSides(t *testing.T) {
	for name, reset := range map[string]func(*faultproxy.Proxy, *client){
		"ResetAll":    func(p *faultproxy.Proxy, _ *client) { p.ResetAll() },
		"HealByReset": func(p *faultproxy.Proxy, _ *client) { p.Cut(); p.HealByReset() },
		"DropReplies": func(p *faultproxy.Proxy, c *client) { p.DropReplies(1); c.send("b") },
	} {
		t.Run(name, func(t *testing.T) {
			p, s, dial, _ := tcp(t)
			c := dial()
			c.send("a")
			c.want("a") // the link is made
			reset(p, c)
			if err := c.broken(); !sockerr.Is(err, syscall.ECONNRESET) {
				t.Errorf("the client sees %v", err)
			}
			if err := s.firstEnd(t); !sockerr.Is(err, syscall.ECONNRESET) {
				t.Errorf("the server sees %v", err)
			}
			again := dial()
			again.send("c")
			again.want("c")
		})
	}
}

// TestProxyRefuses: while a proxy refuses, new connections are reset at once, and those that stand go on.
func TestProxyRefuses(t *testing.T) {
	p, s, dial, _ := tcp(t)
	old := dial()
	old.send("a")
	old.want("a")
	p.Refuse(true)
	resetAtOnce(t, p)
	old.send("b")
	old.want("b")
	p.Refuse(false)
	c := dial()
	c.send("c")
	c.want("c")
	s.want(t, "[a b c]")
}

// TestProxyWithoutServer: a proxy before a port that nobody listens on resets its connections, as a dead server does.
func TestProxyWithoutServer(t *testing.T) {
	leaks.Check(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p, err := faultproxy.Listen(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	resetAtOnce(t, p)
}

// The end of a server's connection travels like a reply.
func TestProxyServerDies(t *testing.T) {
	p, _, dial, ends := tcp(t)
	c := dial()
	c.send("a")
	c.want("a")
	p.Cut()
	(<-ends).Close()
	_ = c.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if err := c.broken(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("over a cut path: %v", err)
	}
	p.Heal()
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if err := c.broken(); err != nil {
		t.Errorf("healed: %v, want the end", err)
	}
}

// TestProxyClose: a closed proxy delivers nothing that it held back, and accepts no connection. To close it twice is
// no error.
func TestProxyClose(t *testing.T) {
	p, _, dial, _ := tcp(t)
	c := dial()
	c.send("a")
	c.want("a")
	p.Cut()
	c.send("b")
	p.Close()
	p.Close()
	if got := c.receive(); got == "b" {
		t.Error("delivered over a closed proxy")
	}
	if _, err := net.Dial("tcp", p.Addr()); !sockerr.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling a closed proxy: %v", err)
	}
}
