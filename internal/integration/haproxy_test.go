package integration_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/port"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"
)

// A haproxy has a port for each server, speaks TLS there if it has a certificate, and cuts connections that were idle for a
// second.
type haproxy struct {
	*testing.T
	config  string
	addrs   []string
	trust   *tls.Config // of its clients; nil: no TLS
	process *redisproc.Child
}

func newHAProxy(t *testing.T, servers []*redisproc.Server, withTLS bool) *haproxy {
	t.Helper()
	h := &haproxy{T: t, config: filepath.Join(t.TempDir(), "haproxy.cfg")}
	bind := ""
	if withTLS {
		dir := t.TempDir()
		redistest.Certificate(t, dir, "proxy")
		cert, err := os.ReadFile(filepath.Join(dir, "proxy.pem"))
		if err != nil {
			t.Fatal(err)
		}
		key, err := os.ReadFile(filepath.Join(dir, "proxy.key"))
		if err != nil {
			t.Fatal(err)
		}
		both := filepath.Join(dir, "both.pem")
		if err := os.WriteFile(both, append(cert, key...), 0o600); err != nil {
			t.Fatal(err)
		}
		h.trust = &tls.Config{RootCAs: x509.NewCertPool()}
		h.trust.RootCAs.AppendCertsFromPEM(cert)
		bind = " ssl crt " + both
	}
	text := "defaults\n mode tcp\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n"
	for i, s := range servers {
		claim, err := port.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(claim.Close)
		h.addrs = append(h.addrs, claim.Addr)
		text += fmt.Sprintf("listen node%d\n bind %s%s\n server redis %s\n", i, claim.Addr, bind, s.Addr)
	}
	if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	t.Cleanup(h.kill)
	return h
}

func (h *haproxy) start() {
	h.Helper()
	var err error
	if h.process, err = redisproc.StartChild(exec.Command("haproxy", "-db", "-f", h.config)); err != nil {
		h.Fatal(err)
	}
	for _, addr := range h.addrs {
		eventually(h, 10*time.Second, "HAProxy listens at "+addr, func() bool {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	}
}

func (h *haproxy) kill() {
	h.process.Kill()
}

func (h *haproxy) clients() (all []*redis.Client) {
	for _, addr := range h.addrs {
		c := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: h.trust})
		h.Cleanup(func() { _ = c.Close() })
		all = append(all, c)
	}
	return all
}

// TestThroughHAProxy: HAProxy stands between clients and servers, with TLS in front or without. A connection that it cut
// while it was idle costs no call, and is no news. A lock that is renewed, and a waiter for it, outlive a restart of HAProxy.
// A server that HAProxy does not reach is named.
func TestThroughHAProxy(t *testing.T) {
	leaks.Check(t)
	need.Servers(t, redisproc.Available)
	if _, err := exec.LookPath("haproxy"); err != nil {
		need.Skip(t, need.WithHAProxy, err)
	}
	for _, withTLS := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", withTLS), func(t *testing.T) {
			t.Parallel() // it mostly waits
			servers := redistest.NewServers(t, 3)
			redistest.Settle(t, servers)
			proxy := newHAProxy(t, servers, withTLS)
			down := make(chan *redlock.NodeError, 100)
			opts := brief(4 * time.Second)
			opts.Hooks = &redlock.Hooks{NodeDown: func(e *redlock.NodeError) { down <- e }}
			lk := open(t, proxy.clients(), opts)
			released(t, acquired(t, lk, "a"))

			for _, s := range servers {
				eventually(t, 10*time.Second, "idle connections to "+s.Addr+" are cut", func() bool {
					return connections(t, s) == 0
				})
			}
			l := acquired(t, lk, "a", redlock.AutoRenew())
			if len(down) > 0 {
				t.Errorf("an idle connection that was cut makes the node look down: %v", <-down)
			}

			got := make(chan error, 1)
			go func() {
				next, err := lk.Acquire(t.Context(), "a")
				if err == nil {
					err = next.Release(t.Context())
				}
				got <- err
			}()
			eventually(t, 5*time.Second, "a waiter", func() bool {
				s, err := lk.Inspect(t.Context(), "a")
				return err == nil && len(s.Waiting) == 1
			})
			proxy.kill()
			eventually(t, 10*time.Second, "all nodes are down", func() bool { return len(down) == 3 })
			for range servers {
				<-down
			}
			proxy.start()
			until := l.Until()
			eventually(t, 4*time.Second, "the lock is renewed", func() bool { return l.Until().After(until) })
			if err := l.Context(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			released(t, l)
			if err := <-got; err != nil {
				t.Errorf("the waiter: %v", err)
			}

			servers[2].Kill()
			released(t, acquired(t, lk, "a")) // a lane that has nothing to send does not notice
			eventually(t, 10*time.Second, "the node is down", func() bool { return len(down) > 0 })
			if e := <-down; !strings.HasPrefix(e.Error(), proxy.addrs[2]+": ") || !strings.Contains(e.Error(), "closed the connection") {
				t.Errorf("HAProxy does not reach the server, and the node is said to be down because: %v", e)
			}
		})
	}
}
