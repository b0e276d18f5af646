package integration_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

// A tenancy is a provider of credentials that tells of changes, as that of a managed identity does.
type tenancy struct {
	mu        sync.Mutex
	password  string
	fails     error
	listeners map[auth.CredentialsListener]bool
}

func (p *tenancy) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return nil, nil, p.fails
	}
	p.listeners[l] = true
	return auth.NewBasicCredentials("locks", p.password), func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.listeners, l)
		return nil
	}, nil
}

// change gives all that listen another password.
func (p *tenancy) change(password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.password = password
	for l := range p.listeners {
		l.OnNext(auth.NewBasicCredentials("locks", password))
	}
}

func (p *tenancy) listening() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.listeners)
}

// connectionsOf gives the ids of a user's connections to a server.
func connectionsOf(t *testing.T, s *redisproc.Server, user string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(ask(t, s, "CLIENT", "LIST").(string)) {
		if strings.Contains(line, "user="+user) {
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
			ids = append(ids, id)
		}
	}
	return ids
}

// TestStreamingCredentials: credentials of a provider that tells of changes are followed. The connections are made
// anew with the later ones before they are used again, and before the servers end those of the earlier ones, so that
// no call fails; and a lock that is held stays. Close ends the subscriptions.
func TestStreamingCredentials(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 3)
	on(t, servers, "ACL", "SETUSER", "locks", "on", ">one", "~*", "&*", "+@all")
	p := &tenancy{password: "one", listeners: make(map[auth.CredentialsListener]bool)}
	var clients []*redis.Client
	for _, s := range servers {
		c := redis.NewClient(&redis.Options{Addr: s.Addr, StreamingCredentialsProvider: p})
		defer c.Close()
		clients = append(clients, c)
	}
	opts := trusting()
	opts.Hooks = &redlock.Hooks{
		NodeDown: func(e *redlock.NodeError) { t.Errorf("down: %v", e) },
		Lost:     func(_ *redlock.Lock, why error) { t.Errorf("lost: %v", why) },
	}
	lk := open(t, clients, opts)
	held := acquired(t, lk, "held")
	for _, password := range []string{"two", "three"} {
		on(t, servers, "ACL", "SETUSER", "locks", "resetpass", ">"+password)
		var earlier [][]string
		for _, s := range servers {
			earlier = append(earlier, connectionsOf(t, s, "locks"))
		}
		p.change(password)
		released(t, acquired(t, lk, "a"))
		if err := held.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		for i, s := range servers {
			eventually(t, 2*time.Second, "a connection with the later password", func() bool {
				return slices.ContainsFunc(connectionsOf(t, s, "locks"), func(id string) bool { return !slices.Contains(earlier[i], id) })
			})
			for _, id := range earlier[i] { // further ones, which a lane has where round trips take long, and has not used since
				ask(t, s, "CLIENT", "KILL", "ID", id)
			}
		}
	}
	if n := p.listening(); n != 3 {
		t.Errorf("%d subscriptions for three nodes", n)
	}
	released(t, held)
	if err := lk.Close(); err != nil {
		t.Error(err)
	}
	if n := p.listening(); n != 0 {
		t.Errorf("%d subscriptions after Close", n)
	}
}

// TestNoCredentials: the error of a provider is that of the node, and another attempt asks it again.
func TestNoCredentials(t *testing.T) {
	leaks.Check(t)
	server := redistest.Servers(t, 1)[0]
	ask(t, server, "ACL", "SETUSER", "locks", "on", ">one", "~*", "&*", "+@all")
	p := &tenancy{password: "one", fails: errors.New("the identity has no such role"), listeners: make(map[auth.CredentialsListener]bool)}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, StreamingCredentialsProvider: p})
	defer client.Close()
	lk := open(t, []*redis.Client{client}, trusting())
	_, err := lk.TryAcquire(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "the provider of its credentials: the identity has no such role") {
		t.Error(err)
	}
	p.mu.Lock()
	p.fails = nil
	p.mu.Unlock()
	lockAgain(t, lk)
}

// TestConnMaxLifetime: a connection is replaced before the ConnMaxLifetime of the caller's client is over, which may
// be that of its credentials, and no call notices.
func TestConnMaxLifetime(t *testing.T) {
	leaks.Check(t)
	const life = 500 * time.Millisecond
	servers := redistest.Servers(t, 3)
	var clients []*redis.Client
	for _, s := range servers {
		c := redis.NewClient(&redis.Options{Addr: s.Addr, ConnMaxLifetime: life, ClientName: "mortal"})
		defer c.Close()
		clients = append(clients, c)
	}
	opts := trusting()
	opts.Hooks = &redlock.Hooks{NodeDown: func(e *redlock.NodeError) { t.Errorf("down: %v", e) }}
	lk := open(t, clients, opts)
	ids := make(map[string]bool)
	var calls atomic.Int32
	for begin := time.Now(); time.Since(begin) < 4*life; calls.Add(1) {
		released(t, acquired(t, lk, "a"))
		for line := range strings.Lines(ask(t, servers[0], "CLIENT", "LIST").(string)) {
			if strings.Contains(line, "name=mortal") {
				id, _, _ := strings.Cut(line, " ")
				ids[id] = true
			}
		}
	}
	if n := len(ids); n < 4 || n > 8 {
		t.Errorf("%d connections in %d calls over four lifetimes: %v", n, calls.Load(), ids)
	}
}

// TestUnreachableMaster: a node that is found by its sentinels has no address before they have said one. Errors and
// hooks name it by its place, so that two of them are told apart.
func TestUnreachableMaster(t *testing.T) {
	leaks.Check(t)
	good := redistest.Servers(t, 1)
	clients := redistest.Clients(t, good)
	for _, name := range []string{"one", "two"} {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: name, SentinelAddrs: []string{"127.0.0.1:1"}, MaxRetries: -1})
		defer c.Close()
		clients = append(clients, c)
	}
	var mu sync.Mutex
	down := make(map[string]int)
	opts := trusting()
	opts.Hooks = &redlock.Hooks{NodeDown: func(e *redlock.NodeError) { mu.Lock(); down[e.Node]++; mu.Unlock() }}
	lk := open(t, clients, opts)
	_, err := lk.TryAcquire(t.Context(), "a")
	wantKind(t, err, redlock.ErrNoQuorum)
	for _, name := range []string{"FailoverClient#1: ", "FailoverClient#2: "} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	eventually(t, 2*time.Second, "both to be told as down", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return down["FailoverClient#1"] == 1 && down["FailoverClient#2"] == 1
	})
}

// TestTLSToAPlainPort: a real server that speaks no TLS at this port is told by what it answers.
func TestTLSToAPlainPort(t *testing.T) {
	t.Parallel() // it waits for a handshake that the server never answers
	servers := redistest.Servers(t, 2)
	var urls []string
	for _, s := range servers {
		urls = append(urls, "rediss://"+s.Addr)
	}
	lk, err := redlock.Connect(urls, trusting())
	if err != nil {
		t.Fatal(err)
	}
	defer lk.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = lk.Acquire(ctx, "a")
	wantKind(t, err, redlock.ErrNoQuorum)
	for _, want := range []string{": unreachable: it answers a TLS handshake in plain text", "write redis:// for a port without TLS"} {
		if !strings.Contains(err.Error(), want) || ctx.Err() != nil {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
