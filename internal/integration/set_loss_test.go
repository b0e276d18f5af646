package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestDescriptionComesBack: nodes that have lost their data get the description back from the programs that
// run, whatever those call the nodes.
func TestDescriptionComesBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		lost int
	}{{"one node", 1}, {"a majority", 2}, {"all", 3}} {
		for _, other := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, another spelling: %v", tt.name, other), func(t *testing.T) {
				onNodes(t, 3, func(f *fleet) {
					first := f.locker(redlock.Options{}, f.nodes...)
					f.locks(first, true)
					pass(time.Second)
					was := f.Agrees(f.nodes...)
					lk := first
					if other {
						lk = f.spelled(redlock.Options{}, func(name string) string { return "alias-of-" + name })
						f.locks(lk, true)
						first.Close()
					}
					for _, n := range f.nodes[:tt.lost] {
						n.Flush()
					}
					f.locks(lk, tt.lost == 1) // finds out
					pass(time.Second)
					if is := f.Agrees(f.nodes...); is.Text() != was.Text() {
						t.Errorf("it is %s, and was %s", is.Text(), was.Text())
					}
					f.locks(lk, tt.lost == 1)
					pass(15 * time.Second)
					f.locks(lk, true)
				})
			})
		}
	}
}

// TestMostHaveForgotten: of a set that has been changed, a client may have missed later changes. If most members have lost
// their data, nobody tells them the description again, and each call says what an operator has to do. When the set is
// restored, the programs that run go on.
func TestMostHaveForgotten(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, second := f.changed()
		f.nodes[2].Kill()
		for _, n := range f.nodes[:2] {
			n.Flush()
		}
		refused := func(lk *redlock.Locker) {
			f.Helper()
			for range 3 {
				if err := f.locks(lk, false); err == nil || !strings.Contains(err.Error(), "2 of the nodes node0, node1, node2 have lost the description of their set (the key redlock:set), and ") || !strings.Contains(err.Error(), "redlock members restore") {
					f.Error(err)
				}
				pass(20 * time.Second)
			}
		}
		_ = f.locks(lk, false) // finds out
		refused(lk)
		f.nodes[2].Restart(true)
		pass(20 * time.Second)
		refused(lk)
		if _, err := f.over(redlock.Options{}, f.nodes...); err == nil || !strings.Contains(err.Error(), "redlock members restore") {
			f.Errorf("New: %v", err)
		}
		for _, n := range f.nodes[:2] {
			if told := f.Kept(n); told.Description != nil {
				f.Errorf("%s was told %s", n.Name, told.Text())
			}
		}
		restored := *second.Next()
		restored.Set = "restored"
		for _, n := range f.nodes {
			n.Forget()
			f.Tell(n, &restored)
		}
		f.locks(lk, false) // finds out, and the nodes have no vote
		pass(20 * time.Second)
		f.locks(lk, true)
		f.locks(f.locker(redlock.Options{}, f.nodes...), true)
		f.Agrees(f.nodes...)
	})
}

// TestOldFileAndALoss: of a set that was changed twice, one member has started from its first file, and another one has lost its
// data, while no program ran. A program that is started goes by the first description, for which the third member vouches,
// and gets no lock. The error and the Warning say to restore the set, and not to make the third member forget the last one.
func TestOldFileAndALoss(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, second := f.changed()
		lk.Close()
		first := &wire.Description{MaxTTL: second.MaxTTL, Epoch: 1, Set: second.Set, Members: second.Members}
		third := first.Next().Next()
		for _, n := range f.nodes {
			n.Keep(wire.Kept{Self: n.Name, Description: third}.String())
		}
		f.nodes[0].Restore(wire.Kept{Self: "node0", Description: first}.String())
		f.nodes[2].Flush()
		var warned warnings
		lk = f.locker(redlock.Options{Hooks: &redlock.Hooks{Warning: warned.add}}, f.nodes...)
		_ = f.locks(lk, false) // finds out
		for range 3 {
			pass(20 * time.Second)
			err := f.locks(lk, false)
			if want := "node1: ineligible: it keeps a later description of the set (epoch 3) than this program goes by (1): if no change is under way, redlock members restore"; !strings.Contains(message(err), want) {
				f.Errorf("%v, want %s", err, want)
			}
		}
		if want := "redlock: node node1 keeps a later description of the set (epoch 3, with the members node0, node1, node2), which no majority of the members keeps, and has no vote: if no change is under way, the others may be out of date (this program goes by epoch 1, node0 keeps epoch 1); restore the set with redlock members restore"; warned.all() != want {
			f.Errorf("it has warned of %s, want %s", warned.all(), want)
		}
		restored := *third.Next()
		restored.Set = "restored"
		for _, n := range f.nodes {
			n.Remake(wire.Kept{Self: n.Name, Description: &restored}.String())
		}
		_ = f.locks(lk, false) // finds out, and the nodes have no vote
		pass(20 * time.Second)
		f.locks(lk, true)
	})
}

