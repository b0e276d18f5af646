package redistest

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/fresh"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// OldRedis is the environment variable that names the redis-server of a Redis before 7.0, for the tests
// that such a server is rejected.
const OldRedis = "REDLOCK_OLD_REDIS"

// OldServers starts NewServers of that version. Without OldRedis the test is skipped.
func OldServers(t testing.TB, n int, args ...string) []*redisproc.Server {
	t.Helper()
	program := os.Getenv(OldRedis)
	if program == "" {
		need.Skip(t, need.WithOldRedis, OldRedis+" does not name its redis-server")
	}
	begin := func(dir string, args ...string) (*redisproc.Server, error) {
		return redisproc.StartProgram(program, dir, args...)
	}
	return start(t, n, redisproc.Available, begin, args)
}

// Servers starts n redis-server processes, which end with the test, and can vote at once. Package need
// says when the test is skipped.
func Servers(t testing.TB, n int, args ...string) []*redisproc.Server {
	t.Helper()
	servers := NewServers(t, n, args...)
	Settle(t, servers)
	return servers
}

// NewServers starts Servers that have just been created: they cannot vote yet.
func NewServers(t testing.TB, n int, args ...string) []*redisproc.Server {
	t.Helper()
	return start(t, n, redisproc.Available, redisproc.Start, args)
}

// ClockServers starts Servers whose clocks can be set.
func ClockServers(t testing.TB, n int, args ...string) []*redisproc.Server {
	t.Helper()
	servers := start(t, n, redisproc.CanStepClock, redisproc.StartWithClock, args)
	Settle(t, servers)
	return servers
}

func start(t testing.TB, n int, available func() error, begin func(string, ...string) (*redisproc.Server, error), args []string) []*redisproc.Server {
	t.Helper()
	need.Servers(t, available)
	servers := make([]*redisproc.Server, 0, n)
	for range n {
		s, err := begin("", args...)
		if err != nil {
			t.Fatal(err) // the servers before this one have their cleanup
		}
		t.Cleanup(s.Stop)
		servers = append(servers, s)
	}
	return servers
}

// Settle gives the servers markers of servers that have been running for a long time, so that they can
// vote at once.
func Settle(t testing.TB, servers []*redisproc.Server) {
	t.Helper()
	for _, s := range servers {
		c := redis.NewClient(&redis.Options{Addr: s.Addr})
		err := fresh.Settle(context.Background(), c)
		_ = c.Close()
		if err != nil {
			t.Fatalf("%s: %v", s.Addr, err)
		}
	}
}

// Clients returns a go-redis client with default options for each server, closed at cleanup.
func Clients(t testing.TB, servers []*redisproc.Server) []*redis.Client {
	t.Helper()
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.Addr
	}
	return clients(t, addrs)
}

// ProxyClients returns such clients that connect through the proxies.
func ProxyClients(t testing.TB, proxies []*faultproxy.Proxy) []*redis.Client {
	t.Helper()
	addrs := make([]string, len(proxies))
	for i, p := range proxies {
		addrs[i] = p.Addr()
	}
	return clients(t, addrs)
}

func clients(t testing.TB, addrs []string) []*redis.Client {
	cs := make([]*redis.Client, len(addrs))
	for i, addr := range addrs {
		cs[i] = redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = cs[i].Close() })
	}
	return cs
}

// Proxies puts a healthy proxy in front of each server, closed at cleanup.
func Proxies(t testing.TB, servers []*redisproc.Server) []*faultproxy.Proxy {
	t.Helper()
	proxies := make([]*faultproxy.Proxy, len(servers))
	for i, s := range servers {
		p, err := faultproxy.Listen(s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		proxies[i] = p
	}
	return proxies
}

// Keys lists all keys by server address, sorted, except those that stay when all locks are gone. A server
// that is down or hung cannot be asked and is not in the map; one without keys is.
func Keys(t testing.TB, servers []*redisproc.Server) map[string][]string {
	t.Helper()
	keys := map[string][]string{}
	for _, s := range servers {
		if !s.Running() {
			continue
		}
		c := redis.NewClient(&redis.Options{Addr: s.Addr})
		got, err := c.Keys(context.Background(), "*").Result()
		_ = c.Close()
		if err != nil {
			t.Fatalf("keys of %s: %v", s.Addr, err)
		}
		slices.Sort(got)
		keys[s.Addr] = slices.DeleteFunc(got, script.Lasting)
	}
	return keys
}
