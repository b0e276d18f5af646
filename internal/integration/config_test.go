package integration_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/redis/go-redis/v9"
)

// TestUnfitServers: New rejects servers that would break a lock, with the node's name and what to change
// (F1).
func TestUnfitServers(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 3)
	special := redistest.NewServers(t, 1, "--cluster-enabled", "yes")[0]
	proxy := redistest.Proxies(t, servers[:1])[0]
	_, port, err := net.SplitHostPort(servers[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		set    func(s *redisproc.Server)
		nodes  []string
		unfit  []string // the error names one of them
		reason string
	}{
		{
			name:  "replica",
			set:   func(s *redisproc.Server) { ask(t, s, "REPLICAOF", "127.0.0.1", "1") },
			nodes: addrs(servers), unfit: []string{servers[0].Addr}, reason: "slave (INFO role) of 127.0.0.1:1",
		}, {
			name: "evicts",
			set: func(s *redisproc.Server) {
				ask(t, s, "CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
			},
			nodes: addrs(servers), unfit: []string{servers[0].Addr}, reason: "maxmemory-policy allkeys-lru",
		}, {
			name:  "cluster node",
			nodes: []string{servers[1].Addr, special.Addr, servers[2].Addr}, unfit: []string{special.Addr}, reason: "cluster_enabled",
		}, {
			name:  "two names for one server",
			nodes: []string{servers[0].Addr, "localhost:" + port, servers[2].Addr}, unfit: []string{servers[0].Addr, "localhost:" + port}, reason: "the same server as",
		}, {
			name:  "one server behind a proxy",
			nodes: []string{servers[0].Addr, proxy.Addr(), servers[2].Addr}, unfit: []string{servers[0].Addr, proxy.Addr()}, reason: "the same server as",
		}, {
			name:  "one address twice",
			nodes: []string{servers[0].Addr, servers[1].Addr, servers[0].Addr}, unfit: []string{servers[0].Addr}, reason: "nodes 0 and 2 are both",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.set != nil {
				tt.set(servers[0])
				defer restart(t, servers[0])
			}
			var urls []string
			for _, addr := range tt.nodes {
				urls = append(urls, "redis://"+addr)
			}
			// On a busy machine the unfit server may answer so late that New has stopped waiting for it,
			// since it has a quorum; then the server has no vote.
			var err error
			for try := 0; err == nil && try < 5; try++ {
				var lk *redlock.Locker
				if lk, err = redlock.Connect(urls, nil); err == nil {
					lk.Close()
				}
			}
			if err == nil {
				t.Fatal("not rejected")
			}
			named := false
			for _, addr := range tt.unfit {
				named = named || strings.Contains(err.Error(), addr)
			}
			if !named || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("%q does not name %q with %q", err, tt.unfit, tt.reason)
			}
		})
	}
}

// TestRiskySettingIsWarnedOf: a risky setting that is not unsafe is allowed, with a warning.
func TestRiskySettingIsWarnedOf(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 4)
	ask(t, servers[0], "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
	var mu sync.Mutex
	var warnings []string
	lk := open(t, redistest.Clients(t, servers), &redlock.Options{Hooks: &redlock.Hooks{Warning: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, err.Error())
	}}})
	mu.Lock()
	said := strings.Join(warnings, "\n")
	mu.Unlock()
	if len(warnings) != 2 || !strings.Contains(said, "4 nodes") || !strings.Contains(said, servers[0].Addr+": its maxmemory-policy is volatile-ttl") {
		t.Errorf("warned of %q", said)
	}
	released(t, acquired(t, lk, "a"))
}

// TestClients: a client that is not for one server is rejected, with an error that says what to pass instead.
func TestClients(t *testing.T) {
	leaks.Check(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
	defer ring.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	for name, try := range map[string]func() (*redlock.Locker, error){
		"*redis.Ring":          func() (*redlock.Locker, error) { return redlock.New([]*redis.Ring{ring}, nil) },
		"*redis.ClusterClient": func() (*redlock.Locker, error) { return redlock.New([]redis.UniversalClient{cluster}, nil) },
		"*redis.Client":        func() (*redlock.Locker, error) { return redlock.New([]*redis.Client{nil}, nil) },
		"no nodes":             func() (*redlock.Locker, error) { return redlock.New([]*redis.Client{}, nil) },
	} {
		lk, err := try()
		if err == nil {
			lk.Close()
			t.Errorf("%s: not rejected", name)
			continue
		}
		if said := err.Error(); !strings.Contains(said, name) || strings.Contains(said, "0x") || len(said) > 200 {
			t.Errorf("%s: rejected with %q", name, said)
		}
	}
}

// TestURLs: a malformed URL is rejected, and the error does not have the password.
func TestURLs(t *testing.T) {
	leaks.Check(t)
	const password = "hunter2"
	for _, url := range []string{
		"",
		"127.0.0.1:6379",
		"http://user:hunter2@127.0.0.1:6379",
		"redis://user:hunter2@127.0.0.1:6379/zero",
		"redis://user:hunter2@127.0.0.1:6379?no_such_option=1",
		"redis://user:hunter2@127.0.0.1:63x79",
		"redis://user:hunter2@[::1",
		"redis://user:hunter2%zz@127.0.0.1:6379",
		"redis://user:hunter2@127.0.0.1:6379/\x7f",
		"://user:hunter2@127.0.0.1:6379",
	} {
		lk, err := redlock.Connect([]string{"redis://127.0.0.1:1", url}, nil)
		if err == nil {
			lk.Close()
			t.Errorf("%q: not rejected", url)
			continue
		}
		if !strings.Contains(err.Error(), "node 1") {
			t.Errorf("%q: %q does not say which", url, err)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v", e, e), password) {
				t.Errorf("%q: the password is in %q", url, e)
				break
			}
		}
	}
}
