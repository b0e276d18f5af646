package integration_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

func stepClock(t testing.TB, s *redisproc.Server, by time.Duration) {
	t.Helper()
	if err := s.StepClock(by); err != nil {
		t.Fatal(err)
	}
}

// steppedNodes counts the nodes whose clocks were found to have been set.
func (h *told) steppedNodes() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.steps)
}

// onlyStep checks that a Locker was told of one step and of its size. The size is what is certain: it may
// be smaller by the time that a reply takes, and is never larger.
func (h *told) onlyStep(t testing.TB, who, node string, want time.Duration) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	steps := h.steps[node]
	if len(h.steps) != 1 || len(steps) != 1 {
		t.Errorf("%s was told of the steps %v, want one, of %s", who, h.steps, node)
		return
	}
	if less := want.Abs() - steps[0].Abs(); (steps[0] > 0) != (want > 0) || less < -time.Millisecond || less > slack/4 {
		t.Errorf("%s was told of a step by %v, and it was by %v", who, steps[0], want)
	}
}

// TestNodeWhoseClockSteppedMakesNoSecondHolder: the clock of one of the three nodes that hold a lock is set. If it is set forward by more
// than what is left of the lock, the node drops the lock, and two others are free. Rivals that have had
// replies of the node before find out with its first reply, before that counts: a step that is longer than
// a round makes their request late, and with a shorter one the node grants.
func TestNodeWhoseClockSteppedMakesNoSecondHolder(t *testing.T) {
	leaks.Check(t)
	const ttl = 3 * time.Second
	for _, tt := range []struct {
		by   time.Duration
		left time.Duration // of the lock
	}{
		{by: 10 * time.Second, left: ttl},
		{by: -10 * time.Second, left: ttl},
		{by: ttl / 5, left: ttl / 6},
	} {
		t.Run(tt.by.String(), func(t *testing.T) {
			t.Parallel() // it mostly waits
			servers := redistest.ClockServers(t, 5)
			stepped := servers[0].Addr
			var heard [3]told
			var lockers []*redlock.Locker
			for i := range heard {
				opts := brief(ttl)
				opts.MaxNodeSkew = -1 // otherwise the node would have no vote because its clock is far off
				lockers = append(lockers, open(t, redistest.Clients(t, servers), heard[i].hearing(opts)))
			}
			holder, rivals := lockers[0], lockers[1:]
			everywhere := heldBut(t, holder, servers, "everywhere", nil, redlock.AutoRenew())
			l := heldBut(t, holder, servers, "a", []int{3, 4})
			for _, s := range servers[3:] {
				ask(t, s, "SET", "b", "another's", "PX", 600_000) // so that the other three are needed
			}
			eventually(t, 2*ttl, "the moment", func() bool { return time.Until(l.Until()) < tt.left })

			stepClock(t, servers[0], tt.by)
			refused := 0
			var contested sync.WaitGroup
			contested.Go(func() { refused = contest(t, l, stepped, rivals...) })
			t.Cleanup(contested.Wait)
			for i, lk := range rivals {
				eventually(t, ttl/6, "the first reply", func() bool { return heard[i+1].steppedNodes() > 0 })
				if tt.by < 0 { // the node keeps its keys for longer, and its vote
					eventually(t, ttl/6, "the vote of a node that was set back", func() bool {
						b, err := lk.TryAcquire(t.Context(), "b")
						if err == nil {
							released(t, b)
						}
						return err == nil
					})
					continue
				}
				var err error
				var n *redlock.NodeError
				eventually(t, ttl/6, "an answer", func() bool { // once the attempt before has been given back
					_, err = lk.TryAcquire(t.Context(), "b")
					n = nodeOf(err, stepped)
					return n != nil
				})
				if n == nil || n.Outcome != redlock.OutcomeQuarantined || n.TTL <= 0 || !strings.Contains(err.Error(), stepped+": quarantined for") || !strings.Contains(err.Error(), "its clock was set by") {
					t.Errorf("the error of rival %d does not say what is wrong with %s: %v", i, stepped, err)
				}
				released(t, acquired(t, lk, "c")) // from the others
			}
			if err := everywhere.Extend(t.Context()); err != nil {
				t.Errorf("one clock of five was set: %v", err)
			}
			contested.Wait()
			if refused == 0 && tt.by > 0 {
				t.Error("no rival asked the node in time: this tests nothing")
			}
			released(t, everywhere)
			for i := range heard {
				heard[i].onlyStep(t, fmt.Sprint("locker ", i), stepped, tt.by)
			}
		})
	}
}

