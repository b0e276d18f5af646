package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
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
		for _, new := range []int{3, 4} {
			g.Mini(new).FlushAll()
		}
		ctx, stop := context.WithCancel(g.Context())
		var calls sync.WaitGroup
		var mu sync.Mutex
		inside, turns, last := 0, make([]int, 2), int64(0)
		var longest time.Duration
		hold := need.Sized(500*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond) // over before a renewal
		turn := max(time.Second, 3*hold)                                                     // in which each client has had it
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
						time.Sleep(hold)
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
		operator := g.over(&Options{TTL: 2 * time.Second}, 0, 1, 2)
		for _, c := range []Change{{Add: g.Addr(3)}, {Add: g.Addr(4)}, {Remove: g.Addr(0)}, {Remove: g.Addr(1)}} {
			mu.Lock()
			before := slices.Clone(turns)
			mu.Unlock()
			began := time.Now()
			m := g.change(operator, c)
			if took := time.Since(began); took > 21*time.Second { // a quarantine, and the locks before
				g.Errorf("it took %v", took)
			}
			g.Logf("%v: epoch %d, %v", time.Now(), m.Epoch, m.Nodes)
			time.Sleep(turn)
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
		mu.Lock()
		before := slices.Clone(turns)
		mu.Unlock()
		time.Sleep(turn)
		mu.Lock()
		for i := range turns {
			if turns[i] == before[i] {
				g.Errorf("client %d has not had the lock without the first nodes", i)
			}
		}
		mu.Unlock()
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

// TestHeldLocksStay: a lock that is held, and renewed, stays when the set grows, also one that just a quorum of the
// nodes has, of which the next members need one more.
func TestHeldLocksStay(t *testing.T) {
	for row, tt := range []struct{ nodes, lack int }{{1, 0}, {3, 0}, {3, 1}, {5, 2}} {
		if !need.Sample(row, 2) {
			continue
		}
		t.Run(fmt.Sprintf("%d of %d", tt.nodes-tt.lack, tt.nodes), func(t *testing.T) {
			grows(t, tt.nodes+1, func(g *growing) {
				var given []int
				for i := range tt.nodes {
					given = append(given, i)
				}
				l, err := g.over(&Options{TTL: 3 * time.Second}, given...).TryAcquire(g.Context(), "a", AutoRenew())
				if err != nil {
					g.Fatal(err)
				}
				ctx := l.Context(g.Context())
				time.Sleep(4 * time.Second)
				for i := range tt.lack {
					g.Mini(i).Del("a")
				}
				operator := g.over(nil, given...)
				g.change(operator, Change{Add: g.Addr(tt.nodes)})
				time.Sleep(10 * time.Second)
				if ctx.Err() != nil {
					g.Fatalf("the lock has ended: %v", context.Cause(ctx))
				}
				if _, err := operator.TryAcquire(g.Context(), "a"); !errors.Is(err, ErrHeld) {
					g.Errorf("another client: %v", err)
				}
				if err := l.Release(g.Context()); err != nil {
					g.Error(err)
				}
			})
		})
	}
}

// TestNodeIsAddedWhileOneIsDown: the fourth one of three is refused, since it could not vote before the one that is
// down comes back, and nothing is changed. The sixth one of five is added.
func TestNodeIsAddedWhileOneIsDown(t *testing.T) {
	grows(t, 4, func(g *growing) {
		lk := g.over(nil, 0, 1, 2)
		g.try(lk, true)
		g.Kill(2)
		g.try(lk, true)
		want := "redlock: the set was not changed: of 4 members 3 must vote before " + g.Addr(3) + " can, and only 2 could (" + g.Addr(2) + ": unreachable"
		if _, err := lk.Change(g.Context(), Change{Add: g.Addr(3)}, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			g.Errorf("%v, want %s", err, want)
		}
		g.try(lk, true)
		g.change(lk, Change{Remove: g.Addr(2)})
		g.change(lk, Change{Add: g.Addr(3)})
		g.try(lk, true)
	})
	grows(t, 6, func(g *growing) {
		lk := g.over(nil, 0, 1, 2, 3, 4)
		g.try(lk, true)
		g.Kill(2)
		if m := g.change(lk, Change{Add: g.Addr(5)}); len(m.Nodes) != 6 {
			g.Errorf("%+v", m)
		}
		g.try(lk, true)
	})
}

// TestMembersAreTold: Hooks.Joined tells of the nodes that were given and of the description that is learned first;
// Hooks.Members tells of each change, and not of that; and a
// node that was given and is no member, or belongs to another set, gets one Warning.
func TestMembersAreTold(t *testing.T) {
	grows(t, 7, func(g *growing) {
		var mu sync.Mutex
		var joined []Members
		var told []int64
		var warned []string
		hooks := &Hooks{
			Joined: func(m Members) {
				mu.Lock()
				defer mu.Unlock()
				joined = append(joined, m)
			},
			Members: func(m Members) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, m.Epoch)
			},
			Warning: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				warned = append(warned, err.Error())
			},
		}
		use := func(lk *Locker) {
			g.Helper()
			lock, err := lk.Acquire(g.Context(), "a")
			if err == nil {
				err = lock.Release(g.Context())
			}
			if err != nil {
				g.Fatal(err)
			}
		}
		lk := g.over(&Options{Hooks: JoinHooks(hooks, nil)}, 0, 1, 2)
		use(lk)
		operator := g.over(nil, 0, 1, 2)
		g.change(operator, Change{Add: g.Addr(3)})
		use(lk)
		g.change(operator, Change{Remove: g.Addr(0)})
		use(lk)
		pass(time.Second) // hooks are called by other goroutines
		mu.Lock()
		if want := []int64{2, 3}; !slices.Equal(told, want) {
			g.Errorf("told of the epochs %v, want %v", told, want)
		}
		if len(warned) != 1 || warned[0] != "redlock: node 10.0.0.1:6379 was given, and is no member of the set any more: it gets no requests; the members are 10.0.0.2:6379, 10.0.0.3:6379, 10.0.0.4:6379: give this program these" {
			g.Errorf("warned of %q", warned)
		}
		given := Members{Nodes: []string{g.Addr(0), g.Addr(1), g.Addr(2)}, Quorum: 2}
		if len(joined) != 2 || !reflect.DeepEqual(joined[0], given) || joined[1].Epoch != 1 || !slices.Equal(joined[1].Nodes, given.Nodes) || joined[1].Quorum != 2 {
			g.Errorf("joined %+v, want what was given, and the first description", joined)
		}
		joined, told, warned = nil, nil, nil
		mu.Unlock()

		use(g.over(nil, 4, 5, 6))
		pass(time.Second) // all three have been told
		lk = g.over(&Options{Hooks: hooks}, 1, 2, 4)
		use(lk)
		use(lk)
		pass(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 0 {
			g.Errorf("told of the epochs %v, which it has learned first", told)
		}
		members := []string{g.Addr(1), g.Addr(2), g.Addr(3)}
		if len(joined) != 2 || joined[0].Epoch != 0 || !slices.Equal(joined[0].Nodes, []string{g.Addr(1), g.Addr(2), g.Addr(4)}) || joined[1].Epoch != 3 || !slices.Equal(joined[1].Nodes, members) {
			g.Errorf("joined %+v, want the given nodes, and then the members %v", joined, members)
		}
		if want := "redlock: node 10.0.0.5:6379 keeps the description of another set, with the members 10.0.0.5:6379, 10.0.0.6:6379, 10.0.0.7:6379, and has no vote: this program uses the set with the members 10.0.0.2:6379, 10.0.0.3:6379, 10.0.0.4:6379; give it the nodes of one set, or make the node forget the other with redlock members forget"; len(warned) != 1 || warned[0] != want {
			g.Errorf("warned of %q, want %q", warned, want)
		}
	})
}

