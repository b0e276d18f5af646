package integration_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// A throng is many callers that want locks of all kinds on a few names. It records the callers that
// hold a lock, and those that wait.
type throng struct {
	*waitingRoom
	names []string
	hold  time.Duration

	// inOrder is whether the test checks that no caller overtakes an earlier one. The nodes know only the first
	// waiter of a local queue, and none of the others of its process.
	inOrder bool

	mu      sync.Mutex
	has     map[*redlock.Lock][]claim
	waits   map[*wait]bool
	longest time.Duration
	served  int
}

// A wait is a caller that waits for some claims.
type wait struct {
	claims       []claim
	came, passed time.Time // when a later caller got a slot although another one was free; zero: never
}

// there is the time after which a call is in the queues of all nodes.
const there = 8 * time.Millisecond

// wish draws a lock. A slot is always one of two, as all users of a name must give the same number of slots.
func (g *throng) wish(rng *rand.Rand) (name string, options []redlock.AcquireOption, claims []claim) {
	names := []string{g.names[rng.IntN(len(g.names))]}
	mode := []string{"alone", "shared", "slot"}[rng.IntN(3)]
	switch mode {
	case "slot":
		options = append(options, redlock.Slots(2))
	case "shared":
		options = append(options, redlock.Shared())
		fallthrough
	default:
		for range rng.IntN(3) {
			names = append(names, g.names[rng.IntN(len(g.names))])
		}
		options = append(options, redlock.Also(names[1:]...))
	}
	for _, name := range names {
		claims = append(claims, claim{strings.Split(name, "/"), mode, 2})
	}
	return names[0], options, claims
}

// one waits for a lock, holds it, and checks that this was right: there is no conflicting holder,
// and no conflicting waiter came earlier.
func (g *throng) one(lk *redlock.Locker, rng *rand.Rand) bool {
	name, options, claims := g.wish(rng)
	ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
	defer cancel()
	g.mu.Lock()
	me := &wait{claims: claims, came: time.Now()}
	g.waits[me] = true
	g.mu.Unlock()
	l, err := lk.Acquire(ctx, name, options...)
	if err != nil {
		g.Errorf("%v: %v", claims, err)
		return false
	}
	g.mu.Lock()
	now := time.Now()
	delete(g.waits, me)
	g.served++
	g.longest = max(g.longest, now.Sub(me.came))
	if !me.passed.IsZero() && now.Sub(me.passed) > there {
		g.Errorf("%v, which came at %v, is served at %v, and a later caller was served at %v", claims, me.came, now, me.passed)
	}
	var held [][]claim
	for other, claims := range g.has {
		if other.Until().After(now) {
			held = append(held, claims)
		}
	}
	if !mayHave(held, claims) {
		g.Errorf("%v is held together with %v", claims, held)
	}
	for other := range g.waits {
		switch {
		case !g.inOrder || !other.came.Add(there).Before(me.came) || mayHave([][]claim{single(other.claims)}, single(claims)):
		case !mayHave([][]claim{other.claims}, claims):
			g.Errorf("%v, which came at %v, is served at %v before %v, which came at %v", claims, me.came, now, other.claims, other.came)
		case other.passed.IsZero():
			// Both may have been called for a slot, and one has yet to store its fence.
			other.passed = now
		}
	}
	g.has[l] = claims
	g.mu.Unlock()
	time.Sleep(time.Duration(rng.Int64N(int64(g.hold))))
	g.mu.Lock()
	delete(g.has, l)
	g.mu.Unlock()
	released(g.T, l)
	return !g.Failed()
}

// single treats a slot as if there were only one: a waiter does not know about the others.
func single(claims []claim) []claim {
	claims = slices.Clone(claims)
	for i := range claims {
		claims[i].slots = 1
	}
	return claims
}

func (g *throng) run(processes, callers, times int, seed uint64) {
	for p := range processes {
		lk := g.locker()
		for c := range callers {
			g.calls.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(p*callers+c)))
				for range times {
					time.Sleep(time.Duration(rng.Int64N(int64(g.hold))))
					if !g.one(lk, rng) {
						return
					}
				}
			})
		}
	}
	g.calls.Wait()
	g.Logf("%d served, the longest wait was %v", g.served, g.longest)
}

// TestNobodyConflictsOvertakesOrStarves: whatever the callers want, there are never conflicting holders, no later caller
// overtakes an earlier one, and all are served, without a deadlock and without a wait for a
// heartbeat.
func TestNobodyConflictsOvertakesOrStarves(t *testing.T) {
	for i, tt := range []struct {
		what    string
		names   []string
		callers int
	}{
		{"two names", []string{"a", "b"}, 1},
		{"three names", []string{"a", "b", "c"}, 2},
		{"a tree", []string{"p", "p/A", "p/A/x", "p/B", "p/B/x", "q"}, 1},
		{"a tree, and other names", []string{"p/A/x", "p/A", "p/B", "q/A", "q/B", "q", "a", "b"}, 2},
	} {
		if !need.Sample(i+1, 4) {
			continue // the largest one
		}
		t.Run(tt.what, func(t *testing.T) {
			inWaitingRoom(t, func(h *waitingRoom) {
				g := &throng{waitingRoom: h, names: tt.names, hold: 10 * time.Millisecond, inOrder: true, has: make(map[*redlock.Lock][]claim), waits: make(map[*wait]bool)}
				g.run(6/tt.callers+1, tt.callers, cycles(15), 0)
				if g.longest > 500*time.Millisecond {
					t.Errorf("a caller waited for %v", g.longest)
				}
			})
		})
	}
}

// TestNotBehindOneOfUs: a caller that may have a lock at once need not wait because another caller
// of the same process wants the same name, and another one as well.
func TestNotBehindOneOfUs(t *testing.T) {
	need.Full(t)
	for _, where := range []string{"in another process", "in the same process"} {
		t.Run(where, func(t *testing.T) {
			inWaitingRoom(t, func(h *waitingRoom) {
				z := acquired(h.T, h.locker(), "z", redlock.AutoRenew())
				lk := h.locker()
				both := h.callFrom(h.Context(), lk, "a", time.Second, redlock.Shared(), redlock.Also("z"))
				if where == "in another process" {
					lk = h.locker()
				}
				one := h.callFrom(h.Context(), lk, "a", time.Second, redlock.Shared())
				time.Sleep(5 * time.Second)
				h.has(both, false, "while another has z")
				h.has(one, true, "reads a, which is free")
				released(h.T, z)
			})
		})
	}
}
