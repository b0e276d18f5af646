package integration_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"
)

// TestTransports: a lock goes from one Locker to another over TLS, over a Unix socket, and over what
// the caller dials, in which the library reads and writes by itself.
func TestTransports(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	web.Close()
	pool := x509.NewCertPool()
	pool.AddCert(web.Certificate())
	for name, transport := range map[string]func(t *testing.T, addr string) *redis.Options{
		"TLS": func(t *testing.T, addr string) *redis.Options {
			l, err := tls.Listen("tcp", "127.0.0.1:0", web.TLS)
			return &redis.Options{Addr: forwards(t, l, err, addr), TLSConfig: &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}}
		},
		"Unix": func(t *testing.T, addr string) *redis.Options {
			if runtime.GOOS == "windows" {
				need.Skip(t, "of Unix sockets", "this system has none")
			}
			l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
			return &redis.Options{Network: "unix", Addr: forwards(t, l, err, addr)}
		},
		"Dialer": func(t *testing.T, addr string) *redis.Options {
			return &redis.Options{Addr: "not.asked:1", Dialer: func(context.Context, string, string) (net.Conn, error) {
				conn, err := net.Dial("tcp", addr)
				return struct{ net.Conn }{conn}, err // without what a socket has besides
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaks.Check(t)
			nodes, err := memredis.Start(1)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(nodes.Close)
			client := redis.NewClient(transport(t, nodes.Nodes[0].Addr()))
			t.Cleanup(func() { client.Close() })
			first, second := open(t, []*redis.Client{client}, trusting()), open(t, []*redis.Client{client}, trusting())
			for range need.Sized(1, 3, 3) {
				l := acquired(t, first, "a")
				time.AfterFunc(50*time.Millisecond, func() { released(t, l) })
				begin := time.Now()
				next, err := second.Acquire(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took > time.Second {
					t.Errorf("it waited for %v", took)
				}
				released(t, next)
			}
		})
	}
}

// forwards passes connections on to addr.
func forwards(t *testing.T, l net.Listener, err error, addr string) string {
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr)
			if err != nil {
				near.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
					pair[1].Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

// TestRestartWhileIdle: all nodes are restarted while nobody asks for anything. That does not cost
// the next lock a vote.
func TestRestartWhileIdle(t *testing.T) {
	need.Full(t)
	t.Parallel()
	nodes, err := memredis.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	lk, err := redlock.Connect(nodes.URLs(), trusting())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lk.Close() })
	released(t, acquired(t, lk, "a"))
	for _, n := range nodes.Nodes {
		if err := n.Restart(true); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(1100 * time.Millisecond)
	l := acquired(t, lk, "a")
	released(t, l)
}
