package memredis

import (
	"context"
	"net"
	"time"
)

// Quiet makes a dialer that does not fail, of one that does: in the place of the
// error it returns a connection on which all fails with it. For go-redis logs a
// dial that fails, to a logger that is the whole program's; and after some more it
// starts a goroutine that goes on dialling for a second after the client has been
// closed, which is a second too long for a bubble.
func Quiet(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return failed{err}, nil
		}
		return conn, nil
	}
}

// A failed is a connection that could not be made.
type failed struct{ err error }

func (c failed) Read([]byte) (int, error)       { return 0, c.err }
func (c failed) Write([]byte) (int, error)      { return 0, c.err }
func (failed) Close() error                     { return nil }
func (failed) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (failed) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (failed) SetDeadline(time.Time) error      { return nil }
func (failed) SetReadDeadline(time.Time) error  { return nil }
func (failed) SetWriteDeadline(time.Time) error { return nil }
