package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// moves has lists of nodes, each of which differs from the one before by one node. The set is that of the first.
var moves = [][]int{{0, 1, 2}, {0, 1, 2, 3}, {0, 1, 3}, {0, 1, 3, 4}, {0, 1, 3, 4, 2}}

const movingTTL = 10 * time.Second

// TestMembersOutlastOtherListsOfNodes: while the service goes on, its processes are started again with other lists of nodes, one after
// another. They go by the set's members all the same: there are never two holders, the fences rise, and no
// call waits for longer than a lock takes to expire.
func TestMembersOutlastOtherListsOfNodes(t *testing.T) {
	need.Full(t)
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		b := redistest.NewBubble(t, 5)
		for _, added := range []int{3, 4} {
			b.Mini(added).FlushAll()
		}
		m := &movers{T: t, Bubble: b, lots: rand.New(rand.NewPCG(0, 1))}
		const processes = 5
		for range processes {
			m.lockers = append(m.lockers, m.open(moves[0]))
		}
		roll := rand.New(rand.NewPCG(0, 2))
		ctx, stop := context.WithCancel(t.Context())
		for p := range processes {
			m.work.Go(func() { m.serve(ctx, p) })
		}
		for at, list := range moves[1:] {
			if at == 3 { // it was removed, and comes back as a new node
				b.Mini(2).FlushAll()
			}
			for p := range processes {
				time.Sleep(time.Duration(roll.Int64N(int64(5 * time.Second))))
				m.move(p, list)
			}
			// All locks that were acquired with the list before have ended.
			time.Sleep(movingTTL)
		}
		stop()
		m.work.Wait()
		if m.guard.broken != "" {
			t.Error(m.guard.broken)
		}
		t.Logf("%d served, the longest wait was %v", m.served, m.longest)
		if m.served < 200 || m.longest > movingTTL+time.Second {
			t.Errorf("%d served, the longest wait was %v", m.served, m.longest)
		}
	})
}

// Movers are processes that use one lock, and change their lists of nodes.
type movers struct {
	*testing.T
	*redistest.Bubble
	guard guard
	work  sync.WaitGroup

	mu      sync.Mutex
	lots    *rand.Rand
	lockers []*redlock.Locker
	fence   int64
	served  int
	longest time.Duration
}

func (m *movers) open(list []int) *redlock.Locker {
	var clients []*redis.Client
	for _, i := range list {
		clients = append(clients, m.Client(i))
	}
	return open(m.T, clients, &redlock.Options{TTL: movingTTL, MaxTTL: movingTTL})
}

// move restarts a process: it ends its work, and begins with another list.
func (m *movers) move(p int, list []int) {
	next := m.open(list)
	m.mu.Lock()
	old := m.lockers[p]
	m.lockers[p] = next
	m.mu.Unlock()
	_ = old.Close()
}

func (m *movers) serve(ctx context.Context, p int) {
	for ctx.Err() == nil {
		m.mu.Lock()
		lk, pause := m.lockers[p], time.Duration(m.lots.Int64N(int64(600*time.Millisecond)))
		m.mu.Unlock()
		time.Sleep(pause)
		asked := time.Now()
		l, err := lk.Acquire(ctx, "k")
		if err != nil {
			continue // the process has moved, or the test is over
		}
		m.guard.enter(l, fmt.Sprint("process ", p))
		m.mu.Lock()
		if l.Fence() <= m.fence {
			m.Errorf("fence %d after %d", l.Fence(), m.fence)
		}
		m.fence = l.Fence()
		m.served++
		m.longest = max(m.longest, time.Since(asked))
		m.mu.Unlock()
		time.Sleep(pause / 4)
		m.guard.leave(l)
		_ = l.Release(context.Background())
	}
}

// TestListsThatMeet: any quorum of one list has a node in common with any quorum of the next one,
// if they differ by one node; but not if one node is replaced by another in one step.
func TestListsThatMeet(t *testing.T) {
	quorums := func(list []int) (all []uint) {
		for set := range uint(1 << len(list)) {
			var nodes, size uint
			for i, node := range list {
				if set&(1<<i) != 0 {
					nodes |= 1 << node
					size++
				}
			}
			if size == uint(len(list)/2+1) {
				all = append(all, nodes)
			}
		}
		return all
	}
	meet := func(a, b []int) bool {
		for _, one := range quorums(a) {
			for _, other := range quorums(b) {
				if one&other == 0 {
					return false
				}
			}
		}
		return true
	}
	for n := 1; n <= 9; n++ {
		var list []int
		for i := range n {
			list = append(list, i)
		}
		if more := append(list[:n:n], n); !meet(list, more) || !meet(more, list) {
			t.Errorf("from %d nodes to %d there are two majorities", n, n+1)
		}
	}
	for i := range moves[1:] {
		if !meet(moves[i], moves[i+1]) {
			t.Errorf("from %v to %v there are two majorities", moves[i], moves[i+1])
		}
	}
	if meet([]int{0, 1, 2}, []int{0, 1, 3}) || meet([]int{0, 1, 2}, []int{0, 1, 2, 3, 4}) {
		t.Error("two steps in one would be as good")
	}
}
