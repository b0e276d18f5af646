package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/redis/go-redis/v9"
)

// TestReadOnly: two of three servers become replicas while the Locker runs. The error names them, their keys
// are released once they take writes again, and a lane that has to connect to a replica rejects it.
func TestReadOnly(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
	l := acquired(t, lk, "held")
	onAllNodes(t, lk, l)
	on(t, servers[:2], "REPLICAOF", "127.0.0.1", "1")

	_, err := lk.TryAcquire(t.Context(), "a")
	wantNodes(t, wantKind(t, err, redlock.ErrNoQuorum), redlock.OutcomeReadOnly, addrs(servers[:2])...)
	wantKind(t, l.Release(t.Context()), redlock.ErrNoQuorum)

	on(t, servers[:2], "CLIENT", "KILL", "TYPE", "normal")
	eventually(t, 2*time.Second, "two unfit nodes", func() bool {
		_, err := lk.TryAcquire(t.Context(), "a")
		return strings.Count(err.Error(), redlock.OutcomeIneligible.String()) == 2
	})
	on(t, servers[:2], "REPLICAOF", "NO", "ONE")
	nothingLeft(t, servers)
	lockAgain(t, lk)
}

// onAllNodes waits until all nodes vote, and have a lock. A quorum is enough to acquire the first lock on new nodes; the others
// may be told the description of their set at that moment, and have not been asked for the lock yet.
func onAllNodes(t *testing.T, lk *redlock.Locker, l *redlock.Lock) {
	t.Helper()
	eventually(t, 2*time.Second, "the lock is on all nodes", func() bool {
		st, err := lk.Inspect(t.Context(), l.Name())
		return err == nil && !slices.ContainsFunc(st.Nodes, func(n redlock.NodeStatus) bool { return n.Err != nil || n.Token != l.Token() })
	})
}

// TestOutOfMemory: a full server takes no new lock, and the error names it; a lock that it has is extended
// and released as usual.
func TestOutOfMemory(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
	l := acquired(t, lk, "held")
	on(t, servers[:2], "CONFIG", "SET", "maxmemory", "1")

	_, err := lk.TryAcquire(t.Context(), "a")
	wantNodes(t, wantKind(t, err, redlock.ErrNoQuorum), redlock.OutcomeOutOfMemory, addrs(servers[:2])...)
	if err := l.Extend(t.Context()); err != nil {
		t.Error(err)
	}
	released(t, l)
	nothingLeft(t, servers)
	on(t, servers[:2], "CONFIG", "SET", "maxmemory", "0")
	released(t, acquired(t, lk, "a"))
}

// TestDenied: a missing or wrong password is reported as such, and the error does not have the password.
func TestDenied(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 3)
	on(t, servers, "CONFIG", "SET", "requirepass", "right")
	for _, tt := range []struct{ password, says string }{
		{"", "NOAUTH"},
		{"wrong-one", "WRONGPASS"},
	} {
		t.Run(tt.says, func(t *testing.T) {
			var clients []*redis.Client
			for _, s := range servers {
				c := redis.NewClient(&redis.Options{Addr: s.Addr, Password: tt.password})
				t.Cleanup(func() { _ = c.Close() })
				clients = append(clients, c)
			}
			lk := open(t, clients, nil)
			_, err := lk.TryAcquire(t.Context(), "a")
			q := wantKind(t, err, redlock.ErrNoQuorum)
			for _, n := range q.Nodes() {
				if n.Outcome != redlock.OutcomeDenied || !strings.Contains(n.Error(), tt.says) {
					t.Errorf("%v, want it denied with %s", n, tt.says)
				}
			}
			if strings.Contains(err.Error(), "wrong-one") {
				t.Errorf("the password is in %v", err)
			}
		})
	}
	var urls []string
	for _, s := range servers {
		urls = append(urls, "redis://:right@"+s.Addr)
	}
	lk, err := redlock.Connect(urls, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lk.Close()
	released(t, acquired(t, lk, "a"))
}

