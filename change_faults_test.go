package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

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

// TestStuckProgress: a progress callback that does not return delays neither the change nor Close for more than a
// second.
func TestStuckProgress(t *testing.T) {
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

// try checks that a Locker can lock, or cannot.
func (g *growing) try(lk *Locker, want bool) {
	g.Helper()
	l, err := lk.TryAcquire(g.Context(), "tries")
	if err == nil {
		err = l.Release(g.Context())
	}
	if (err == nil) != want {
		g.Errorf("it can lock: %v, want %v: %v", err == nil, want, err)
	}
	time.Sleep(100 * time.Millisecond)
}

// TestOwnOptions: a change after which the operator could not use the set is refused, and nothing is changed.
func TestOwnOptions(t *testing.T) {
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

// TestManyMembersLater: one member after another is replaced, by nodes that have never been one, while a lock is
// renewed, and a call waits for it. It is not lost, the call follows the set, and the programs keep nothing of the nodes
// that are gone.
func TestManyMembersLater(t *testing.T) {
	t.Run("all are alive", func(t *testing.T) { manyMembers(t, false) })
	t.Run("every second one is dead", func(t *testing.T) { manyMembers(t, true) })
}

func manyMembers(t *testing.T, die bool) {
	const n = 3 + 200
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
		if kept := held.claim.Places(); kept > 8 || len(held.marks) > 8 {
			f.Errorf("the lock has %d places, and %d marks", kept, len(held.marks))
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
			if left := f.tokens(node); left > 0 {
				f.Errorf("%d tokens are left on %s", left, node.Name)
			}
		}
	})
}

// TestPlansUseUpNothing: a program that looks a thousand times what a change would do has no more lanes than before, and
// goes on as before; also if the node that would come is dead.
func TestPlansUseUpNothing(t *testing.T) {
	onNodes(t, 5, func(f *fleet) {
		lk := f.locker(Options{TTL: 2 * time.Second}, f.nodes[:3]...)
		l := acquired(f.T, lk, "a", AutoRenew())
		f.nodes[4].Kill()
		for i := range 1000 {
			c := Change{Add: f.nodes[3+i%2].Name}
			switch i % 4 {
			case 2, 3:
				c = Change{Remove: f.nodes[i%3].Name}
			}
			_, err := lk.PlanChange(f.Context(), c, nil)
			if want := c.Add == f.nodes[3].Name || c.Remove != ""; want != (err == nil) {
				f.Fatalf("%+v: %v", c, err)
			}
		}
		pass(time.Second)
		if lanes := len(lk.lanes.Weigh()); lanes > 3+1 {
			f.Errorf("it has %d lanes", lanes)
		}
		f.change(lk, Change{Add: f.nodes[3].Name})
		f.change(lk, Change{Remove: f.nodes[0].Name})
		pass(10 * time.Second)
		if why := l.why(); why != nil {
			f.Error(why)
		}
	})
}

