package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestPlansUseUpNothing: a program that looks a thousand times what a change would do has no more lanes than before, and
// goes on as before; also if the node that would come is dead.
func TestPlansUseUpNothing(t *testing.T) {
	onNodes(t, 5, func(f *fleet) {
		lk := f.locker(redlock.Options{TTL: 2 * time.Second}, f.nodes[:3]...)
		l := atRest(f.T, lk, "a", redlock.AutoRenew())
		f.nodes[4].Kill()
		for i := range 1000 {
			c := redlock.Change{Add: f.nodes[3+i%2].Name}
			switch i % 4 {
			case 2, 3:
				c = redlock.Change{Remove: f.nodes[i%3].Name}
			}
			_, err := lk.PlanChange(f.Context(), c, nil)
			if want := c.Add == f.nodes[3].Name || c.Remove != ""; want != (err == nil) {
				f.Fatalf("%+v: %v", c, err)
			}
		}
		pass(time.Second)
		if lanes := f.lanes(lk); lanes > 3+1 {
			f.Errorf("it has %d lanes", lanes)
		}
		f.change(lk, redlock.Change{Add: f.nodes[3].Name})
		f.change(lk, redlock.Change{Remove: f.nodes[0].Name})
		pass(10 * time.Second)
		if why := whyEnded(l); why != nil {
			f.Error(why)
		}
	})
}

// TestChangeBesideAStranger: a member's address leads to a node of another set, of a later epoch. It has no vote, and
// no say in which description is next.
func TestChangeBesideAStranger(t *testing.T) {
	onNodes(t, 5, func(f *fleet) {
		lk := f.locker(redlock.Options{}, f.nodes[:3]...)
		f.locks(lk, true)
		pass(time.Second)
		f.nodes[2].Flush()
		f.Tell(f.nodes[2], &wire.Description{MaxTTL: 10_000, Epoch: 7, Set: "another", Members: []string{"node2", "node3", "node4"}})
		f.locks(lk, true) // it finds out
		pass(20 * time.Second)
		if _, err := lk.Change(f.Context(), redlock.Change{Remove: "node0"}, nil); err == nil || !strings.Contains(err.Error(), "of 2 members 2 must vote, and only 1 could (node2: ineligible: it is a node of another set") {
			t.Errorf("one of the two that vote is removed: %v", err)
		}
		longest, two := time.Minute, 2
		if _, err := lk.Change(f.Context(), redlock.Change{MaxTTL: &longest}, nil); !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(err.Error(), "all 3 members") || !strings.Contains(err.Error(), "node2") {
			t.Errorf("a longer MaxTTL, which needs all members: %v", err)
		}
		if m, err := lk.Change(f.Context(), redlock.Change{Quorum: &two}, nil); err != nil || m.Epoch != 2 {
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
					opts := redlock.Options{TTL: 2 * time.Second}
					operator := f.locker(opts, f.nodes[:3]...)
					other := f.locker(opts, f.nodes[:3]...) // its renewals may tell the new member first
					l := atRest(f.T, other, "a", redlock.AutoRenew())
					f.change(operator, redlock.Change{Add: "node3"})
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
					if _, err := operator.Change(ctx, redlock.Change{Remove: "node0"}, nil); (err == nil) != tt.want {
						f.Errorf("the change ended with %v", err)
					}
					if why := whyEnded(l); why != nil {
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
			f.Tell(f.nodes[0], &wire.Description{MaxTTL: 2000, Epoch: 1, Set: "another", Members: []string{"node0", "node1", "node2"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			onNodes(t, 4, func(f *fleet) {
				opts := redlock.Options{TTL: 2 * time.Second}
				operator, other := f.locker(opts, f.nodes[:3]...), f.locker(opts, f.nodes[:3]...)
				l := atRest(f.T, other, "a", redlock.AutoRenew())
				ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
				defer cancel()
				struck := false
				m, err := operator.Change(ctx, redlock.Change{Add: "node3"}, func(string, time.Duration) {
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
				if why := whyEnded(l); why != nil {
					f.Error(why)
				}
			})
		})
	}
}

// TestInspectWhileTheSetChanges: a program that has not heard of the last change yet learns of it while it asks the nodes. It
// asks the members that there are now, and finds that they vote.
func TestInspectWhileTheSetChanges(t *testing.T) {
	onNodes(t, 5, func(f *fleet) {
		idle, operator := f.locker(redlock.Options{TTL: time.Second}, f.nodes[:3]...), f.locker(redlock.Options{TTL: time.Second}, f.nodes[:3]...)
		f.locks(idle, true)
		f.locks(operator, true)
		three := 3
		for _, c := range []redlock.Change{{Quorum: &three}, {Add: "node3"}, {Remove: "node0"}, {Add: "node4"}} {
			if _, err := operator.Change(f.Context(), c, nil); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			status, err := idle.Inspect(f.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range status.Nodes {
				if n.Err != nil {
					t.Errorf("after %+v: %v", c, n.Err)
				}
			}
			if got, want := len(status.Nodes), len(operator.Members().Nodes); got != want {
				t.Errorf("after %+v: %d nodes, and not %d", c, got, want)
			}
		}
	})
}

// TestBreakTakesFewRounds: of nodes that answer in another order each time, a lock is broken in few rounds, of
// which each takes as long as an answer at most.
func TestBreakTakesFewRounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 5)
		const slowest = 41 * time.Millisecond // twice a quarter of a millisecond, and 20 ms on both ways
		for _, n := range f.nodes {
			n.Delay(time.Millisecond, 20*time.Millisecond)
		}
		lk := f.client(&redlock.Options{}, 0)
		pass(time.Second)
		for range 50 {
			l, err := lk.TryAcquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			began := time.Now()
			if err := lk.Break(t.Context(), "a", l.Token()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 5*slowest { // the first one finds the token, and a look waits for the one before at each node
				t.Errorf("it took %v", took)
			}
			_ = l.Release(t.Context())
			pass(time.Second)
		}
	})
}
