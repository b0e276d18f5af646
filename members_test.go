package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/script"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestSetGrowsAndShrinksUnderLocks: a set grows from three nodes to five, and shrinks again to the last three, while clients that
// were given the first three lock all the time. None of them is started again, and no two hold the lock.
func TestSetGrowsAndShrinksUnderLocks(t *testing.T) {
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

// TestHooksTellOfMembersInOrder: Hooks.Joined tells of the nodes that were given and of the description that is learned first;
// Hooks.Members tells of each change, and not of that; and a
// node that was given and is no member, or belongs to another set, gets one Warning.
func TestHooksTellOfMembersInOrder(t *testing.T) {
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

// TestSameChangeFinishesWhatADeadOperatorBegan: a change is taken by a majority, and its operator dies. The same change finishes it, and
// another one finishes it and says that it came first.
func TestSameChangeFinishesWhatADeadOperatorBegan(t *testing.T) {
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

// TestNewProgramHearsOfEachMember: who is given three of four members of a young set, and looks at once, hears of the fourth, too,
// before it says who votes: that one may know longer TTLs.
func TestNewProgramHearsOfEachMember(t *testing.T) {
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

// TestClientFollowsASetThatIsMadeAnew: all nodes lose their data while a client cannot reach them, and another client makes a set of
// them anew, a moment later and in another order, with the same quorum or another one. The first client follows.
func TestClientFollowsASetThatIsMadeAnew(t *testing.T) {
	for _, quorum := range []int{2, 3} {
		t.Run(fmt.Sprint("quorum ", quorum), func(t *testing.T) { madeAnew(t, quorum) })
	}
}

func madeAnew(t *testing.T, quorum int) {
	grows(t, 3, func(g *growing) {
		var away atomic.Bool
		clients := make([]*redis.Client, 3)
		for i := range clients {
			o := g.Options(i)
			dial := o.Dialer
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if away.Load() {
					return nil, errors.New("no network")
				}
				return dial(ctx, network, addr)
			}
			clients[i] = redis.NewClient(o)
			g.Cleanup(func() { clients[i].Close() })
		}
		first, err := New(clients, nil)
		if err != nil {
			g.Fatal(err)
		}
		g.Cleanup(func() { first.Close() })
		locked := func(lk *Locker) {
			g.Helper()
			l, err := lk.Acquire(g.Context(), "a")
			if err == nil {
				err = l.Release(g.Context())
			}
			if err != nil {
				g.Fatal(err)
			}
		}
		locked(first)
		away.Store(true)
		for i := range 3 {
			g.Restart(i, false)
		}
		time.Sleep(time.Second)
		locked(g.over(&Options{Quorum: quorum}, 2, 1, 0))
		away.Store(false)
		locked(first)
		if m := first.Members(); m.Quorum != quorum {
			g.Errorf("the first client goes by %+v", m)
		}
	})
}

// TestCloseDuringChange: Close ends a change that waits, whatever it waits for.
func TestCloseDuringChange(t *testing.T) {
	grows(t, 5, func(g *growing) {
		lk := g.over(nil, 0, 1, 2)
		g.change(lk, Change{Add: g.Addr(3)})
		done := make(chan error, 1)
		go func() {
			_, err := lk.Change(context.Background(), Change{Add: g.Addr(4)}, nil)
			done <- err
		}()
		time.Sleep(time.Second)
		began := time.Now()
		lk.Close()
		if took := time.Since(began); took > 2*time.Second {
			g.Errorf("Close took %v", took)
		}
		if err := <-done; !errors.Is(err, ErrClosed) {
			g.Errorf("the change ended with %v", err)
		}
	})
}

// TestChangeIsNoTrouble: a planned change is no failure of renewals to be told of, although the first renewal after it
// finds out that the nodes vote by another description.
func TestChangeIsNoTrouble(t *testing.T) {
	grows(t, 5, func(g *growing) {
		var mu sync.Mutex
		var told []string
		tell := func(what string) { mu.Lock(); defer mu.Unlock(); told = append(told, what) }
		lk := g.over(&Options{Hooks: &Hooks{
			RenewalFailed:    func(_ *Lock, _ time.Duration, err error) { tell(err.Error()) },
			RenewalRecovered: func(*Lock, int) { tell("recovered") },
			Members:          func(m Members) { tell("members") },
		}}, 0, 1, 2)
		operator := g.over(nil, 0, 1, 2)
		l, err := lk.Acquire(g.Context(), "a", AutoRenew())
		if err != nil {
			g.Fatal(err)
		}
		g.change(operator, Change{Add: g.Addr(3)})
		time.Sleep(10 * time.Second)
		g.change(operator, Change{Remove: g.Addr(0)})
		time.Sleep(10 * time.Second)
		if err := l.Release(g.Context()); err != nil {
			g.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(told, []string{"members", "members"}) {
			g.Errorf("told %q", told)
		}
	})
}

// TestProgressThatHangsDelaysNothing: a progress callback that does not return delays neither the change nor Close for more than a
// second.
func TestProgressThatHangsDelaysNothing(t *testing.T) {
	grows(t, 5, func(g *growing) {
		lk := g.over(nil, 0, 1, 2)
		stuck := make(chan struct{})
		defer close(stuck)
		g.change(lk, Change{Add: g.Addr(3)})
		called := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			_, err := lk.Change(context.Background(), Change{Add: g.Addr(4)}, func(string, time.Duration) {
				close(called)
				<-stuck
			})
			done <- err
		}()
		<-called
		began := time.Now()
		lk.Close()
		if took := time.Since(began); took > 3*time.Second {
			g.Errorf("Close took %v", took)
		}
		if err := <-done; !errors.Is(err, ErrClosed) {
			g.Errorf("the change ended with %v", err)
		}
	})
}

// TestChangeWaitsForNodes: a change waits for nodes that are away, and asks no more often than they may come back.
func TestChangeWaitsForNodes(t *testing.T) {
	grows(t, 4, func(g *growing) {
		lk := g.over(nil, 0, 1, 2)
		g.Kill(0)
		g.Kill(1)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
		defer cancel()
		if _, err := lk.Change(ctx, Change{Add: g.Addr(3)}, nil); !errors.Is(err, context.DeadlineExceeded) {
			g.Errorf("the change ended with %v", err)
		}
	})
}

// TestChangeThatShutsOutItsOperatorIsRefused: a change after which the operator could not use the set is refused, and nothing is changed.
func TestChangeThatShutsOutItsOperatorIsRefused(t *testing.T) {
	grows(t, 5, func(g *growing) {
		three := 3
		for name, tt := range map[string]struct {
			options Options
			change  Change
		}{
			"the quorum":                 {Options{Quorum: 2}, Change{Quorum: &three}},
			"the quorum, by a node more": {Options{Quorum: 2}, Change{Add: g.Addr(3)}},
		} {
			operator := g.over(&tt.options, 0, 1, 2)
			g.try(operator, true)
			if m, err := operator.Change(g.Context(), tt.change, nil); err == nil {
				g.Errorf("%s: no error, and the set is %+v", name, m)
			}
			g.try(operator, true)
			g.try(g.over(nil, 0, 1, 2), true)
		}
	})
}

// TestRemovedNodeComesBack: a node that was removed, and was left as it is, can become a member again, and
// votes for clients that have known it all the time.
func TestRemovedNodeComesBack(t *testing.T) {
	grows(t, 4, func(g *growing) {
		client := g.over(nil, 0, 1, 2, 3)
		g.try(client, true)
		operator := g.over(nil, 0, 1, 2, 3)
		for range need.Sized(1, 2, 2) {
			g.change(operator, Change{Remove: g.Addr(0)})
			g.try(client, true)
			time.Sleep(time.Second)
			g.change(operator, Change{Add: g.Addr(0)})
			g.try(client, true)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		g.Kill(1) // three of four are needed
		time.Sleep(time.Second)
		g.try(client, true)
		g.try(operator, true)
	})
}

// TestNodeThatNeverCountsComesBack: a node that has not answered the acquire of a lock, and may carry it out at any time, is
// removed and added again. It gets the token, and has no vote on the lock.
func TestNodeThatNeverCountsComesBack(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		late := make(chan struct{})
		defer close(late)
		lk, _ := f.open(Options{})
		f.nodes[2].Before(func(_ *arena.Host, calls []arena.Call) <-chan struct{} {
			if slices.ContainsFunc(calls, func(c arena.Call) bool { return c.Op == wire.Plain }) {
				return late
			}
			return nil
		})
		l := acquired(f.T, lk, "a", AutoRenew())
		pass(time.Minute)
		f.nodes[2].Before(nil)
		f.change(lk, Change{Remove: f.nodes[2].Name})
		pass(time.Minute)
		f.change(lk, Change{Add: f.nodes[2].Name})
		pass(time.Minute)
		if maps.Collect(f.nodes[2].Tokens())["a"] != l.Token() {
			f.Fatal("the node has not been given the token again")
		}
		if h := handle(f.T, l); !slices.Equal(h.Healed, []string{f.nodes[2].Name}) {
			f.Errorf("without a vote: %v", h.Healed)
		}
	})
}

// TestMembersComeBack: each member in turn is removed and added again, by one process.
func TestMembersComeBack(t *testing.T) {
	grows(t, 3, func(g *growing) {
		operator := g.over(nil, 0, 1, 2)
		for i := range 3 {
			g.change(operator, Change{Remove: g.Addr(i)})
			g.change(operator, Change{Add: g.Addr(i)})
		}
		g.try(operator, true)
	})
}

// TestRemovedNodeHasNoConnections: a client that goes on locking, and waiting, has no connection to a node that is no
// member any more, and makes none.
func TestRemovedNodeHasNoConnections(t *testing.T) {
	need.Full(t) // the same few seconds again and again
	for _, far := range []time.Duration{0, 5 * time.Millisecond} {
		grows(t, 4, func(g *growing) {
			var mu sync.Mutex
			open, made := 0, 0
			for i := range 4 {
				g.Path(i).SetDelay(far)
			}
			count := func(opened, dialed int) {
				mu.Lock()
				defer mu.Unlock()
				open += opened
				made += dialed
			}
			var clients []*redis.Client
			for i := range 4 {
				o := g.Options(i)
				o.Addr, o.Dialer = g.Addr(i), func(ctx context.Context, network, addr string) (net.Conn, error) {
					if addr != g.Addr(0) {
						return g.dial(ctx, network, addr)
					}
					count(0, 1)
					conn, err := g.dial(ctx, network, addr)
					if err == nil {
						count(1, 0)
						conn = &closing{Conn: conn, closed: func() { count(-1, 0) }}
					}
					return conn, err
				}
				c := redis.NewClient(o)
				g.Cleanup(func() { c.Close() })
				clients = append(clients, c)
			}
			lk, err := New(clients, &Options{TTL: 2 * time.Second})
			if err != nil {
				g.Fatal(err)
			}
			g.Cleanup(func() { lk.Close() })
			ctx, stop := context.WithCancel(g.Context())
			var calls sync.WaitGroup
			for range 3 {
				calls.Go(func() {
					for ctx.Err() == nil {
						_ = lk.Do(ctx, "a", func(ctx context.Context, l *Lock) error {
							time.Sleep(200 * time.Millisecond)
							return nil
						})
					}
				})
			}
			time.Sleep(2 * time.Second)
			g.change(g.over(&Options{TTL: 2 * time.Second}, 0, 1, 2, 3), Change{Remove: g.Addr(0)})
			time.Sleep(4 * time.Second)
			mu.Lock()
			if open > 0 {
				g.Errorf("%v away: %d connections are open, of %d", far, open, made)
			}
			made = 0
			mu.Unlock()
			g.Kill(0)
			time.Sleep(4 * time.Second)
			mu.Lock()
			if made > 0 {
				g.Errorf("%d connections were made", made)
			}
			mu.Unlock()
			stop()
			calls.Wait()
		})
	}
}

// A closing connection says that it is closed.
type closing struct {
	net.Conn
	once   sync.Once
	closed func()
}

func (c *closing) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}

// TestChangeSpreadsNoNumberOfAFastClock: numbers of a node whose clock was far ahead once cost that node its vote, and not all
// others theirs after a change of members.
func TestChangeSpreadsNoNumberOfAFastClock(t *testing.T) {
	grows(t, 4, func(g *growing) {
		lk := g.over(nil, 0, 1, 2)
		l, err := lk.TryAcquire(g.Context(), "a")
		if err != nil {
			g.Fatal(err)
		}
		last := l.Fence()
		if err := l.Release(g.Context()); err != nil {
			g.Error(err)
		}
		ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
		if _, err := g.Mini(2).ZAdd("redlock:fence", float64(ahead), *script.Bucket("a")); err != nil {
			g.Fatal(err)
		}
		high, other := time.Now().Add(-time.Hour).UnixMicro(), *script.Bucket("b")
		if other == *script.Bucket("a") {
			g.Fatal("the same bucket")
		}
		if _, err := g.Mini(1).ZAdd("redlock:fence", float64(high), other); err != nil {
			g.Fatal(err)
		}
		g.change(lk, Change{Add: g.Addr(3)})
		for _, i := range []int{0, 1, 2} {
			if n, _ := g.Mini(i).ZScore("redlock:fence", other); int64(n) != high {
				g.Errorf("node %d has %v, and not what one of them had", i, n)
			}
		}
		time.Sleep(time.Second)
		l, err = lk.TryAcquire(g.Context(), "a")
		if err != nil {
			g.Fatal(err)
		}
		if f := l.Fence(); f <= last || f >= ahead {
			g.Errorf("the fence is %d, and was %d; the wrong number is %d", f, last, ahead)
		}
		for _, i := range []int{0, 1} {
			if n, _ := g.Mini(i).ZScore("redlock:fence", *script.Bucket("a")); int64(n) >= ahead {
				g.Errorf("node %d has the wrong number", i)
			}
		}
	})
}

// TestTryDuringChange: a call that finds that the nodes have been changed goes by the change, and does not fail.
func TestTryDuringChange(t *testing.T) {
	need.Full(t) // thousands of calls
	for _, far := range []time.Duration{0, 100 * time.Microsecond, 300 * time.Microsecond} {
		grows(t, 4, func(g *growing) {
			for i := range 4 {
				g.Path(i).SetDelay(far)
				g.Path(i).SetJitter(far)
			}
			operator := g.over(nil, 0, 1, 2)
			if _, err := operator.PlanChange(g.Context(), Change{Add: g.Addr(3)}, nil); err != nil { // it answers by then
				g.Fatal(err)
			}
			ctx, stop := context.WithCancel(g.Context())
			var calls sync.WaitGroup
			kinds := [][]AcquireOption{{}, {Shared()}, {Slots(3)}} // by plain commands, and by scripts
			for i := range 2 {
				lk := g.over(nil, 0, 1, 2)
				for j := range kinds {
					calls.Go(func() {
						for ctx.Err() == nil {
							began := time.Now()
							l, err := lk.TryAcquire(g.Context(), fmt.Sprint(i, "-", j), kinds[j]...)
							if err != nil {
								g.Errorf("%v away: after %v: %v", far, time.Since(began), err)
								continue
							}
							_ = l.Release(g.Context())
							time.Sleep(2 * time.Millisecond)
						}
					})
				}
			}
			time.Sleep(20 * time.Millisecond)
			calls.Go(func() {
				g.change(operator, Change{Add: g.Addr(3)})
				time.Sleep(20 * time.Millisecond)
				stop()
			})
			calls.Wait()
		})
	}
}

// TestLockOutlivesManyReplacements: one member after another is replaced, by nodes that have never been one, while a lock is
// renewed, and a call waits for it. It is not lost, the call follows the set, and the programs keep nothing of the nodes
// that are gone.
func TestLockOutlivesManyReplacements(t *testing.T) {
	t.Run("all are alive", func(t *testing.T) { manyMembers(t, false) })
	t.Run("every second one is dead", func(t *testing.T) { manyMembers(t, true) })
}

func manyMembers(t *testing.T, die bool) {
	n := 3 + need.Sized(20, 200, 200)
	onNodes(t, n, func(f *fleet) {
		opts, first := Options{TTL: 2 * time.Second}, f.nodes[:3]
		holder, operator := f.locker(opts, first...), f.locker(opts, first...)
		waiter := f.locker(opts, first...)
		programs := []*Locker{holder, operator, waiter}
		held, other := acquired(f.T, holder, "a", AutoRenew()), acquired(f.T, holder, "b", AutoRenew())
		got := make(chan error, 1)
		go func() {
			l, err := waiter.Acquire(f.Context(), "a")
			if err == nil {
				err = l.Release(f.Context())
			}
			got <- err
		}()
		for i := 3; i < n; i++ {
			both := []Change{{Add: f.nodes[i].Name}, {Remove: f.nodes[i-3].Name}}
			if die && i%2 == 0 { // it will never be told
				f.nodes[i-3].Kill()
				slices.Reverse(both)
			}
			for _, c := range both {
				f.change(operator, c)
				time.Sleep(3 * time.Second)
			}
			if why := cmp.Or(held.why(), other.why()); why != nil {
				f.Fatalf("after %d replacements: %v", i-2, why)
			}
		}
		for _, lk := range programs {
			if lanes := len(lk.lanes.Weigh()); lanes > 3+3+5 {
				f.Errorf("%d lanes to three members", lanes)
			}
		}
		if kept := held.claim.Places(); kept > 8 || len(held.records) > 8 {
			f.Errorf("the lock has %d places, and %d marks", kept, len(held.records))
		}
		h, err := other.Detach()
		if err == nil {
			other, err = operator.Attach(f.Context(), h)
		}
		if err == nil {
			err = other.Release(f.Context())
		}
		if err != nil {
			f.Error(err)
		}
		if err := held.Release(f.Context()); err != nil {
			f.Error(err)
		}
		select {
		case err := <-got:
			if err != nil {
				f.Error(err)
			}
		case <-time.After(10 * time.Second):
			f.Error("the call still waits")
		}
		pass(time.Second)
		for _, node := range f.nodes[n-3:] {
			if left := f.Tokens(node); left > 0 {
				f.Errorf("%d tokens are left on %s", left, node.Name)
			}
		}
	})
}