// TestRemovedNodeIsLeft: a client that goes on locking, and waiting, has no connection to a node that is no
// member any more, and makes none.
func TestRemovedNodeIsLeft(t *testing.T) {
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

// TestMergeKeepsPoisonAway: numbers of a node whose clock was far ahead once cost that node its vote, and not all
// others theirs after a change of members.
func TestMergeKeepsPoisonAway(t *testing.T) {
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

// TestChangeBesideAStranger: a member's address leads to a node of another set, of a later epoch. It has no vote, and
// no say in which description is next.
func TestChangeBesideAStranger(t *testing.T) {
	onNodes(t, 5, func(f *fleet) {
		lk := f.locker(Options{}, f.nodes[:3]...)
		f.locks(lk, true)
		pass(time.Second)
		f.nodes[2].Flush()
		f.tell(f.nodes[2], &wire.Description{MaxTTL: 10_000, Epoch: 7, Set: "another", Members: []string{"node2", "node3", "node4"}})
		f.locks(lk, true) // it finds out
		pass(20 * time.Second)
		if _, err := lk.Change(f.Context(), Change{Remove: "node0"}, nil); err == nil || !strings.Contains(err.Error(), "of 2 members 2 must vote, and only 1 could (node2: ineligible: it is a node of another set") {
			t.Errorf("one of the two that vote is removed: %v", err)
		}
		longest, two := time.Minute, 2
		if _, err := lk.Change(f.Context(), Change{MaxTTL: &longest}, nil); !errors.Is(err, ErrNoQuorum) || !strings.Contains(err.Error(), "all 3 members") || !strings.Contains(err.Error(), "node2") {
			t.Errorf("a longer MaxTTL, which needs all members: %v", err)
		}
		if m, err := lk.Change(f.Context(), Change{Quorum: &two}, nil); err != nil || m.Epoch != 2 {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// TestOldMemberDiesAfterAdd: a node was just added, and a member dies before the next change. The new member counts for
// that change: it has lost nothing since it was chosen. One that has lost its data counts only if all members answer.
func TestOldMemberDiesAfterAdd(t *testing.T) {
	for _, tt := range []struct {
		name   string
		strike func(n *arena.Node) // what happens to the new member
		want   bool
	}{
		{"nothing else happens", func(*arena.Node) {}, true},
		{"the new member loses its data", func(n *arena.Node) { n.Flush() }, false},
		{"the new member is restarted", func(n *arena.Node) { n.Kill(); n.Restart(true) }, true},
	} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, another operator %v", tt.name, again), func(t *testing.T) {
				onNodes(t, 4, func(f *fleet) {
					opts := Options{TTL: 2 * time.Second}
					operator := f.locker(opts, f.nodes[:3]...)
					other := f.locker(opts, f.nodes[:3]...) // its renewals may tell the new member first
					l := acquired(f.T, other, "a", AutoRenew())
					f.change(operator, Change{Add: "node3"})
					pass(5 * time.Second)
					tt.strike(f.nodes[3])
					pass(5 * time.Second)
					f.nodes[0].Kill()
					pass(5 * time.Second)
					if again {
						operator = f.locker(opts, f.nodes[1:]...)
					}
					ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
					defer cancel()
					if _, err := operator.Change(ctx, Change{Remove: "node0"}, nil); (err == nil) != tt.want {
						f.Errorf("the change ended with %v", err)
					}
					if why := l.why(); why != nil {
						f.Error(why)
					}
				})
			})
		}
	}
}

// TestMemberDiesWhileOneComes: a member dies, or is given the data of an earlier set, while a node is being added. The new
// one is told at once, as it has noted before it was proposed that it comes: so it counts in the place of the other.
func TestMemberDiesWhileOneComes(t *testing.T) {
	for name, strike := range map[string]func(f *fleet){
		"it dies": func(f *fleet) { f.nodes[0].Kill() },
		"it has another set's data": func(f *fleet) {
			f.nodes[0].Flush()
			f.tell(f.nodes[0], &wire.Description{MaxTTL: 2000, Epoch: 1, Set: "another", Members: []string{"node0", "node1", "node2"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			onNodes(t, 4, func(f *fleet) {
				opts := Options{TTL: 2 * time.Second}
				operator, other := f.locker(opts, f.nodes[:3]...), f.locker(opts, f.nodes[:3]...)
				l := acquired(f.T, other, "a", AutoRenew())
				ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
				defer cancel()
				struck := false
				m, err := operator.Change(ctx, Change{Add: "node3"}, func(string, time.Duration) {
					if !struck {
						struck = true
						strike(f)
					}
				})
				if err != nil || m.Epoch != 2 || !struck {
					t.Fatalf("struck %v; %+v, %v", struck, m, err)
				}
				pass(5 * time.Second)
				f.locks(f.locker(opts, f.nodes[1:]...), true)
				f.locks(other, true)
				if why := l.why(); why != nil {
					f.Error(why)
				}
			})
		})
	}
}
