package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"
)

// behindProxies starts n servers, proxies in front of them, and a Locker that connects to the proxies.
func behindProxies(t *testing.T, n int, opts *redlock.Options) ([]*redisproc.Server, []*faultproxy.Proxy, *redlock.Locker) {
	t.Helper()
	leaks.Check(t)
	return proxied(t, n, opts)
}

// proxied is behindProxies without a look at what the test leaves.
func proxied(t *testing.T, n int, opts *redlock.Options) ([]*redisproc.Server, []*faultproxy.Proxy, *redlock.Locker) {
	t.Helper()
	servers := redistest.Servers(t, n)
	proxies := redistest.Proxies(t, servers)
	return servers, proxies, open(t, redistest.ProxyClients(t, proxies), opts)
}

// TestLostReplies: the nodes grant, and the replies do not arrive. The attempt's own key is not
// another holder's, so the error is never "held", and the key does not stay (A2, E1).
func TestLostReplies(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 3)
	proxies := redistest.Proxies(t, servers)
	for i := range 12 {
		lost := 1 + i%3
		lk := open(t, redistest.ProxyClients(t, proxies), patient())
		// New does not wait for the last node. Of a node that is not connected yet, the reply that is lost
		// would be one of the handshake.
		allVote(t, lk)
		var cut []string
		for _, p := range proxies[:lost] {
			p.DropReplies(1)
			cut = append(cut, p.Addr())
		}
		l, err := lk.TryAcquire(t.Context(), "a")
		switch {
		case lost == 1:
			if err != nil {
				t.Fatal(err)
			}
			released(t, l)
		default:
			// The round is lost with the second silent node; the third may have answered before or
			// not.
			for _, n := range wantKind(t, err, redlock.ErrNoQuorum).Nodes() {
				if n.Outcome != redlock.OutcomeUnreachable || !slices.Contains(cut, n.Node) {
					t.Errorf("replies of %v lost: %v", cut, n)
				}
			}
		}
		nothingLeft(t, servers)
		lockAgain(t, lk)
		_ = lk.Close()
	}
}

// A crossroads directs the next connections to a server through its proxy, or around it.
type crossroads struct {
	server  *redisproc.Server
	proxy   *faultproxy.Proxy
	around  atomic.Bool
	through int // how many connections there were through the proxy when it was cut
}

func (x *crossroads) client(t *testing.T) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: x.server.Addr, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !x.around.Load() {
			addr = x.proxy.Addr()
		}
		var d net.Dialer
		return d.DialContext(ctx, network, addr)
	}})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestDelayedRequests: requests of an attempt are delayed in the network. The lanes have given up