// TestKeptNoneWhenTheSetWasNew: a program that comes in hears of two nodes that they keep no description, since they have not
// been told yet, and later of the third that it keeps a description that came after a change. They have lost nothing.
func TestKeptNoneWhenTheSetWasNew(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		first := &wire.Description{MaxTTL: 10_000, Epoch: 1, Set: "new", Members: []string{"node0", "node1", "node2"}, Since: 1}
		second := first.Next()
		second.Quorum = 3
		f.Tell(f.nodes[2], second)
		f.nodes[2].Hang(true)
		lk, err := f.over(redlock.Options{}, f.nodes...)
		if err != nil {
			f.Fatal(err)
		}
		for _, n := range f.nodes[:2] {
			f.Tell(n, second)
			n.Hang(true)
		}
		f.nodes[2].Hang(false)
		for range 3 {
			if _, err := lk.TryAcquire(f.Context(), "a"); err == nil || strings.Contains(err.Error(), "have lost") {
				f.Error(err)
			}
			pass(time.Second)
		}
		for _, n := range f.nodes {
			n.Hang(false)
		}
		pass(20 * time.Second)
		f.locks(lk, true)
	})
}

// TestTwoFirstSets: while the only node is away that keeps the first description of the set, a program makes another set of
// the same nodes, and then one more node loses its data. Each of the three keeps something else, and the set heals by itself.
func TestTwoFirstSets(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		first := f.locker(redlock.Options{}, f.nodes...)
		f.locks(first, true)
		f.nodes[1].Hang(true)
		f.nodes[0].Flush()
		f.nodes[2].Flush()
		pass(time.Second)
		second, err := f.over(redlock.Options{}, f.nodes...)
		if err != nil {
			f.Fatal(err)
		}
		pass(20 * time.Second)
		f.locks(second, true)
		f.nodes[2].Flush()
		f.nodes[1].Hang(false)
		for range 3 {
			_, _ = first.TryAcquire(f.Context(), "found out")
			_, _ = second.TryAcquire(f.Context(), "found out as well")
			pass(20 * time.Second)
		}
		f.locks(first, true)
		f.locks(second, true)
	})
}

// TestRivalSetHasChanged: the same, but a client heard of the other set before the third node lost its data, and that set has
// changed since. The client tells the third node nothing: the other set may have a quorum elsewhere.
func TestRivalSetHasChanged(t *testing.T) {
	onNodes(t, 4, func(f *fleet) {
		lk := f.locker(redlock.Options{}, f.nodes[:3]...)
		f.locks(lk, true)
		pass(time.Second)
		first := f.Agrees(f.nodes[:3]...)
		anew := &wire.Description{Epoch: 1, Set: "anew", Members: first.Members, MaxTTL: first.MaxTTL, Since: first.Since + 1}
		f.nodes[1].Hang(true)
		f.nodes[2].Hang(true)
		f.nodes[0].Flush()
		f.Tell(f.nodes[0], anew)
		_, _ = lk.TryAcquire(f.Context(), "found out")
		pass(time.Second)
		second := anew.Next() // while the client does nothing, node3 takes the place of node2
		second.Members = []string{"node0", "node1", "node2", "node3"}
		third := second.Next()
		third.Members = []string{"node0", "node1", "node3"}
		f.Tell(f.nodes[0], third)
		f.Tell(f.nodes[3], third)
		f.nodes[1].Flush()
		apart := func(near, far []*arena.Node) {
			for _, n := range near {
				n.Hang(false)
			}
			for _, n := range far {
				n.Hang(true)
			}
		}
		apart(f.nodes[1:3], []*arena.Node{f.nodes[0], f.nodes[3]})
		for range 20 {
			_, _ = lk.TryAcquire(f.Context(), "found out")
			pass(time.Second)
		}
		_ = f.locks(lk, false)
		if told := f.Kept(f.nodes[1]); told.Description != nil {
			f.Errorf("node1 was told %s", told.Text())
		}
		apart([]*arena.Node{f.nodes[0], f.nodes[3]}, f.nodes[1:3])
		f.locks(f.locker(redlock.Options{}, f.nodes[0], f.nodes[1], f.nodes[3]), true)
	})
}

