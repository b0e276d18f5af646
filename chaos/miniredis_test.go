package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// TestNodesUnderFire runs the real client and the real scripts against miniredis
// nodes that are killed and restarted with their data, hang, are cut off in one
// direction or both, lose replies and break connections, in virtual time. At any
// moment any number of nodes may be ill: exclusion must hold all the same. Then
// all are well, everybody must get his lock, and nothing may be left.
//
// A node that restarts without its data is not among the faults: that breaks
// plain Redlock, as docs/safety.md says.
func TestNodesUnderFire(t *testing.T) {
	seeds := 24
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { underFire(t, uint64(seed)) })
		})
	}
}

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{}) // it notes each dial that fails
	os.Exit(m.Run())
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func underFire(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	nodes := redistest.NewBubble(t, []int{3, 4, 5}[rng.IntN(3)])
	ttl := []time.Duration{200 * time.Millisecond, time.Second, 5 * time.Second}[rng.IntN(3)]
	var mu sync.Mutex
	var history []Hold

	const clients = 6
	lockers := make([]*redlock.Locker, clients)
	for c := range lockers {
		lk, err := redlock.New(nodes.Clients(), &redlock.Options{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		lockers[c] = lk
	}

	working, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for c, lk := range lockers {
		draw := rand.New(rand.NewPCG(seed, uint64(c)+1))
		wg.Go(func() {
			for working.Err() == nil {
				h, ok := work(working, lk, draw, ttl)
				if h.Client = c; ok {
					mu.Lock()
					history = append(history, h)
					mu.Unlock()
				}
			}
		})
	}
	for range 40 {
		time.Sleep(below(rng, ttl))
		strike(nodes, rng)
	}
	for i := range nodes.Len() {
		heal(nodes, i)
	}
	stop()
	wg.Wait()

	if bad := Violations(history); len(bad) > 0 {
		t.Errorf("%d violations in %d holds, the first: %v", len(bad), len(history), bad[0])
	}
	if len(history) == 0 {
		t.Error("nobody ever had a lock: the test does not test what it means to")
	}
	for c, lk := range lockers {
		ctx, cancel := context.WithTimeout(t.Context(), ttl+10*time.Second)
		l, err := lk.Acquire(ctx, "name 0")
		cancel()
		if err != nil {
			t.Errorf("client %d after all was well again: %v", c, err)
			continue
		}
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("client %d: %v", c, err)
		}
	}
	time.Sleep(5 * time.Second) // for the last nodes to be told
	for i := range nodes.Len() {
		if keys := nodes.Keys(i); len(keys) > 0 && ttl > 4*time.Second {
			t.Errorf("left on %s: %q", nodes.Addr(i), keys)
		}
	}
	for _, lk := range lockers {
		if err := lk.Close(); err != nil {
			t.Error(err)
		}
	}
}

// work is one turn of a client: it waits for one of two names, holds it for a
// while, renewed or not, and gives it back, or not.
func work(ctx context.Context, lk *redlock.Locker, draw *rand.Rand, ttl time.Duration) (h Hold, ok bool) {
	h.Name = fmt.Sprint("name ", draw.IntN(2))
	var options []redlock.AcquireOption
	renewed := draw.IntN(2) == 0
	if renewed {
		options = append(options, redlock.Renewed())
	}
	waiting, cancel := context.WithTimeout(ctx, below(draw, 3*ttl)+time.Millisecond)
	l, err := lk.Acquire(waiting, h.Name, options...)
	cancel()
	if err != nil {
		return h, false
	}
	h.From, h.Token = time.Now(), l.Token()
	held := l.Context(context.Background())
	ended := make(chan time.Time, 1)
	context.AfterFunc(held, func() { ended <- time.Now() })
	select {
	case <-held.Done():
	case <-time.After(below(draw, 2*ttl)):
		if draw.IntN(3) == 0 {
			_ = l.Extend(ctx)
		}
	}
	if renewed || draw.IntN(8) > 0 { // else it forgets to give it back
		_ = l.Release(ctx)
	}
	h.To = <-ended
	return h, true
}

// below draws a duration under d.
func below(draw *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(draw.Int64N(int64(d)))
}

// strike lets something happen to one of the nodes.
func strike(nodes *redistest.Bubble, rng *rand.Rand) {
	i := rng.IntN(nodes.Len())
	switch path := nodes.Path(i); rng.IntN(11) {
	case 0:
		nodes.Kill(i)
	case 1:
		nodes.Restart(i, true)
	case 2:
		nodes.Hang(i)
	case 3:
		path.Cut()
	case 4:
		path.CutReplies()
	case 5:
		path.CutRequests()
	case 6:
		path.SetDelay(below(rng, 100*time.Millisecond))
	case 7:
		path.DropReplies(1 + rng.IntN(3))
	case 8:
		path.ResetAll()
	default:
		heal(nodes, i)
	}
}

// heal makes a node well again, whatever had happened to it. What was held back
// on its way arrives late, or never.
func heal(nodes *redistest.Bubble, i int) {
	nodes.Resume(i)
	nodes.Path(i).SetDelay(0)
	nodes.Path(i).Heal()
	nodes.Restart(i, true)
}