// these connections and use new ones when the bytes arrive after all, in the middle of the next
// lock's life. The requests can neither release nor take that lock (B1).
func TestDelayedRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		delay func(t *testing.T, lk *redlock.Locker, cut func())
	}{
		{"release", func(t *testing.T, lk *redlock.Locker, cut func()) {
			l := acquired(t, lk, "a")
			cut()
			wantKind(t, l.Release(t.Context()), redlock.ErrNoQuorum)
		}},
		{"acquire", func(t *testing.T, lk *redlock.Locker, cut func()) {
			cut()
			_, err := lk.TryAcquire(t.Context(), "a")
			wantKind(t, err, redlock.ErrNoQuorum)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.Servers(t, 3)
			proxies := redistest.Proxies(t, servers)
			var roads []*crossroads
			var clients []*redis.Client
			for i, s := range servers {
				x := &crossroads{server: s, proxy: proxies[i]}
				roads, clients = append(roads, x), append(clients, x.client(t))
			}
			lk := open(t, clients, &redlock.Options{TTL: time.Minute, NodeTimeout: 100 * time.Millisecond})
			tt.delay(t, lk, func() {
				for _, x := range roads {
					x.through = connections(t, x.server)
					x.proxy.CutRequests()
					x.around.Store(true)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			l, err := lk.Acquire(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, 5*time.Second, "all three to have the new lock", func() bool {
				if heldOn(t, servers, "a", l.Token()) == 3 {
					return true
				}
				_ = l.Extend(t.Context()) // refills
				return false
			})
			for _, x := range roads {
				before := connections(t, x.server)
				x.proxy.Heal()
				// The lane has closed the connection; the server learns that after the late request.
				eventually(t, 5*time.Second, "the late request and the end of its connection", func() bool {
					return connections(t, x.server) <= before-x.through
				})
			}
			if n := heldOn(t, servers, "a", l.Token()); n != 3 {
				t.Errorf("after the late requests %d of 3 nodes have the lock", n)
			}
			if err := l.Extend(t.Context()); err != nil {
				t.Error(err)
			}
			released(t, l)
			nothingLeft(t, servers)
		})
	}
}

// connections counts the connections of a server, without the test's own.
func connections(t *testing.T, s *redisproc.Server) int {
	t.Helper()
	return strings.Count(fmt.Sprint(ask(t, s, "CLIENT", "LIST", "TYPE", "normal")), " addr=") - 1
}

// callsOf counts how often a server has executed a command.
func callsOf(t *testing.T, s *redisproc.Server, command string) int {
	t.Helper()
	stats, _ := ask(t, s, "INFO", "commandstats").(string)
	_, rest, _ := strings.Cut(stats, "cmdstat_"+command+":calls=")
	calls, _, any := strings.Cut(rest, ",")
	if !any {
		return 0
	}
	n, err := strconv.Atoi(calls)
	if err != nil {
		t.Fatalf("%s: %v in %q", s.Addr, err, stats)
	}
	return n
}

// TestPartition: the holder is cut off from its nodes. Its extensions move nothing, it is told at
// the end of validity and not later, and no other client gets the lock before (B3).
func TestPartition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		cut  func(*faultproxy.Proxy)
	}{
		{"both ways", func(p *faultproxy.Proxy) { p.Cut() }},
		{"replies only", func(p *faultproxy.Proxy) { p.CutReplies() }}, // the nodes extend, and the holder does not know
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := &redlock.Options{TTL: 1500 * time.Millisecond, MaxTTL: time.Minute, NodeTimeout: 100 * time.Millisecond}
			t.Parallel()
			servers, proxies, lk := proxied(t, 3, opts)
			rivals := open(t, redistest.Clients(t, servers), &redlock.Options{TTL: time.Minute, NodeTimeout: time.Second})
			l, err := lk.Acquire(t.Context(), "a", redlock.AutoRenew())
			if err != nil {
				t.Fatal(err)
			}
			ctx := l.Context(t.Context())
			plain, err := lk.Acquire(t.Context(), "plain") // for which no more requests are sent
			if err != nil {
				t.Fatal(err)
			}
			ending := plain.Context(t.Context())
			first := l.Until()
			eventually(t, 5*time.Second, "a renewal", func() bool { return l.Until().After(first) })
			for _, p := range proxies {
				tt.cut(p)
			}
			// Only one extension runs at a time, so this one comes after any that was under way.
			wantKind(t, l.Extend(t.Context()), redlock.ErrNoQuorum)
			until := l.Until()

			rival, err := rivals.Acquire(t.Context(), "a")
			got := time.Now()
			if err != nil {
				t.Fatal(err)
			}
			if got.Before(until) {
				t.Errorf("a rival had the lock %v before the end of its validity", until.Sub(got))
			}
			for _, ctx := range []context.Context{ctx, ending} {
				select {
				case <-ctx.Done():
				case <-time.After(slack):
					t.Error("the holder has not been told")
				}
				if cause := context.Cause(ctx); !errors.Is(cause, redlock.ErrLost) {
					t.Errorf("the context's cause is %v", cause)
				}
			}
			if moved := l.Until().Sub(until); moved != 0 {
				t.Errorf("cut off, the end of validity has moved by %v", moved)
			}
			for _, p := range proxies {
				p.Heal()
			}
			if err := l.Release(t.Context()); !errors.Is(err, redlock.ErrLost) {
				t.Errorf("Release: %v", err)
			}
			lockAgain(t, lk)
			if n := heldOn(t, servers, "a", rival.Token()); n < 2 {
				t.Errorf("%d of 3 nodes have the rival's lock", n)
			}
			released(t, rival)
			nothingLeft(t, servers)
		})
	}
}

