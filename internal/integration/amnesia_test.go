package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
)

// brief returns options for locks that live for at most ttl. The quarantine is no longer than it has
// to be.
func brief(ttl time.Duration) *redlock.Options {
	return &redlock.Options{TTL: ttl, MaxTTL: ttl, NodeTimeout: ttl / 4, Quarantine: ttl + ttl/100 + 2*time.Millisecond}
}

// told has what the hooks of a Locker were told about its nodes.
type told struct {
	mu          sync.Mutex
	quarantined []string
	down        []string
	steps       map[string][]time.Duration
}

// hearing makes the hooks of opts record it.
func (h *told) hearing(opts *redlock.Options) *redlock.Options {
	h.steps = map[string][]time.Duration{}
	locked := func(note func()) {
		h.mu.Lock()
		defer h.mu.Unlock()
		note()
	}
	opts.Hooks = &redlock.Hooks{
		Quarantined: func(node string, _ time.Duration, _ error) {
			locked(func() { h.quarantined = append(h.quarantined, node) })
		},
		NodeDown:  func(e *redlock.NodeError) { locked(func() { h.down = append(h.down, e.Node) }) },
		ClockStep: func(node string, by time.Duration) { locked(func() { h.steps[node] = append(h.steps[node], by) }) },
	}
	return opts
}

func (h *told) quarantines() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.quarantined)
}

// heldBut makes lk hold a name on all nodes except the free ones, which have no key of it: there a
// client of another library holds the name until the others have been asked.
func heldBut(t testing.TB, lk *redlock.Locker, servers []*redisproc.Server, name string, free []int, options ...redlock.AcquireOption) (l *redlock.Lock) {
	t.Helper()
	eventually(t, 10*time.Second, "a lock on some nodes", func() bool {
		for _, i := range free {
			ask(t, servers[i], "SET", name, "another's", "PX", 60_000)
		}
		var err error
		if l, err = lk.TryAcquire(t.Context(), name, options...); err != nil {
			return false
		}
		// In the lanes this comes after the requests of the attempt.
		for i, n := range inspected(t, lk, name) {
			if n.Err != nil || (n.Token == l.Token()) == slices.Contains(free, i) {
				_ = l.Release(t.Context())
				return false
			}
		}
		return true
	})
	for _, i := range free {
		ask(t, servers[i], "DEL", name)
	}
	return l
}

func inspected(t testing.TB, lk *redlock.Locker, name string) []redlock.NodeStatus {
	t.Helper()
	s, err := lk.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s.Nodes
}

// allVote waits until no node is quarantined or away.
func allVote(t testing.TB, lk *redlock.Locker) {
	t.Helper()
	eventually(t, 10*time.Second, "the votes of all nodes", func() bool {
		return !slices.ContainsFunc(inspected(t, lk, "any"), func(n redlock.NodeStatus) bool { return n.Err != nil })
	})
}

// nodeOf gives the part of an error about a node; nil: there is none.
func nodeOf(err error, node string) *redlock.NodeError {
	var q *redlock.QuorumError
	if errors.As(err, &q) {
		for _, n := range q.Nodes() {
			if n.Node == node {
				return n
			}
		}
	}
	return nil
}

// contest makes rivals ask for a lock until one of them gets it. None may get it before the validity of
// its holder ends. It counts how often, until then, a rival would have had a node's grant, except for
// the node's quarantine.
func contest(t testing.TB, first *redlock.Lock, node string, rivals ...*redlock.Locker) (refused int) {
	var resource guard
	resource.enter(first, "the first")
	giveUp := first.Until().Add(10 * time.Second)
	var over atomic.Bool
	var refusals atomic.Int64
	var all sync.WaitGroup
	for i, lk := range rivals {
		all.Go(func() {
			for !over.Load() && t.Context().Err() == nil {
				time.Sleep(rand.N(4 * time.Millisecond)) // not all at once, or they split the votes
				l, err := lk.TryAcquire(t.Context(), first.Name())
				now := time.Now()
				switch n := nodeOf(err, node); {
				case err == nil:
					over.Store(true)
					resource.enter(l, fmt.Sprintf("rival %d", i))
					if l.Fence() <= first.Fence() {
						t.Errorf("the fence of %q went from %d to %d", first.Name(), first.Fence(), l.Fence())
					}
					resource.leave(l)
					_ = l.Release(t.Context())
				case now.After(giveUp):
					t.Errorf("no rival gets %q, which has been free for a long time: %v", first.Name(), err)
					return
				case n != nil && n.Outcome == redlock.OutcomeQuarantined && now.Before(first.Until()):
					refusals.Add(1)
				}
			}
		})
	}
	all.Wait()
	if resource.broken != "" {
		t.Errorf("%q: %s", first.Name(), resource.broken)
	}
	return int(refusals.Load())
}

