// Package dial makes connections to Redis servers: over TCP, TLS, or a Unix socket.
package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/resp"
)

// A Func makes a connection: the type of redis.Options.Dialer.
type Func func(ctx context.Context, network, addr string) (net.Conn, error)

// Plain returns a Func that makes connections without TLS. timeout and the Func's ctx bound the dialing, not the connection.
func Plain(timeout time.Duration) Func {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, addr)
	}
}

// Secure returns a Func that makes connections with TLS. timeout bounds dialing and handshake together. The Func calls
// settings for each connection, since files with certificates may have been replaced, and returns its error as it is. Unless
// the settings have a ServerName, the certificate must be for the host in the address.
func Secure(timeout time.Duration, settings func() (*tls.Config, error)) Func {
	plain := Plain(timeout)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		given, err := settings()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		conn, err := plain(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s := given.Clone()
		if s.ServerName == "" {
			s.ServerName = Host(addr)
		}
		secured, err := shake(ctx, conn, s, func(ctx context.Context) (net.Conn, error) { return plain(ctx, network, addr) })
		if err != nil {
			conn.Close()
			return nil, err
		}
		return secured, nil
	}
}

// Bounded returns a Func that dials as a client with the options o does. Its connections hand on only replies within
// bounds (resp.Bounded). The client must speak RESP2.
func Bounded(o *redis.Options) Func {
	dial := o.Dialer
	if IsDefault(dial) {
		dial = Plain(o.DialTimeout)
		if settings := o.TLSConfig; settings != nil { // its error recognizes a port without TLS
			dial = Secure(o.DialTimeout, func() (*tls.Config, error) { return settings, nil })
		}
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return bounded{conn, resp.NewBounded(conn)}, nil
	}
}

type bounded struct {
	net.Conn
	replies *resp.Bounded
}

func (b bounded) Read(to []byte) (int, error) { return b.replies.Read(to) }

// IsDefault reports whether dialer is nil, or the one that go-redis gives a client without a dialer. Such dialers are
// different closures of one function, so IsDefault compares the addresses of their code.
func IsDefault(dialer func(context.Context, string, string) (net.Conn, error)) bool {
	return dialer == nil || reflect.ValueOf(dialer).Pointer() == theirs()
}

// theirs is the address of the code of go-redis's dialer.
var theirs = sync.OnceValue(func() uintptr {
	// An address, since go-redis would look up a host name.
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
	defer client.Close()
	return reflect.ValueOf(client.Options().Dialer).Pointer()
})

// Host returns the host of an address HOST:PORT, or all of addr if it has no port.
func Host(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// shake makes a TLS connection of conn, which the caller closes after an error. A Redis port without TLS takes the handshake
// for the beginning of a line, and waits for its end, which never comes, since the handshake has a NUL. So it gets three
// quarters of the time until ctx ends. If it times out, and a connection from again answers a PING, the error is ErrPlain.
func shake(ctx context.Context, conn net.Conn, settings *tls.Config, again func(context.Context) (net.Conn, error)) (net.Conn, error) {
	until, _ := ctx.Deadline()
	if err := conn.SetDeadline(time.Now().Add(time.Until(until) * 3 / 4)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	secured := tls.Client(conn, settings)
	err := secured.Handshake()
	switch {
	case err == nil && stop():
		return secured, conn.SetDeadline(time.Time{})
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded) && speaksPlain(ctx, again):
		return nil, facts.ErrPlain
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return nil, err
}

// speaksPlain reports whether a port answers a PING without TLS, be it with an error. dial connects. ctx bounds it.
func speaksPlain(ctx context.Context, dial func(context.Context) (net.Conn, error)) bool {
	conn, err := dial(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	until, _ := ctx.Deadline()
	if err := conn.SetDeadline(until); err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	first := make([]byte, 1)
	_, err = conn.Read(first)
	return err == nil && (first[0] == '-' || first[0] == '+')
}