// TestCancelledInFlight: ctx ends at any moment of an attempt whose nodes answer one after the
// other. No key stays, and what the lanes have yet to release is not in the way of the next attempt
// (C4, C5).
func TestCancelledInFlight(t *testing.T) {
	servers, proxies, lk := behindProxies(t, 5, patient())
	for i, p := range proxies {
		p.SetDelay(time.Duration(i+1) * 2 * time.Millisecond)
	}
	won, cancelled := 0, 0
	for offset := time.Duration(0); offset < 12*time.Millisecond; offset += 100 * time.Microsecond {
		ctx, cancel := context.WithTimeout(t.Context(), offset)
		l, err := lk.TryAcquire(ctx, "a")
		switch {
		case err == nil:
			won++
			released(t, l)
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("after %v: %v", offset, err)
		case errors.Is(err, redlock.ErrHeld):
			t.Errorf("after %v, in the way of itself: %v", offset, err)
		default:
			cancelled++
		}
		cancel()
	}
	if won == 0 || cancelled == 0 {
		t.Errorf("%d attempts won and %d cancelled: this tests nothing", won, cancelled)
	}
	nothingLeft(t, servers)
}

// TestShortTTLOnSlowLink: a TTL of half a second, and 30 ms to each node and back. In virtual time,
// since NodeTimeout leaves only 20 ms for a busy machine (C10).
func TestShortTTLOnSlowLink(t *testing.T) {
	need.Full(t)
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		const ttl = 500 * time.Millisecond
		b := redistest.NewBubble(t, 5)
		for i := range b.Len() {
			b.Path(i).SetDelay(30 * time.Millisecond)
		}
		lk := open(t, b.Clients(), &redlock.Options{TTL: ttl})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l, err := lk.Acquire(ctx, "a", redlock.AutoRenew()) // New does not wait for nodes that are so far away
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // until the lanes are connected to all of them
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for range 20 {
					l := acquired(t, lk, fmt.Sprint("job", i))
					if err := l.Extend(t.Context()); err != nil {
						t.Error(err)
					}
					released(t, l)
				}
			})
		}
		all.Wait()
		if err := l.Context(t.Context()).Err(); err != nil || time.Until(l.Until()) < ttl/2 {
			t.Errorf("the lock that is renewed: %v, %v left", err, time.Until(l.Until()))
		}
		// Behind a renewal that is under way, a release would take two round trips, which is longer than it
		// waits here.
		until := l.Until()
		eventually(t, ttl, "a renewal", func() bool { return l.Until().After(until) })
		time.Sleep(10 * time.Millisecond)
		released(t, l)
		time.Sleep(time.Second)
		for i := range b.Len() {
			if keys := b.Keys(i); len(keys) > 0 {
				t.Errorf("node %d has %v", i, keys)
			}
		}
	})
}

// TestDeadlineInFlight: a wait that ends in the middle of an attempt was a wait for a holder, and
// not for nodes that are down: earlier attempts have shown that (E2).
func TestDeadlineInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		b := redistest.NewBubble(t, 3)
		for i := range b.Len() {
			b.Path(i).SetDelay(30 * time.Millisecond)
		}
		lk := open(t, b.Clients(), &redlock.Options{TTL: time.Hour, NodeTimeout: 500 * time.Millisecond})
		held := acquired(t, lk, "a")
		for offset := range 60 {
			if !need.Sample(offset, 5) {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second+time.Duration(offset)*5*time.Millisecond)
			_, err := lk.Acquire(ctx, "a")
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v hides the context's error", err)
			}
			wantKind(t, err, redlock.ErrHeld)
		}
		released(t, held)
	})
}
