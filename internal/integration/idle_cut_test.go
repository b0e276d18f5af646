package integration_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/redis/go-redis/v9"
)

// TestIdleCut: all servers, or something on the way to them, end connections that have been idle. The first
// call after that is as good as any, whatever it is, and over whatever connections the Locker has; and nobody
// is told that a node is down.
func TestIdleCut(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	web.Close()
	pool := x509.NewCertPool()
	pool.AddCert(web.Certificate())
	kinds := map[string]func(net.Conn) net.Conn{
		"socket":  func(c net.Conn) net.Conn { return c },
		"wrapped": func(c net.Conn) net.Conn { return struct{ net.Conn }{c} },
		"TLS": func(c net.Conn) net.Conn {
			near, far := net.Pipe()
			secured := tls.Server(far, web.TLS)
			go forward(secured, c)
			go forward(c, secured)
			return tls.Client(near, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", Time: web.Certificate().NotBefore.AddDate(0, 0, 1).UTC}) // a bubble begins in 2000
		},
	}
	cuts := map[string]func(b *redistest.Bubble, dialed *forgetful){
		"reset": func(b *redistest.Bubble, _ *forgetful) {
			for i := range b.Len() {
				b.Path(i).ResetAll()
			}
		},
		"restart": func(b *redistest.Bubble, _ *forgetful) {
			for i := range b.Len() {
				b.Restart(i, true)
			}
		},
		"forgotten": func(_ *redistest.Bubble, dialed *forgetful) { dialed.forget() },
	}
	for kind, wrap := range kinds {
		for cut, do := range cuts {
			t.Run(kind+" "+cut, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					leaks.Check(t)
					b, dialed := redistest.NewBubble(t, 3), new(forgetful)
					var clients []*redis.Client
					for i := range b.Len() {
						o := b.Options(i)
						dial := o.Dialer
						o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
							c, err := dial(ctx, network, addr)
							if err != nil {
								return nil, err
							}
							return wrap(dialed.over(c)), nil
						}
						client := redis.NewClient(o)
						defer client.Close()
						clients = append(clients, client)
					}
					opts := trusting()
					opts.Hooks = &redlock.Hooks{
						NodeDown:   func(e *redlock.NodeError) { t.Errorf("down: %v", e) },
						Unreleased: func(_ *redlock.Lock, err error) { t.Errorf("unreleased: %v", err) },
					}
					lk := open(t, clients, opts)
					held := acquired(t, lk, "held")
					for what, call := range map[string]func() error{
						"TryAcquire": func() error {
							l, err := lk.TryAcquire(t.Context(), "a")
							if err == nil {
								released(t, l)
							}
							return err
						},
						"Acquire": func() error {
							l, err := lk.Acquire(t.Context(), "b")
							if err == nil {
								released(t, l)
							}
							return err
						},
						"Extend": func() error { return held.Extend(t.Context()) },
						"Inspect": func() error {
							s, err := lk.Inspect(t.Context(), "held")
							for _, n := range s.Nodes {
								if n.Err != nil {
									return n.Err
								}
							}
							return err
						},
						"Release": func() error { return acquired(t, lk, "c").Release(t.Context()) },
					} {
						time.Sleep(11 * time.Second)
						do(b, dialed)
						synctest.Wait()
						begin := time.Now()
						if err := call(); err != nil {
							t.Errorf("%s: %v", what, err)
						}
						if took := time.Since(begin); took > 500*time.Millisecond {
							t.Errorf("%s has taken %v", what, took)
						}
					}
					if err := held.Extend(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

func forward(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}

// A forgetful network may forget all connections over it, and tell nobody: what is sent over one
// of them is lost, and nothing comes.
type forgetful struct {
	mu  sync.Mutex
	all []*forgettable
}

func (f *forgetful) over(c net.Conn) net.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := &forgettable{Conn: c}
	f.all = append(f.all, n)
	return n
}

func (f *forgetful) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.all {
		n.mu.Lock()
		n.gone = true
		n.mu.Unlock()
	}
	f.all = nil
}

type forgettable struct {
	net.Conn
	mu   sync.Mutex
	gone bool
}

func (c *forgettable) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *forgettable) SyscallConn() (syscall.RawConn, error) {
	if direct, ok := c.Conn.(syscall.Conn); ok {
		return direct.SyscallConn()
	}
	return nil, os.ErrInvalid
}