// TestOperatorDies: a change is taken by a majority, and its operator dies. The same change finishes it, and
// another one finishes it and says that it came first.
func TestOperatorDies(t *testing.T) {
	grows(t, 5, func(g *growing) {
		for _, again := range []int{3, 4} {
			operator := g.over(nil, 0, 1, 2)
			if err := operator.agree(g.Context(), time.Second); err != nil {
				g.Fatal(err)
			}
			view := operator.lanes.View()
			c := Change{Add: g.Addr(3)}
			d, err := c.next(view.Description, time.Now())
			if err != nil {
				g.Fatal(err)
			}
			ballot := fmt.Sprintf("%024d", 1)
			for i := range 2 {
				chosen := []any{"HSET", script.Choice, "epoch", d.Epoch, "promised", ballot, "taken", ballot, "description", d.Text()}
				rdb := redis.NewClient(g.Options(i))
				if err := rdb.Do(g.Context(), chosen...).Err(); err != nil {
					g.Fatal(err)
				}
				rdb.Close()
			}
			time.Sleep(time.Second)
			m, err := g.over(nil, 0, 1, 2).Change(g.Context(), Change{Add: g.Addr(again)}, nil)
			if again == 3 {
				if err != nil || m.Epoch != 2 {
					g.Errorf("the same change: %+v, %v", m, err)
				}
				g.change(g.over(nil, 0, 1, 2), Change{Remove: g.Addr(3)})
				continue
			}
			if !errors.Is(err, ErrOvertaken) {
				g.Errorf("another change: %v", err)
			}
		}
	})
}

