package memredis

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// pipe is net.Pipe with the manners of TCP towards the client, because go-redis
// decides by the kind of an error whether to send a command again, and asks the
// socket whether a pooled connection is still good. A pipe's own errors would
// make it behave in tests as it never does elsewhere.
func pipe(server *net.TCPAddr) (client, near net.Conn) {
	a, b := net.Pipe()
	s := &pipeState{}
	return &clientConn{Conn: a, state: s, server: server}, &nearConn{Conn: b, state: s}
}

// pipeState is what the client's side of a socket would know.
type pipeState struct {
	closed atomic.Bool // by the client
	fin    atomic.Bool // by the far end
	reset  atomic.Bool // by the far end, with RST
}

// nearConn is the end that the path owns.
type nearConn struct {
	net.Conn
	state *pipeState
}

func (c *nearConn) Close() error {
	c.state.fin.Store(true)
	return c.Conn.Close()
}

// Reset closes the connection so that the client sees ECONNRESET.
func (c *nearConn) Reset() error {
	c.state.reset.Store(true)
	return c.Close()
}

// clientConn is the end that go-redis gets.
type clientConn struct {
	net.Conn
	state  *pipeState
	server *net.TCPAddr
}

func (c *clientConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.translate("read", err)
}

func (c *clientConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.translate("write", err)
}

func (c *clientConn) Close() error {
	c.state.closed.Store(true)
	return c.Conn.Close()
}

func (c *clientConn) RemoteAddr() net.Addr { return c.server }

func (c *clientConn) LocalAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(10, 0, 1, 0), Port: 40000}
}

// A socket takes a deadline as long as it is open here; a pipe refuses when the
// far end has closed.

func (c *clientConn) SetDeadline(t time.Time) error {
	return c.deadline(c.Conn.SetDeadline(t))
}

func (c *clientConn) SetReadDeadline(t time.Time) error {
	return c.deadline(c.Conn.SetReadDeadline(t))
}

func (c *clientConn) SetWriteDeadline(t time.Time) error {
	return c.deadline(c.Conn.SetWriteDeadline(t))
}

func (c *clientConn) deadline(err error) error {
	if !c.state.closed.Load() {
		return nil
	}
	return c.translate("set", err)
}

// SyscallConn is how go-redis looks whether an idle connection has been closed.
func (c *clientConn) SyscallConn() (syscall.RawConn, error) { return rawConn{c}, nil }

func (c *clientConn) translate(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case c.state.closed.Load():
		err = net.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = os.ErrDeadlineExceeded
	case c.state.reset.Load():
		err = os.NewSyscallError(op, syscall.ECONNRESET)
	case op == "write":
		err = os.NewSyscallError(op, syscall.EPIPE)
	case errors.Is(err, io.EOF):
		return io.EOF
	}
	return &net.OpError{Op: op, Net: "tcp", Addr: c.server, Err: err}
}

// rawConn answers the only question that is asked of it, which is to try a read:
// an error if the far end has gone, and otherwise nothing to read.
type rawConn struct{ c *clientConn }

func (r rawConn) Read(func(fd uintptr) bool) error {
	switch s := r.c.state; {
	case s.closed.Load():
		return net.ErrClosed
	case s.reset.Load():
		return syscall.ECONNRESET
	case s.fin.Load():
		return io.EOF
	}
	return nil
}

func (rawConn) Write(func(fd uintptr) bool) error { return errors.ErrUnsupported }
func (rawConn) Control(func(fd uintptr)) error    { return errors.ErrUnsupported }

var _ syscall.Conn = (*clientConn)(nil)