// TestDeniedWithinScripts: if an ACL lacks a command or a key that a script needs, the outcome is denied, and
// not just failed, whatever the server's words for it are.
func TestDeniedWithinScripts(t *testing.T) {
	for _, acl := range [][]any{{"-@write"}, {"-set"}, {"resetkeys", "~redlock:*"}} {
		t.Run(fmt.Sprint(acl...), func(t *testing.T) {
			servers, lk := onServers(t, 3, trusting())
			released(t, acquired(t, lk, "a"))
			nothingLeft(t, servers) // or a node could say that the lock is held
			on(t, servers, append([]any{"ACL", "SETUSER", "default"}, acl...)...)
			_, err := lk.TryAcquire(t.Context(), "a")
			for _, n := range wantKind(t, err, redlock.ErrNoQuorum).Nodes() {
				if n.Outcome != redlock.OutcomeDenied {
					t.Errorf("%v, want it denied", n)
				}
			}
			on(t, servers, "ACL", "SETUSER", "default", "+@all", "allkeys")
			nothingLeft(t, servers)
		})
	}
}

// TestForeignKey: a key that is no lock stays for ever, so Acquire does not wait for it; the error says what it
// is and where.
func TestForeignKey(t *testing.T) {
	servers, lk := onServers(t, 5, patient())
	for _, tt := range []struct {
		name    string
		command []any
		says    string
	}{
		{"a list", []any{"LPUSH", "a", "x"}, "WRONGTYPE"},
		{"no TTL", []any{"SET", "a", "x"}, "no TTL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			on(t, servers[:3], tt.command...)
			value := ask(t, servers[0], "DUMP", "a")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := lk.Acquire(ctx, "a")
			if ctx.Err() != nil {
				t.Error("it was waited for")
			}
			wantNodes(t, wantKind(t, err, redlock.ErrNoQuorum), redlock.OutcomeNotALock, addrs(servers[:3])...)
			if !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("%v does not say %s", err, tt.says)
			}
			for _, s := range servers[:3] {
				if now := ask(t, s, "DUMP", "a"); now != value || ask(t, s, "PTTL", "a") != int64(-1) {
					t.Errorf("%s has changed it: %q, %q before", s.Addr, now, value)
				}
			}
			nothingLeft(t, servers[3:])
			on(t, servers[:3], "DEL", "a")
			released(t, acquired(t, lk, "a"))
		})
	}
}

// TestScriptFlush: servers forget the scripts between two steps, and in the middle of the traffic;
// that costs no vote and leaves no key.
func TestScriptFlush(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
	for range 20 {
		on(t, servers, "SCRIPT", "FLUSH")
		l := acquired(t, lk, "a")
		on(t, servers, "SCRIPT", "FLUSH")
		if err := l.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		on(t, servers, "SCRIPT", "FLUSH")
		released(t, l)
	}
	nothingLeft(t, servers)

	admins := redistest.Clients(t, servers)
	extend := func(l *redlock.Lock) error { return l.Extend(t.Context()) }
	traffic(t, lk, extend, func(busy func() bool) {
		for busy() {
			for _, c := range admins {
				if err := c.ScriptFlush(t.Context()).Err(); err != nil {
					t.Error(err)
				}
			}
			through(t, servers, lk)
		}
	})
	nothingLeft(t, servers)
}