// TestAwayAfterAnotherDescription: a client knows a set that was never changed, as far as it knows, and hears of a member that
// keeps something else. When that one is away afterwards, the client does not tell a node that has lost its data what it
// knows: the set goes on elsewhere, and there would be two holders.
func TestAwayAfterAnotherDescription(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after func(f *fleet, first *wire.Description) (others []*arena.Node) // what happens while the client does nothing
	}{
		{"a later one", func(f *fleet, first *wire.Description) []*arena.Node {
			second := first.Next() // node0 is dead, and is replaced by node3
			second.Members = []string{"node1", "node2"}
			third := second.Next()
			third.Members = []string{"node1", "node2", "node3"}
			for _, n := range f.nodes[1:] {
				f.Tell(n, third)
			}
			return f.nodes[1:]
		}},
		{"a set that was restored without them", func(f *fleet, first *wire.Description) []*arena.Node {
			restored := first.Next()
			restored.Set, restored.Members = "restored", []string{"node2", "node3", "node4"}
			f.nodes[0].Flush()
			f.nodes[2].Forget()
			for _, n := range f.nodes[2:] {
				f.Tell(n, restored)
			}
			return f.nodes[2:]
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 5, func(f *fleet) {
				sleeper := f.locker(redlock.Options{}, f.nodes[:3]...)
				f.locks(sleeper, true)
				pass(time.Second)
				served := f.locker(redlock.Options{}, tt.after(f, f.Agrees(f.nodes[:3]...))...)
				pass(20 * time.Second)
				f.locks(served, true)
				f.nodes[1].Flush()
				_, _ = sleeper.TryAcquire(f.Context(), "found out")
				pass(time.Second)
				f.nodes[2].Hang(true)
				for range 3 {
					_ = f.locks(sleeper, false)
					pass(10 * time.Second)
				}
				if told := f.Kept(f.nodes[1]); told.Description != nil && told.Epoch == 1 {
					f.Errorf("node1 was told %s", told.Text())
				}
				f.nodes[2].Hang(false)
				pass(20 * time.Second)
				f.locks(served, true)
			})
		})
	}
}

// TestHalfHasForgotten: one of two members of a set that was changed loses its data. It is told by what the other one keeps.
func TestHalfHasForgotten(t *testing.T) {
	onNodes(t, 2, func(f *fleet) {
		lk, _ := f.changed()
		f.nodes[0].Flush()
		_, _ = lk.TryAcquire(f.Context(), "found out")
		pass(20 * time.Second)
		f.locks(lk, true)
		f.Agrees(f.nodes...)
	})
}

