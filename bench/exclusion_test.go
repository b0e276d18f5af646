package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/fresh"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"
)

// The promise that locks of this library exclude those of every other client of plain Redlock is
// tested here, where the other client is required anyway.

// bothOn starts servers, with a Locker of each library over the same nodes.
func bothOn(t *testing.T) (ours *redlock.Locker, theirs *redsync.Redsync, clients []*redis.Client) {
	t.Helper()
	_, clients = settledServers(t, 3)
	var pools []redsyncredis.Pool
	for _, c := range clients {
		pools = append(pools, goredis.NewPool(c))
	}
	ours, err := redlock.New(clients, &redlock.Options{TTL: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	return ours, redsync.New(pools...), clients
}

// settledServers starts redis-servers that can vote, with clients with default options.
func settledServers(t *testing.T, n int, args ...string) (servers []*redisproc.Server, clients []*redis.Client) {
	t.Helper()
	need.Servers(t, redisproc.Available)
	for range n {
		s, err := redisproc.Start("", args...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		c := redis.NewClient(&redis.Options{Addr: s.Addr})
		t.Cleanup(func() { _ = c.Close() })
		if err := fresh.Settle(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		servers, clients = append(servers, s), append(clients, c)
	}
	return servers, clients
}

// values lists what the nodes have under a key, with how many of them have it.
func values(t *testing.T, clients []*redis.Client, key string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, c := range clients {
		switch v, err := c.Get(context.WithoutCancel(t.Context()), key).Result(); {
		case err == nil:
			found[v]++
		case !errors.Is(err, redis.Nil):
			t.Fatal(err)
		}
	}
	return found
}

// TestExclusionWithRedsync: four workers with locks of this library and four with redsync's on one
// key. There is never more than one holder, and both kinds get the lock.
func TestExclusionWithRedsync(t *testing.T) {
	ours, theirs, _ := bothOn(t)
	length := need.Sized(time.Second, 2*time.Second, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()

	// Validity is far longer than any stay, also on a busy machine, and checked at
	// the end of each.
	var inside, ourLocks, theirLocks atomic.Int64
	enter := func(until func() time.Time, locks *atomic.Int64) {
		if n := inside.Add(1); n > 1 {
			t.Errorf("%d inside at once", n)
		}
		time.Sleep(rand.N(2 * time.Millisecond)) // the work
		if time.Now().After(until()) {
			t.Error("the lock has ended under the work, which proves nothing")
		}
		inside.Add(-1)
		locks.Add(1)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				l, err := ours.Acquire(ctx, "a")
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				enter(l.Until, &ourLocks)
				if err := l.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				// A mutex for each try, and with it a value for each.
				m := theirs.NewMutex("a", redsync.WithExpiry(10*time.Second))
				if err := m.TryLock(); err == nil {
					enter(m.Until, &theirLocks)
					if ok, err := m.Unlock(); !ok {
						t.Errorf("redsync's Unlock: %v", err)
					}
				}
				time.Sleep(rand.N(10 * time.Millisecond)) // a usual delay between tries
			}
		})
	}
	all.Wait()
	t.Logf("%d locks of ours, %d of redsync's", ourLocks.Load(), theirLocks.Load())
	if ourLocks.Load() == 0 || theirLocks.Load() == 0 {
		t.Error("one kind never got in")
	}
}

// TestRedsyncHolds: to this library a lock of redsync's is held, its errors name the holder, and
// the release of an expired lock does not end redsync's.
func TestRedsyncHolds(t *testing.T) {
	ours, theirs, clients := bothOn(t)
	ctx := t.Context()
	old, err := ours.TryAcquire(ctx, "a", redlock.TTL(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	m := theirs.NewMutex("a", redsync.WithExpiry(time.Minute), redsync.WithTries(100), redsync.WithRetryDelay(50*time.Millisecond))
	if err := m.Lock(); err != nil { // once the first lock has expired
		t.Fatal(err)
	}
	_, err = ours.TryAcquire(ctx, "a")
	var q *redlock.QuorumError
	if !errors.Is(err, redlock.ErrHeld) || !errors.As(err, &q) {
		t.Fatalf("got %v, want ErrHeld", err)
	}
	for _, n := range q.Nodes() {
		if n.Outcome == redlock.OutcomeHeld && n.Holder != m.Value() {
			t.Errorf("%v, want it held by %s", n, m.Value())
		}
	}
	if err := old.Release(ctx); !errors.Is(err, redlock.ErrLost) {
		t.Errorf("our old lock: Release: %v", err)
	}
	if err := old.Extend(ctx); !errors.Is(err, redlock.ErrLost) {
		t.Errorf("our old lock: Extend: %v", err)
	}
	// Not on a third node if our lock had not expired there when redsync asked: two are enough for it.
	if got := values(t, clients, "a"); got[m.Value()] < 2 || len(got) != 1 {
		t.Errorf("the nodes have %v, want %s", got, m.Value())
	}
	if ok, err := m.Unlock(); !ok {
		t.Errorf("redsync's Unlock: %v", err)
	}
}

// TestRedsyncIsHeldOff: the same the other way round.
func TestRedsyncIsHeldOff(t *testing.T) {
	ours, theirs, clients := bothOn(t)
	ctx := t.Context()
	old := theirs.NewMutex("a", redsync.WithExpiry(time.Second))
	if err := old.TryLock(); err != nil {
		t.Fatal(err)
	}
	l, err := ours.Acquire(ctx, "a") // once redsync's lock has expired
	if err != nil {
		t.Fatal(err)
	}
	var taken *redsync.ErrTaken
	if err := theirs.NewMutex("a").TryLock(); !errors.As(err, &taken) {
		t.Errorf("redsync's TryLock: %v", err)
	}
	if ok, err := old.Unlock(); ok {
		t.Errorf("redsync has unlocked what is ours (%v)", err)
	}
	if ok, err := old.Extend(); ok {
		t.Errorf("redsync has extended what is ours (%v)", err)
	}
	if err := l.Extend(ctx); err != nil {
		t.Error(err)
	}
	if got := values(t, clients, "a"); got[l.Token()] < 2 || len(got) != 1 {
		t.Errorf("the nodes have %v, want %s", got, l.Token())
	}
	if err := l.Release(ctx); err != nil {
		t.Error(err)
	}
}