// TestNodeThatForgotALockHasNoVoteForAnother: a lock is held on three nodes of five, and one of the three forgets it. With the
// two free nodes that would be a quorum for another holder. The test has ten locks at a time. Each has
// other nodes, another rest of its life and other rivals: some have known the node before, and some
// have only just come.
func TestNodeThatForgotALockHasNoVoteForAnother(t *testing.T) {
	leaks.Check(t)
	for _, tt := range []struct {
		name   string
		forget func(*redisproc.Server) error
	}{
		{"restarted", (*redisproc.Server).Forget},
		{"flushed", func(s *redisproc.Server) error { // no connection breaks
			c := redis.NewClient(&redis.Options{Addr: s.Addr})
			defer c.Close()
			return c.FlushAll(context.Background()).Err()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			const ttl, together = 500 * time.Millisecond, 10
			servers := redistest.Servers(t, 5)
			holder := open(t, redistest.Clients(t, servers), brief(ttl))
			before := open(t, redistest.Clients(t, servers), brief(ttl))
			var locks, real atomic.Int64
			for i := range cycles(20) {
				random := rand.New(rand.NewPCG(uint64(i), 7))
				victim := servers[random.IntN(len(servers))]
				var all sync.WaitGroup
				t.Cleanup(all.Wait)
				compete := func(l *redlock.Lock, rivals ...*redlock.Locker) {
					locks.Add(1)
					all.Go(func() {
						if contest(t, l, victim.Addr, rivals...) > 0 {
							real.Add(1)
						}
					})
				}
				var later []*redlock.Lock
				for j := range together {
					free := slices.DeleteFunc(random.Perm(len(servers)), func(k int) bool { return servers[k] == victim })[:2]
					life := ttl - time.Duration(random.IntN(150))*time.Millisecond
					l := heldBut(t, holder, servers, fmt.Sprintf("%d.%d", i, j), free, redlock.TTL(life))
					if random.IntN(3) == 0 {
						compete(l, before)
					} else {
						later = append(later, l)
					}
				}
				if err := tt.forget(victim); err != nil {
					t.Fatal(err)
				}
				newcomer := open(t, redistest.Clients(t, servers), brief(ttl))
				for _, l := range later {
					compete(l, [][]*redlock.Locker{{before}, {newcomer}, {before, newcomer}}[random.IntN(3)]...)
				}
				all.Wait()
				_ = newcomer.Close()
				if t.Failed() {
					t.Fatalf("in round %d", i)
				}
				allVote(t, holder) // or there would be no vote to forget
				allVote(t, before)
			}
			t.Logf("for %[2]d of %[1]d locks a rival asked the node that had forgotten, in time", locks.Load(), real.Load())
			// A low bound, because on a busy machine locks are over before a server is up again.
			if 50*real.Load() < locks.Load() {
				t.Error("too few to tell anything")
			}
			nothingLeft(t, servers)
		})
	}
}

// TestRestartWithData: a node was restarted and has its data, of which the last writes may be missing,
// as far as clients can know. It keeps its keys, so the holder goes on; for another lock it has no vote
// until the quarantine is over.
func TestRestartWithData(t *testing.T) {
	t.Parallel()
	servers := redistest.Servers(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	var heard told
	opts := heard.hearing(brief(2 * time.Second))
	lk := open(t, redistest.Clients(t, servers), opts)
	l := acquired(t, lk, "a", redlock.AutoRenew())
	alive := l.Context(t.Context())
	has := func(node int) bool { return inspected(t, lk, "a")[node].Token == l.Token() }
	eventually(t, 2*time.Second, "all three to have the lock", func() bool { return has(0) && has(1) && has(2) })

	killed := time.Now()
	restart(t, servers[0])
	eventually(t, 2*time.Second, "the node to be back, with the lock and without a vote", func() bool {
		n := inspected(t, lk, "a")[0]
		return n.Token == l.Token() && n.Err != nil && n.Err.Outcome == redlock.OutcomeQuarantined
	})
	if got := heard.quarantines(); !slices.Equal(got, []string{servers[0].Addr}) {
		t.Errorf("the hook was told that %v have no vote, want %v alone", got, servers[0].Addr)
	}

	servers[1].Kill()
	if err := l.Extend(t.Context()); err != nil {
		t.Errorf("with a node that was restarted with its data: %v", err)
	}
	_, err := lk.TryAcquire(t.Context(), "b")
	wantKind(t, err, redlock.ErrNoQuorum)
	switch n := nodeOf(err, servers[0].Addr); {
	case n == nil || n.Outcome != redlock.OutcomeQuarantined:
		t.Errorf("%v does not name %s as quarantined", err, servers[0].Addr)
	case n.TTL <= 0 || n.TTL > opts.Quarantine:
		t.Errorf("quarantined for %v, and all of it is %v", n.TTL, opts.Quarantine)
	case !strings.Contains(err.Error(), "quarantined for") || !strings.Contains(err.Error(), "restarted"):
		t.Errorf("%v does not say for how long and why", err)
	}

	var other *redlock.Lock
	eventually(t, opts.Quarantine+5*time.Second, "the vote of the node that was restarted", func() (ok bool) {
		other, err = lk.TryAcquire(t.Context(), "b")
		return err == nil
	})
	if after := time.Since(killed); after < opts.Quarantine {
		t.Errorf("it votes after %v, in a quarantine of %v", after, opts.Quarantine)
	}
	if alive.Err() != nil {
		t.Error(context.Cause(alive))
	}
	restart(t, servers[1])
	released(t, other)
	released(t, l)
	nothingLeft(t, servers)
}
