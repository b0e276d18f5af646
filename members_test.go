package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/redistest/leaks"
	"github.com/redis/go-redis/v9"
)

// A growing set is of nodes that may all be reached by their addresses.
type growing struct {
	*testing.T
	*redistest.Bubble
}

func grows(t *testing.T, n int, f func(*growing)) {
	bubble(t, func(t *testing.T) {
		leaks.Check(t)
		f(&growing{t, redistest.NewBubble(t, n)})
	})
}

// over returns a Locker that is given some of the nodes.
func (g *growing) over(opts *Options, nodes ...int) *Locker {
	g.Helper()
	clients := make([]*redis.Client, len(nodes))
	for i, node := range nodes {
		o := g.Options(node)
		o.Addr, o.Dialer = g.Addr(node), g.dial
		clients[i] = redis.NewClient(o)
		g.Cleanup(func() { clients[i].Close() })
	}
	lk, err := New(clients, opts)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { lk.Close() })
	return lk
}

func (g *growing) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	for i := range g.Len() {
		if g.Addr(i) == addr {
			return g.Options(i).Dialer(ctx, network, addr)
		}
	}
	return nil, errors.New("nobody lives at " + addr)
}

func (g *growing) change(lk *Locker, c Change) Members {
	g.Helper()
	m, err := lk.Change(g.Context(), c, func(what string, most time.Duration) { g.Logf("waits for %s, %v", what, most) })
	if err != nil {
		g.Fatal(err)
	}
	return m
}

// TestSetGrows: a set grows from three nodes to five, and shrinks again to the last three, while clients that
// were given the first three lock all the time. None of them is started again, and no two hold the lock.
func TestSetGrows(t *testing.T) {
	grows(t, 5, func(g *growing) {
		ctx, stop := context.WithCancel(g.Context())
		var calls sync.WaitGroup
		var mu sync.Mutex
		inside, turns, last := 0, make([]int, 4), int64(0)
		var longest time.Duration
		for i := range turns {
			lk := g.over(&Options{TTL: 2 * time.Second}, 0, 1, 2)
			calls.Go(func() {
				for ctx.Err() == nil {
					came := time.Now()
					err := lk.Do(ctx, "a", func(ctx context.Context, l *Lock) error {
						mu.Lock()
						inside++
						if inside > 1 || l.Fence() <= last {
							g.Errorf("%d inside, fence %d after %d", inside, l.Fence(), last)
						}
						last = l.Fence()
						longest = max(longest, time.Since(came))
						mu.Unlock()
						time.Sleep(10 * time.Millisecond)
						mu.Lock()
						defer mu.Unlock()
						inside--
						turns[i]++
						return ctx.Err()
					})
					if err != nil && ctx.Err() == nil {
						g.Errorf("client %d: %v", i, err)
					}
				}
			})
		}
		time.Sleep(time.Second)
		operator := g.over(nil, 0, 1, 2)
		for _, c := range []Change{{Add: g.Addr(3)}, {Add: g.Addr(4)}, {Remove: g.Addr(0)}, {Remove: g.Addr(1)}} {
			mu.Lock()
			before := slices.Clone(turns)
			mu.Unlock()
			m := g.change(operator, c)
			g.Logf("%v: epoch %d, %v", time.Now(), m.Epoch, m.Nodes)
			time.Sleep(time.Second)
			mu.Lock()
			for i := range turns {
				if turns[i] == before[i] {
					g.Errorf("client %d has not had the lock since", i)
				}
			}
			mu.Unlock()
		}
		if m := operator.Members(); m.Epoch != 5 || !slices.Equal(m.Nodes, []string{g.Addr(2), g.Addr(3), g.Addr(4)}) || m.Quorum != 2 {
			g.Errorf("the members are %+v", m)
		}
		g.Kill(0)
		g.Kill(1)
		time.Sleep(3 * time.Second)
		before := slices.Clone(turns)
		time.Sleep(time.Second)
		for i := range turns {
			if turns[i] == before[i] {
				g.Errorf("client %d has not had the lock without the first nodes", i)
			}
		}
		stop()
		calls.Wait()
		g.Log(fmt.Sprint(turns), longest)
	})
}

// TestSetShrinksBelowTheGiven: a program is given nodes that are no members any more. It learns it when it
// connects, and uses the members.
func TestSetShrinksBelowTheGiven(t *testing.T) {
	grows(t, 3, func(g *growing) {
		operator := g.over(nil, 0, 1, 2)
		g.change(operator, Change{Remove: g.Addr(0)})
		g.change(operator, Change{Remove: g.Addr(1)})
		lk := g.over(nil, 0, 1, 2)
		lock, err := lk.Acquire(g.Context(), "a")
		if err != nil {
			g.Fatal(err)
		}
		if m := lk.Members(); m.Epoch != 3 || !slices.Equal(m.Nodes, []string{g.Addr(2)}) {
			g.Errorf("the members are %+v", m)
		}
		if err := lock.Release(g.Context()); err != nil {
			g.Error(err)
		}
	})
}

// TestMemberComesBack: a node is removed and added again, while one client uses the set all the time.
func TestMemberComesBack(t *testing.T) {
	grows(t, 4, func(g *growing) {
		lk := g.over(nil, 0, 1, 2)
		g.change(lk, Change{Add: g.Addr(3)})
		g.change(lk, Change{Remove: g.Addr(3)})
		g.change(lk, Change{Add: g.Addr(3)})
		g.change(lk, Change{Remove: g.Addr(0)})
		g.Kill(1)
		lock, err := lk.Acquire(g.Context(), "a")
		if err != nil {
			g.Fatal(err)
		}
		if err := lock.Release(g.Context()); err != nil {
			g.Error(err)
		}
	})
}