// TestSeparatorChanges: the separator of a set is changed, after the locks are over of programs that ran before.
func TestSeparatorChanges(t *testing.T) {
	grows(t, 3, func(g *growing) {
		lk := g.over(&Options{TTL: 4 * time.Second, MaxTTL: 4 * time.Second}, 0, 1, 2)
		if _, err := lk.Acquire(g.Context(), "a/b"); err != nil {
			g.Fatal(err)
		}
		lk.Close()
		began, slash := time.Now(), "/"
		if m := g.change(g.over(&Options{TTL: time.Second}, 0, 1, 2), Change{Separator: &slash}); m.Separator != "/" {
			g.Errorf("the set is %+v", m)
		}
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
			g.Errorf("it took %v", took)
		}
		if _, err := g.over(&Options{TTL: time.Second}, 0, 1, 2).TryAcquire(g.Context(), "a"); err != nil {
			g.Error(err)
		}
	})
}

// TestEmptyNodeIsAdded: a node without a marker is added by a client that has nothing else to do, when its quarantine
// is over.
func TestEmptyNodeIsAdded(t *testing.T) {
	grows(t, 4, func(g *growing) {
		rdb := redis.NewClient(g.Options(3))
		if err := rdb.FlushAll(g.Context()).Err(); err != nil {
			g.Fatal(err)
		}
		rdb.Close()
		began := time.Now()
		g.change(g.over(&Options{TTL: time.Second, MaxTTL: time.Second}, 0, 1, 2), Change{Add: g.Addr(3)})
		if took := time.Since(began); took < 2*time.Second || took > 3*time.Second {
			g.Errorf("it took %v", took)
		}
	})
}

// TestNewcomerLooks: who is given three of four members of a young set, and looks at once, hears of the fourth, too,
// before it says who votes: that one may know longer TTLs.
func TestNewcomerLooks(t *testing.T) {
	grows(t, 4, func(g *growing) {
		for i := range 4 {
			g.Restart(i, false)
		}
		first := g.over(nil, 0, 1, 2)
		l, err := first.Acquire(g.Context(), "a")
		if err != nil {
			g.Fatal(err)
		}
		g.change(first, Change{Add: g.Addr(3)})
		for range 3 {
			g.Hang(3)
			lk := g.over(nil, 0, 1, 2)
			time.AfterFunc(20*time.Millisecond, func() { g.Resume(3) })
			s, err := lk.Inspect(g.Context(), "a")
			if err != nil {
				g.Fatal(err)
			}
			if len(s.Nodes) != 4 {
				g.Errorf("there are %d members", len(s.Nodes))
			}
			for _, n := range s.Nodes {
				if n.Err != nil {
					g.Errorf("%s has no vote: %v", n.Node, n.Err)
				}
			}
		}
		_ = l.Release(g.Context())
	})
}