// traffic makes eight workers acquire and release locks of their own for a second and a half, with every other
// operation in between. Meanwhile disturb runs. No operation may fail.
func traffic(t *testing.T, lk *redlock.Locker, between func(*redlock.Lock) error, disturb func(busy func() bool)) {
	t.Helper()
	stop := time.Now().Add(1500 * time.Millisecond)
	busy := func() bool { return time.Now().Before(stop) && !t.Failed() }
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for busy() {
				l, err := lk.TryAcquire(t.Context(), fmt.Sprint("job", i))
				if err != nil {
					t.Error(err)
					return
				}
				if between != nil {
					if err := between(l); err != nil {
						t.Error(err)
					}
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	disturb(busy)
	all.Wait()
}

// through waits until all lanes have done what was in them, so that every disturbed round ends before the next
// disturbance. A node that has dropped the scripts refuses the release of the lock before, and then, in the same
// batch, the acquire, which is by plain commands and not sent again: an extension puts the lock there.
func through(t *testing.T, servers []*redisproc.Server, lk *redlock.Locker) {
	t.Helper()
	l := acquired(t, lk, "through")
	eventually(t, 5*time.Second, "all lanes to be through", func() bool {
		if heldOn(t, servers, "through", l.Token()) == len(servers) {
			return true
		}
		if err := l.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		return false
	})
	released(t, l)
}

// TestClientKill: the lanes' connections are killed, one after another as they
// come back, under traffic. A node of five that is away for a moment costs no
// lock, ends none that is renewed, and keeps no key.
func TestClientKill(t *testing.T) {
	servers, lk := onServers(t, 5, patient())
	admins := redistest.Clients(t, servers)
	for _, c := range admins {
		c.Ping(t.Context()) // the connection that survives
	}
	long := acquired(t, lk, "long", redlock.AutoRenew(), redlock.TTL(6*time.Second))
	alive := long.Context(t.Context())
	kills := 0
	traffic(t, lk, nil, func(busy func() bool) {
		for i := 0; busy(); i = (i + 1) % len(servers) {
			if err := admins[i].Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err(); err != nil {
				t.Error(err)
				return
			}
			kills++
			eventually(t, 5*time.Second, "the lane's connection to be made anew", func() bool {
				clients := admins[i].Do(t.Context(), "CLIENT", "LIST", "TYPE", "normal").Val()
				return strings.Count(fmt.Sprint(clients), " addr=") > 1
			})
			through(t, servers, lk)
		}
	})
	t.Logf("%d connections killed", kills)
	if alive.Err() != nil {
		t.Error(context.Cause(alive))
	}
	released(t, long)
	nothingLeft(t, servers)
}

// TestTooManyClients: the error names servers that accept no further connection, and they vote
// again when they have room. Such a server answers the handshake with an error and closes the
// connection; go-redis passes on one or the other.
func TestTooManyClients(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
	released(t, acquired(t, lk, "a"))
	admins := redistest.Clients(t, servers[:2])
	for _, c := range admins {
		if err := c.ConfigSet(t.Context(), "maxclients", "1").Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 3*time.Second, "two nodes that accept no client", func() bool {
		_, err := lk.TryAcquire(t.Context(), "a")
		q := wantKind(t, err, redlock.ErrNoQuorum)
		busy := 0
		for _, n := range q.Nodes() {
			if (n.Outcome == redlock.OutcomeBusy || n.Outcome == redlock.OutcomeUnreachable) && (n.Node == servers[0].Addr || n.Node == servers[1].Addr) {
				busy++
			}
		}
		return busy == 2
	})
	for _, c := range admins {
		if err := c.ConfigSet(t.Context(), "maxclients", "1000").Err(); err != nil {
			t.Fatal(err)
		}
	}
	lockAgain(t, lk)
	nothingLeft(t, servers)
}

// TestLockWhoseKeysWereDeletedIsLost: keys of a held lock are deleted on three of five servers, and in between a
// rival acquires and releases the lock. The holder must not be told that it has held the lock
// throughout, even if the name is free by then (B4).
func TestLockWhoseKeysWereDeletedIsLost(t *testing.T) {
	servers, lk := onServers(t, 5, patient())
	rival := open(t, redistest.Clients(t, servers), patient())
	l := acquired(t, lk, "a")
	ctx := l.Context(t.Context())
	eventually(t, 2*time.Second, "all five to have the key", func() bool { return heldOn(t, servers, "a", l.Token()) == 5 })
	on(t, servers[:3], "DEL", "a")
	released(t, acquired(t, rival, "a"))
	wantKind(t, l.Extend(t.Context()), redlock.ErrLost)
	if cause := context.Cause(ctx); !errors.Is(cause, redlock.ErrLost) {
		t.Errorf("the context's cause is %v", cause)
	}
	if err := l.Release(t.Context()); !errors.Is(err, redlock.ErrLost) {
		t.Errorf("Release: %v", err)
	}
	nothingLeft(t, servers)
}
