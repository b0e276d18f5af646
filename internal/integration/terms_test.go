package integration_test

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/redis/go-redis/v9"
)

// TestDifferentTTLsOnServers: two programs with other TTLs, as `redlock run
// --ttl` has them; two of three nodes come back empty. The program with the shorter TTL does not
// count them before the longer lock is over.
func TestDifferentTTLsOnServers(t *testing.T) {
	t.Parallel()
	servers := redistest.Servers(t, 3)
	const long, short = 6 * time.Second, 500 * time.Millisecond
	opts := func(ttl time.Duration) *redlock.Options {
		return &redlock.Options{TTL: ttl, MaxTTL: long, NodeTimeout: 200 * time.Millisecond}
	}
	idle := open(t, redistest.Clients(t, servers), opts(short))
	l := acquired(t, open(t, redistest.Clients(t, servers), opts(long)), "a")
	for _, s := range servers[:2] {
		if err := s.Forget(); err != nil {
			t.Fatal(err)
		}
	}
	newcomer := open(t, redistest.Clients(t, servers), opts(short))
	contest(t, l, servers[0].Addr, idle, newcomer)
}

// TestSwappedDatabases: SWAPDB puts one database in the place of another; both are in use, and both
// have a marker of this very process. Neither has a vote for a quarantine, for clients that were
// there and for later ones.
func TestSwappedDatabases(t *testing.T) {
	t.Parallel()
	servers := redistest.NewServers(t, 1)
	opts := brief(2 * time.Second) // a busy machine needs half a second for the connections
	in := func(db int) *redlock.Locker {
		c := redis.NewClient(&redis.Options{Addr: servers[0].Addr, DB: db})
		t.Cleanup(func() { _ = c.Close() })
		return open(t, []*redis.Client{c}, opts)
	}
	zero, one := in(0), in(1)
	allVote(t, zero)
	allVote(t, one)
	l := acquired(t, zero, "a")
	ask(t, servers[0], "SWAPDB", 0, 1)
	for who, lk := range map[string]*redlock.Locker{"who was there": zero, "who comes": in(0), "who was in the other": one, "who comes to the other": in(1)} {
		_, err := lk.TryAcquire(t.Context(), "a")
		n := nodeOf(err, servers[0].Addr) // ineligible: the database that has come keeps another description
		if n == nil || n.Outcome != redlock.OutcomeQuarantined && n.Outcome != redlock.OutcomeHeld && n.Outcome != redlock.OutcomeIneligible {
			t.Errorf("%s is answered %v", who, err)
		}
	}
	contest(t, l, servers[0].Addr, zero, in(0))
}
