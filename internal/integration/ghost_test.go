package integration_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// When a stopped server goes on, it finds in its sockets requests whose callers have given up. An
// acquire that it grants then is a ghost: for a TTL, a lock without a holder.

// hurried returns options for rounds that are shorter than a node's stop, and for keys that outlast the test.
func hurried() *redlock.Options {
	return &redlock.Options{TTL: time.Minute, NodeTimeout: 10 * time.Millisecond}
}

// outlast waits until a node has been stopped for twice the NodeTimeout.
func outlast(t testing.TB, stopped time.Time) {
	t.Helper()
	eventually(t, 10*time.Second, "twice the NodeTimeout", func() bool { return time.Since(stopped) > 2*hurried().NodeTimeout })
}

// TestNoGhosts: nodes, now and then a majority of them, are stopped before an acquire or in the
// middle of it, and go on when it is over for long. The connections stand, so the lane's order
// makes the release come after the acquire, whether the node granted that or not.
func TestNoGhosts(t *testing.T) {
	leaks.Check(t)
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n, " nodes"), func(t *testing.T) {
			t.Parallel() // it mostly waits
			servers := redistest.Servers(t, n)
			lk := open(t, redistest.Clients(t, servers), hurried())
			random := rand.New(rand.NewPCG(uint64(n), 1))
			won, late := 0, 0
			for i := range cycles(150) {
				victims := slices.Clone(servers)
				random.Shuffle(n, func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
				victims = victims[:1]
				if random.IntN(5) == 0 {
					victims = slices.Clone(servers[:n/2+1])
				}
				before := callsOf(t, victims[0], "set")
				var stopping sync.WaitGroup
				stopping.Go(func() {
					for _, s := range victims {
						if err := s.Hang(); err != nil {
							t.Error(err)
						}
					}
				})
				if random.IntN(2) == 0 {
					stopping.Wait()
				}
				l, err := lk.TryAcquire(t.Context(), fmt.Sprint("job", i))
				stopping.Wait()
				stopped := time.Now()
				early := random.IntN(2) == 0
				if err == nil {
					won++
					if early {
						_ = l.Release(t.Context())
					}
				}
				outlast(t, stopped)
				resume(t, victims...)
				if err == nil {
					_ = l.Release(t.Context())
				}
				nothingLeft(t, servers)
				if t.Failed() {
					t.Fatalf("in round %d", i)
				}
				if callsOf(t, victims[0], "set") > before {
					late++
				}
			}
			t.Logf("%d locks were acquired; %d times a stopped node was asked", won, late)
			if won == 0 || late == 0 {
				t.Error("this tests nothing")
			}
		})
	}
}

// TestNoGhostsOfBrokenConnections: the connection ends while the node is stopped, with an acquire
// in it, and no release follows. All that keeps the node from granting it when it goes on is the
// deadline in the request, which is in the node's own time. Plain commands are carried out all the
// same, and leave a key that has a TTL.
func TestNoGhostsOfBrokenConnections(t *testing.T) {
	leaks.Check(t)
	closed := func(t *testing.T, lk *redlock.Locker, _ *faultproxy.Proxy) {
		if err := lk.Close(); err != nil {
			t.Error(err)
		}
	}
	reset := func(_ *testing.T, _ *redlock.Locker, p *faultproxy.Proxy) {
		p.Refuse(true)
		p.ResetAll()
	}
	for _, tt := range []struct {
		name  string
		plain bool
		end   func(t *testing.T, lk *redlock.Locker, p *faultproxy.Proxy)
	}{
		{"closed", false, closed},
		{"reset", false, reset},
		{"plain commands, closed", true, closed},
		{"plain commands, reset", true, reset},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.Servers(t, 3)
			proxies := redistest.Proxies(t, servers)
			clients := redistest.ProxyClients(t, proxies)
			options, command := []redlock.AcquireOption{redlock.Shared()}, "evalsha"
			if tt.plain {
				options, command = nil, "set"
			}
			rounds, late, ghosts := cycles(150)/2, 0, 0
			for i := range rounds {
				lk := open(t, clients, hurried())
				allVote(t, lk)
				victim, proxy, name := servers[i%3], proxies[i%3], fmt.Sprint("job", i)
				calls, bytes := callsOf(t, victim, command), proxy.Stats().RequestBytes
				hang(t, victim)
				stopped := time.Now()
				l, err := lk.TryAcquire(t.Context(), name, options...)
				for proxy.Stats().RequestBytes == bytes && time.Since(stopped) < time.Second {
					time.Sleep(time.Millisecond / 10) // until the request is under way
				}
				if err == nil {
					_ = l.Release(t.Context())
				}
				tt.end(t, lk, proxy)
				outlast(t, stopped)
				resume(t, victim)
				eventually(t, 5*time.Second, "the node to be through with the connection", func() bool { return connections(t, victim) == 0 })
				if callsOf(t, victim, command) > calls {
					late++
				}
				switch ttl := ask(t, victim, "PTTL", name).(int64); {
				case ttl > 0:
					ghosts++
				case ttl == -1:
					t.Error("a key is left that has no TTL")
				}
				proxy.Refuse(false)
				_ = lk.Close()
			}
			t.Logf("%d times of %d the node got the request when it was late, and %d times a key was left", late, rounds, ghosts)
			if ghosts > 0 && !tt.plain {
				t.Errorf("%d ghosts", ghosts)
			}
			if 2*late < rounds {
				t.Error("too few to tell anything")
			}
		})
	}
}