// TestMadeAnewBesideAMember: most members lose their data while another one hangs, and a program that starts makes the set
// anew. All programs go by that. The member that keeps the description of before has no vote until an operator makes it
// forget that.
func TestMadeAnewBesideAMember(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		before, _ := f.changed()
		last := f.nodes[2]
		last.Hang(true)
		for _, n := range f.nodes[:2] {
			n.Flush()
		}
		after := f.locker(redlock.Options{}, f.nodes...)
		if _, err := after.Acquire(f.Context(), "early"); err != nil {
			t.Fatal(err)
		}
		last.Hang(false)
		pass(20 * time.Second)
		for _, lk := range []*redlock.Locker{before, after} {
			_, _ = lk.TryAcquire(f.Context(), "found out")
			pass(time.Second)
			f.locks(lk, true)
		}
		if told := f.Kept(last); told.Epoch != 2 {
			t.Errorf("it was told %v", told)
		}
		last.Forget()
		_, _ = after.TryAcquire(f.Context(), "found out")
		pass(20 * time.Second)
		f.nodes[0].Kill()
		for _, lk := range []*redlock.Locker{before, after} {
			_, _ = lk.TryAcquire(f.Context(), "found out")
			pass(time.Second)
			f.locks(lk, true)
		}
	})
}

// TestSleeperTakesNoOtherSet: a client knows a set that has other members by now. The former ones serve others, or
// have lost their data, and it does not take them: the lock is held.
func TestSleeperTakesNoOtherSet(t *testing.T) {
	for _, tt := range []struct {
		name  string
		by    int64 // the epoch that the sleeper knows
		after func(f *fleet)
	}{
		{"one serves others, two are emptied", 2, func(f *fleet) {
			f.Tell(f.nodes[0], &wire.Description{MaxTTL: 10_000, Epoch: 4, Set: "another", Members: []string{"node0", "10.0.0.8:1", "10.0.0.9:1"}})
		}},
		{"two serve others, of which one loses its data, and one is down", 1, func(f *fleet) {
			for _, n := range f.nodes[:2] {
				f.Tell(n, &wire.Description{MaxTTL: 10_000, Epoch: 3, Set: "another", Members: []string{"node0", "node1"}})
			}
			theirs := f.locker(redlock.Options{}, f.nodes[:2]...)
			pass(20 * time.Second)
			f.locks(theirs, true)
			f.nodes[2].Kill()
			f.nodes[0].Flush()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 6, func(f *fleet) {
				sleeper := f.locker(redlock.Options{}, f.nodes[:3]...)
				f.locks(sleeper, true)
				pass(time.Second)
				known := *f.Agrees(f.nodes[:3]...).Copy()
				if known.Epoch = tt.by; tt.by > 1 {
					for _, n := range f.nodes[:3] {
						f.Tell(n, &known)
					}
					f.locks(sleeper, true)
					pass(time.Second)
				}
				now := known
				now.Epoch, now.Members = 9, []string{"node3", "node4", "node5"}
				for _, n := range f.nodes[3:] {
					f.Tell(n, &now)
				}
				lk := f.locker(redlock.Options{}, f.nodes[3:]...)
				for _, n := range f.nodes[:3] {
					n.Flush()
				}
				pass(20 * time.Second)
				tt.after(f)
				atRest(f.T, lk, "locks", redlock.AutoRenew())
				for range 4 {
					f.locks(sleeper, false)
					pass(20 * time.Second)
				}
			})
		})
	}
}

// TestCopyOfAMember: a server was set up with a copy of the data of another member. It has no vote, says why, and
// clients do not look for the member that it is not, over and over.
func TestCopyOfAMember(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			onNodes(t, 3, func(f *fleet) {
				before, second := f.described()
				f.nodes[2].Flush()
				f.TellAs(f.nodes[2], "node0", &second)
				for _, lk := range []*redlock.Locker{before, f.locker(redlock.Options{}, f.nodes[order[0]], f.nodes[order[1]], f.nodes[order[2]])} {
					_, _ = lk.TryAcquire(f.Context(), "found out")
					pass(20 * time.Second)
					f.locks(lk, true)
					pass(time.Minute)
					f.locks(lk, true)
					if n := f.lanes(lk); n > 3+1 {
						t.Errorf("it has %d lanes", n)
					}
					s, err := lk.Inspect(f.Context(), "locks")
					if err != nil {
						t.Fatal(err)
					}
					said := 0
					for _, n := range s.Nodes {
						if n.Err != nil && strings.Contains(n.Err.Error(), "says that it is the member node0: it has a copy of its data") {
							said++
						}
					}
					if said != 1 {
						t.Errorf("%+v", s.Nodes)
					}
				}
			})
		})
	}
}

