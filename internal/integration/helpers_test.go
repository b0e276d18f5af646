package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"
)

// settleWithin is the time for the lanes to deliver the owed releases when all nodes are well. The
// TTLs of tests that look for leftovers are longer, so that no key can be gone by expiry.
const settleWithin = 5 * time.Second

// slack is the delay that a busy machine may add to a time that the library promises.
const slack = time.Second

// patient returns options for tests that are not about time: a busy machine may keep a node from
// answering for half a second.
func patient() *redlock.Options {
	return &redlock.Options{TTL: time.Minute, NodeTimeout: 2 * time.Second}
}

// trusting returns options for tests that restart nodes, and are not about what these may have forgotten.
func trusting() *redlock.Options {
	opts := patient()
	opts.Quarantine = -1
	return opts
}

// open returns a Locker over the clients' servers, closed at cleanup.
func open(t testing.TB, clients []*redis.Client, opts *redlock.Options) *redlock.Locker {
	t.Helper()
	lk, err := redlock.New(clients, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lk.Close() })
	// The description of new nodes is not what the tests are about. Nodes that cannot vote yet are not waited
	// for.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_ = lk.WaitReady(ctx)
	return lk
}

// onServers starts n servers, and a Locker over clients with default options.
func onServers(t testing.TB, n int, opts *redlock.Options) ([]*redisproc.Server, *redlock.Locker) {
	t.Helper()
	leaks.Check(t)
	return served(t, n, opts)
}

// served is onServers without a look at what the test leaves.
func served(t testing.TB, n int, opts *redlock.Options) ([]*redisproc.Server, *redlock.Locker) {
	t.Helper()
	servers := redistest.Servers(t, n)
	return servers, open(t, redistest.Clients(t, servers), opts)
}

// besideOthers is onServers for a test that mostly waits, and whose times have room for a busy machine: it
// runs at the same time as others. leaks.Main looks for what such tests leave.
func besideOthers(t *testing.T, n int, opts *redlock.Options) ([]*redisproc.Server, *redlock.Locker) {
	t.Helper()
	t.Parallel()
	return served(t, n, opts)
}

func acquired(t testing.TB, lk *redlock.Locker, name string, options ...redlock.AcquireOption) *redlock.Lock {
	t.Helper()
	l, err := lk.TryAcquire(t.Context(), name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func released(t testing.TB, l *redlock.Lock) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// lockAgain waits, for a short time, until nodes that are well again grant a lock.
func lockAgain(t testing.TB, lk *redlock.Locker) {
	t.Helper()
	eventually(t, 2*time.Second, "a lock", func() bool {
		l, err := lk.TryAcquire(t.Context(), "lockAgain")
		return err == nil && l.Release(t.Context()) == nil
	})
}

// eventually waits until the condition holds.
func eventually(t testing.TB, within time.Duration, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// nothingLeft waits until no server has a key. All of them must be well.
func nothingLeft(t testing.TB, servers []*redisproc.Server) {
	t.Helper()
	for deadline := time.Now().Add(settleWithin); ; time.Sleep(5 * time.Millisecond) {
		keys := redistest.Keys(t, servers)
		if len(keys) < len(servers) {
			t.Fatalf("only %d of %d servers could be asked for their keys", len(keys), len(servers))
		}
		maps.DeleteFunc(keys, func(_ string, keys []string) bool { return len(keys) == 0 })
		if len(keys) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left on the nodes: %v", keys)
			return
		}
	}
}

// heldOn counts the servers on which the key has this value.
func heldOn(t testing.TB, servers []*redisproc.Server, key, token string) int {
	t.Helper()
	n := 0
	for _, s := range servers {
		if value, _ := ask(t, s, "GET", key).(string); value == token {
			n++
		}
	}
	return n
}

// ask runs a command on a server, as an operator would.
func ask(t testing.TB, s *redisproc.Server, args ...any) any {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	reply, err := c.Do(context.WithoutCancel(t.Context()), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("%v on %s: %v", args, s.Addr, err)
	}
	return reply
}

// on runs a command on each of the servers.
func on(t testing.TB, servers []*redisproc.Server, args ...any) {
	t.Helper()
	for _, s := range servers {
		ask(t, s, args...)
	}
}

func hang(t testing.TB, servers ...*redisproc.Server) {
	t.Helper()
	for _, s := range servers {
		if err := s.Hang(); err != nil {
			t.Fatal(err)
		}
	}
}

func resume(t testing.TB, servers ...*redisproc.Server) {
	t.Helper()
	for _, s := range servers {
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}

func restart(t testing.TB, servers ...*redisproc.Server) {
	t.Helper()
	for _, s := range servers {
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

func addrs(servers []*redisproc.Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr)
	}
	return all
}

// wantKind checks that err is a QuorumError of the one kind and no other.
func wantKind(t testing.TB, err, kind error) *redlock.QuorumError {
	t.Helper()
	var q *redlock.QuorumError
	if !errors.As(err, &q) {
		t.Fatalf("got %v, want a QuorumError", err)
	}
	for _, sentinel := range []error{redlock.ErrHeld, redlock.ErrNoQuorum, redlock.ErrLost} {
		if got := errors.Is(err, sentinel); got != (sentinel == kind) {
			t.Errorf("errors.Is(%v, %v) is %v", err, sentinel, got)
		}
	}
	return q
}

// wantNodes checks that the error names exactly these nodes with this outcome.
func wantNodes(t testing.TB, q *redlock.QuorumError, outcome redlock.Outcome, nodes ...string) {
	t.Helper()
	var got []string
	for _, n := range q.Nodes() {
		got = append(got, fmt.Sprint(n.Node, " ", n.Outcome))
	}
	var want []string
	for _, n := range nodes {
		want = append(want, fmt.Sprint(n, " ", outcome))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the error names %q, want %q: %v", got, want, q)
	}
}

// cycles is the number of rounds of a long loop. A full run does half of n.
func cycles(n int) int { return need.Sized(n/10, n/2, 5*n) }

// A valid is a lock that is valid until then: a lock of this library, or of another.
type valid interface{ Until() time.Time }

// A guard is the resource that locks protect. It reports two holders only if two locks are valid at
// one instant: a holder whose lock has expired may leave late, since a busy machine does not wake
// it in time, and no lock can prevent that.
type guard struct {
	mu      sync.Mutex
	holders map[valid]string
	entered map[string]int // by holder
	broken  string
}

func (g *guard) enter(l valid, who string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holders == nil {
		g.holders, g.entered = map[valid]string{}, map[string]int{}
	}
	now := time.Now()
	if !l.Until().After(now) {
		return
	}
	for other, name := range g.holders {
		if left := other.Until().Sub(now); left > 0 && g.broken == "" {
			g.broken = fmt.Sprintf("%s entered while the lock of %s was valid for another %v", who, name, left)
		}
	}
	g.holders[l] = who
	g.entered[who]++
}

// leave must be called before the release.
func (g *guard) leave(l valid) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.holders, l)
}