// TestFencesUnderClockSteps: again and again the clocks of a majority are set, by up to a minute forward or
// back, and now and then by a month. No quarantine could help then, so there is none here, the clocks are not
// compared, and a lock may have two holders. But of these the later one has the larger fence.
func TestFencesUnderClockSteps(t *testing.T) {
	leaks.Check(t)
	const most = 100 * 24 * time.Hour // ahead or behind
	servers := redistest.ClockServers(t, 5)
	opts := &redlock.Options{TTL: 5 * time.Second, NodeTimeout: time.Second, Quarantine: -1, MaxNodeSkew: -1}
	var lockers []*redlock.Locker
	for range 3 {
		lockers = append(lockers, open(t, redistest.Clients(t, servers), opts))
	}
	random := rand.New(rand.NewPCG(1, 1))
	ahead := make([]time.Duration, len(servers))
	var held *redlock.Lock
	last, twice := int64(0), 0
	for i := range cycles(300) {
		sign := time.Duration(1 - 2*random.IntN(2))
		for _, k := range random.Perm(len(servers))[:3] {
			by := sign * time.Duration(random.Int64N(int64(time.Minute)))
			if random.IntN(10) == 0 {
				by = sign * 30 * 24 * time.Hour
			}
			if (ahead[k] + by).Abs() > most {
				by = -by
			}
			ahead[k] += by
			stepClock(t, servers[k], by)
			eventually(t, time.Second, "the server to notice", func() bool { // Valkey reads its clock once in a millisecond
				told := ask(t, servers[k], "TIME").([]any)
				seconds, err := strconv.ParseInt(told[0].(string), 10, 64)
				return err == nil && time.Until(time.Unix(seconds, 0).Add(-ahead[k])).Abs() < 2*time.Second
			})
		}
		lk := lockers[random.IntN(len(lockers))]
		var l *redlock.Lock
		eventually(t, 10*time.Second, "a lock", func() bool {
			var err error
			l, err = lk.TryAcquire(t.Context(), "a")
			if held != nil && errors.Is(err, redlock.ErrHeld) {
				_ = held.Release(t.Context())
				held = nil
			}
			return err == nil
		})
		if l.Fence() <= last {
			t.Fatalf("round %d: the fence went from %d to %d", i, last, l.Fence())
		}
		last = l.Fence()
		if held != nil {
			if time.Now().Before(held.Until()) {
				twice++
			}
			_ = held.Release(t.Context()) // the lock is still on some of the nodes
		}
		held = l
		if random.IntN(2) == 0 {
			_ = held.Release(t.Context())
			held = nil
		}
	}
	t.Logf("%d times there were two holders", twice)
	if twice == 0 {
		t.Error("the steps have made no second holder: this tests little")
	}
}

// TestMaxNodeSkew: a client that comes after a clock was set can compare it only with the other nodes' clocks.
// It does so, unless MaxNodeSkew is switched off.
func TestMaxNodeSkew(t *testing.T) {
	leaks.Check(t)
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			servers := redistest.ClockServers(t, 5)
			stepped := servers[0].Addr
			holder := open(t, redistest.Clients(t, servers), patient())
			l := heldBut(t, holder, servers, "a", []int{3, 4})
			for _, s := range servers[3:] {
				ask(t, s, "SET", "b", "another's", "PX", 600_000)
			}
			stepClock(t, servers[0], by)

			opts := patient()
			opts.MaxNodeSkew = time.Second
			careful := open(t, redistest.Clients(t, servers), opts)
			opts.MaxNodeSkew = -1
			careless := open(t, redistest.Clients(t, servers), opts)
			usual := open(t, redistest.Clients(t, servers), patient())
			released(t, acquired(t, careful, "c")) // from the others
			_, err := careful.TryAcquire(t.Context(), "b")
			n := nodeOf(err, stepped)
			if n == nil || n.Outcome != redlock.OutcomeIneligible || !strings.Contains(err.Error(), "Options.MaxNodeSkew 1s") {
				t.Errorf("the error does not say what is wrong with %s: %v", stepped, err)
			}
			if _, err := careful.TryAcquire(t.Context(), "a"); err == nil {
				t.Fatalf("a second holder while the first lock is valid for %v", time.Until(l.Until()))
			}
			if _, err := usual.TryAcquire(t.Context(), "a"); err == nil {
				t.Fatalf("a second holder by default while the first lock is valid for %v", time.Until(l.Until()))
			}
			// A client that was there before needs no MaxNodeSkew.
			if _, err := holder.TryAcquire(t.Context(), "a"); err == nil {
				t.Fatalf("a second holder while the first lock is valid for %v", time.Until(l.Until()))
			}
			if by > 0 {
				eventually(t, 5*time.Second, "a second holder without MaxNodeSkew", func() bool { // once the attempts of others were given back
					second, err := careless.TryAcquire(t.Context(), "a")
					return err == nil && second.Release(t.Context()) == nil
				})
				if left := time.Until(l.Until()); left <= 0 {
					t.Fatalf("the first lock had ended %v before", -left)
				}
			}
			_ = l.Release(t.Context())
			// The careless client has stored the fence of the wrong clock on other nodes: only for it is
			// that a fence.
			last := careful
			if by > 0 {
				last = careless
				if _, err := careful.TryAcquire(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "redlock prepare --reset-fences") {
					t.Errorf("with a fence of the future: %v", err)
				}
			}
			eventually(t, 2*time.Second, "the lock", func() bool { // once the others' attempts have been given back
				l, err := last.TryAcquire(t.Context(), "a")
				return err == nil && l.Release(t.Context()) == nil
			})
		})
	}
}

// TestFastClock: a node whose clock is 1 % fast keeps a lock for as long as it is valid, and its votes. One that is 3 % fast
// counts as one that is set again and again: it has no vote.
func TestFastClock(t *testing.T) {
	for _, tt := range []struct {
		rate  float64
		votes bool
	}{{0.01, true}, {0.03, false}} {
		t.Run(fmt.Sprint(tt.rate), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFleet(t, 3)
				var heard told
				lk := f.client(heard.hearing(&redlock.Options{}), 0)
				f.locks(lk, true)
				f.nodes[0].Rate(tt.rate)
				for n := range 3 {
					l := atRest(t, lk, fmt.Sprint(n))
					pass(time.Until(l.Until()))
					if kept := f.Tokens(f.nodes[0]) == 1; kept != tt.votes {
						t.Errorf("the node has the lock until the end of its validity: %v", kept)
					}
					pass(10 * time.Millisecond)
				}
				if steps := heard.steppedNodes(); (steps == 0) != tt.votes {
					t.Errorf("%d nodes were found to have been set", steps)
				}
				f.nodes[1].Kill()
				f.locks(lk, tt.votes)
			})
		})
	}
}