// TestCopyForgets: a node that has the data of another member, and is made to forget it, is the member that it was.
func TestCopyForgets(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, next := f.described()
		slices.Reverse(next.Members) // the member that it is not comes first
		for i, n := range f.nodes {
			if i == 0 {
				n.Flush()
			}
			f.TellAs(n, f.nodes[max(i, 2-2*i)].Name, &next) // the first one says that it is the last one
		}
		_, _ = lk.TryAcquire(f.Context(), "found out")
		pass(time.Second)
		f.nodes[0].Forget()
		for range 2 {
			f.locks(lk, true)
			pass(20 * time.Second)
		}
		f.Agrees(f.nodes...)
		if n := f.lanes(lk); n != 3 {
			t.Errorf("it has %d lanes", n)
		}
		f.nodes[1].Kill()
		_, _ = lk.TryAcquire(f.Context(), "found out")
		pass(time.Second)
		f.locks(lk, true)
	})
}

// TestCopyIsNotAdded: a server with a copy of a member's data cannot be added to the set before it was emptied.
func TestCopyIsNotAdded(t *testing.T) {
	onNodes(t, 4, func(f *fleet) {
		lk := f.locker(redlock.Options{}, f.nodes[:3]...)
		f.locks(lk, true)
		pass(time.Second)
		f.TellAs(f.nodes[3], "node0", f.Agrees(f.nodes[:3]...))
		if _, err := lk.Change(f.Context(), redlock.Change{Add: "node3"}, nil); err == nil || !strings.Contains(err.Error(), "node3: it says that it is the member node0") {
			t.Errorf("a copy is added: %v", err)
		}
		f.nodes[3].Flush()
		if m, err := lk.Change(f.Context(), redlock.Change{Add: "node3"}, nil); err != nil || len(m.Nodes) != 4 {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// TestTwoDescriptionsOfOneEpoch: a majority of the members of each keeps the other. Nobody can count by either, and a
// client does not go from the one to the other and back, with a lane more each time.
func TestTwoDescriptionsOfOneEpoch(t *testing.T) {
	onNodes(t, 4, func(f *fleet) {
		var both []*wire.Description
		for _, members := range [][]string{{"node0", "node1", "node2"}, {"node1", "node2", "node3"}} {
			both = append(both, &wire.Description{MaxTTL: 10_000, Epoch: 5, Set: "set", Members: members, Former: []string{"node0", "node1", "node2", "node3"}})
		}
		for i, n := range f.nodes {
			n.Flush()
			f.Tell(n, both[1-i/2])
		}
		for _, given := range [][]*arena.Node{f.nodes[:3], f.nodes[1:]} {
			lk := f.locker(redlock.Options{}, given...)
			for range 20 {
				f.locks(lk, false)
				pass(time.Second)
			}
			if n := len(lk.Members().Nodes); n != 3 {
				t.Errorf("it has %d members", n)
			}
			if n := f.lanes(lk); n > 10 {
				t.Errorf("it has made %d lanes", n)
			}
		}
	})
}

// TestNodeOfALivingSet: a node is not taken from a set of which a majority does not keep the client's, although
// it is a member of both.
func TestNodeOfALivingSet(t *testing.T) {
	onNodes(t, 5, func(f *fleet) {
		ours := f.locker(redlock.Options{}, f.nodes[:3]...)
		f.locks(ours, true)
		pass(time.Second)
		theirs := &wire.Description{MaxTTL: 10_000, Epoch: 7, Set: "theirs", Members: []string{"node1", "node2", "node3", "node4"}}
		f.nodes[2].Flush()
		for _, n := range f.nodes[2:] {
			f.Tell(n, theirs)
		}
		for range 3 {
			f.locks(ours, true)
			pass(20 * time.Second)
		}
		for _, n := range f.nodes[2:] {
			if told := f.Kept(n); told.Set != "theirs" {
				t.Errorf("%s was told %s", n.Name, told.Text())
			}
		}
	})
}
