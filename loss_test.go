package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	arena "github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
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
					first := f.locker(Options{}, f.nodes...)
					f.locks(first, true)
					pass(time.Second)
					was := f.agrees(f.nodes...)
					lk := first
					if other {
						lk = f.spelled(Options{}, func(name string) string { return "alias-of-" + name })
						f.locks(lk, true)
						first.Close()
					}
					for _, n := range f.nodes[:tt.lost] {
						n.Flush()
					}
					f.locks(lk, tt.lost == 1) // finds out
					pass(time.Second)
					if is := f.agrees(f.nodes...); is.Text() != was.Text() {
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

// TestSleeperTellsNobody: of a set that has been changed, a client may have missed later changes. A majority that
// has lost its data is told nothing by it while it cannot hear the rest: that may serve other members by now.
func TestSleeperTellsNobody(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, _ := f.changed()
		f.nodes[2].Kill()
		for _, n := range f.nodes[:2] {
			n.Flush()
		}
		for range 5 {
			f.locks(lk, false)
			pass(20 * time.Second)
		}
		for _, n := range f.nodes[:2] {
			if told := f.kept(n); told.Description != nil {
				f.Errorf("%s was told %s", n.Name, told.Text())
			}
		}
		f.nodes[2].Restart(true) // it has not changed: that was the last description
		pass(20 * time.Second)
		f.locks(lk, true)
		pass(20 * time.Second)
		f.locks(lk, true)
		f.agrees(f.nodes...)
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
			f.tell(f.nodes[0], &wire.Description{MaxTTL: 10_000, Epoch: 4, Set: "another", Members: []string{"node0", "10.0.0.8:1", "10.0.0.9:1"}})
		}},
		{"two serve others, of which one loses its data, and one is down", 1, func(f *fleet) {
			for _, n := range f.nodes[:2] {
				f.tell(n, &wire.Description{MaxTTL: 10_000, Epoch: 3, Set: "another", Members: []string{"node0", "node1"}})
			}
			theirs := f.locker(Options{}, f.nodes[:2]...)
			pass(20 * time.Second)
			f.locks(theirs, true)
			f.nodes[2].Kill()
			f.nodes[0].Flush()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 6, func(f *fleet) {
				sleeper := f.locker(Options{}, f.nodes[:3]...)
				f.locks(sleeper, true)
				pass(time.Second)
				known := *f.agrees(f.nodes[:3]...).Copy()
				if known.Epoch = tt.by; tt.by > 1 {
					for _, n := range f.nodes[:3] {
						f.tell(n, &known)
					}
					f.locks(sleeper, true)
					pass(time.Second)
				}
				now := known
				now.Epoch, now.Members = 9, []string{"node3", "node4", "node5"}
				for _, n := range f.nodes[3:] {
					f.tell(n, &now)
				}
				lk := f.locker(Options{}, f.nodes[3:]...)
				for _, n := range f.nodes[:3] {
					n.Flush()
				}
				pass(20 * time.Second)
				tt.after(f)
				acquired(f.T, lk, "locks", AutoRenew())
				for range 4 {
					f.locks(sleeper, false)
					pass(20 * time.Second)
				}
			})
		})
	}
}

// TestToldAgainBesideAnother: a member that keeps another description of the same members has lost its data like the
// others, and is no reason not to tell those. Of other members it is one: they may be a majority of their set.
func TestToldAgainBesideAnother(t *testing.T) {
	t.Run("of the same members", func(t *testing.T) { toldAgain(t, true, "node0", "node1", "node2", "node3", "node4") })
	t.Run("of other members", func(t *testing.T) { toldAgain(t, false, "node3", "node4", "node5") })
}

func toldAgain(t *testing.T, want bool, members ...string) {
	onNodes(t, 5, func(f *fleet) {
		lk, _ := f.changed()
		for _, n := range f.nodes {
			n.Flush()
		}
		f.tell(f.nodes[4], &wire.Description{MaxTTL: 10_000, Epoch: 1, Set: "another", Members: members})
		for range 3 {
			_, _ = lk.TryAcquire(f.Context(), "found out")
			pass(20 * time.Second)
		}
		f.locks(lk, want)
		if want {
			f.agrees(f.nodes...)
		}
	})
}

// TestCopyOfAMember: a server was set up with a copy of the data of another member. It has no vote, says why, and
// clients do not look for the member that it is not, over and over.
func TestCopyOfAMember(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			onNodes(t, 3, func(f *fleet) {
				before, second := f.described()
				f.nodes[2].Flush()
				f.tellAs(f.nodes[2], "node0", &second)
				for _, lk := range []*Locker{before, f.locker(Options{}, f.nodes[order[0]], f.nodes[order[1]], f.nodes[order[2]])} {
					_, _ = lk.TryAcquire(f.Context(), "found out")
					pass(20 * time.Second)
					f.locks(lk, true)
					pass(time.Minute)
					f.locks(lk, true)
					if n := len(lk.lanes.Weigh()); n > 3+1 {
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

// TestCopyIsNotAdded: nor does it become a member before it is emptied.
func TestCopyIsNotAdded(t *testing.T) {
	onNodes(t, 4, func(f *fleet) {
		lk := f.locker(Options{}, f.nodes[:3]...)
		f.locks(lk, true)
		pass(time.Second)
		f.tellAs(f.nodes[3], "node0", f.agrees(f.nodes[:3]...))
		if _, err := lk.Change(f.Context(), Change{Add: "node3"}, nil); err == nil || !strings.Contains(err.Error(), "node3: it says that it is the member node0") {
			t.Errorf("a copy is added: %v", err)
		}
		f.nodes[3].Flush()
		if m, err := lk.Change(f.Context(), Change{Add: "node3"}, nil); err != nil || len(m.Nodes) != 4 {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// TestSetMadeAnew: all nodes lose their data while a client cannot reach them, and another client makes a set of
// them anew, a moment later and in another order, with the same quorum or another one. The first client follows.
func TestSetMadeAnew(t *testing.T) {
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

// TestVoidDescription: a member keeps what nobody can count by any more, since a majority has lost its data. It is
// told what the others keep by now, and has a vote when it has been told for a quarantine.
func TestVoidDescription(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tell   bool // the others are told another description of the same epoch; or the next program makes the set anew
		quorum int  // that it gives
	}{{"the set is made anew", false, 2}, {"another description of the epoch", true, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 3, func(f *fleet) {
				before, second := f.changed()
				last := f.nodes[2]
				last.Hang(true)
				for _, n := range f.nodes[:2] {
					n.Flush()
				}
				if another := second; tt.tell {
					another.Since++
					for _, n := range f.nodes[:2] {
						f.tell(n, &another)
					}
				}
				after := f.locker(Options{Quorum: tt.quorum}, f.nodes...)
				if _, err := after.Acquire(f.Context(), "early"); err != nil {
					t.Fatal(err)
				}
				last.Hang(false)
				pass(time.Second)
				f.locks(after, true)
				f.agrees(f.nodes...)
				down := func(n *arena.Node, want bool) {
					n.Kill()
					for _, lk := range []*Locker{before, after} {
						_, _ = lk.TryAcquire(f.Context(), "found out")
						pass(time.Second)
						f.locks(lk, want)
					}
					n.Restart(true)
					pass(20 * time.Second)
				}
				down(f.nodes[0], false) // the node may have granted something by what it has kept
				down(f.nodes[0], true)
				down(f.nodes[1], true)
			})
		})
	}
}

// TestTwoSetsOfTheSameMembers: of two descriptions that half of the members keep each, both clients come to the same.
func TestTwoSetsOfTheSameMembers(t *testing.T) {
	onNodes(t, 2, func(f *fleet) {
		var clients []*Locker
		for _, set := range []string{"a", "b"} {
			for _, n := range f.nodes {
				n.Flush()
				f.tell(n, &wire.Description{MaxTTL: 10_000, Epoch: 2, Set: set, Members: []string{"node0", "node1"}})
			}
			lk := f.locker(Options{}, f.nodes...)
			pass(20 * time.Second)
			f.locks(lk, true)
			clients = append(clients, lk)
		}
		f.nodes[0].Flush()
		f.tell(f.nodes[0], &wire.Description{MaxTTL: 10_000, Epoch: 2, Set: "a", Members: []string{"node0", "node1"}})
		for range 3 {
			for _, lk := range clients {
				_, _ = lk.TryAcquire(f.Context(), "found out")
				pass(20 * time.Second)
			}
		}
		for _, lk := range clients {
			f.locks(lk, true)
		}
		if d := f.agrees(f.nodes...); d.Set != "b" {
			t.Errorf("%s has given way, which comes later in the order of texts", d.Set)
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
			f.tell(n, both[1-i/2])
		}
		for _, given := range [][]*arena.Node{f.nodes[:3], f.nodes[1:]} {
			lk := f.locker(Options{}, given...)
			for range 20 {
				f.locks(lk, false)
				pass(time.Second)
			}
			if n := len(lk.lanes.View().Lanes); n != 3 {
				t.Errorf("it has %d members", n)
			}
			if n := len(lk.lanes.Weigh()); n > 10 {
				t.Errorf("it has made %d lanes", n)
			}
		}
	})
}

// TestNodeOfALivingSet: a node is not taken from a set of which a majority does not keep the client's, although
// it is a member of both.
func TestNodeOfALivingSet(t *testing.T) {
	onNodes(t, 5, func(f *fleet) {
		ours := f.locker(Options{}, f.nodes[:3]...)
		f.locks(ours, true)
		pass(time.Second)
		theirs := &wire.Description{MaxTTL: 10_000, Epoch: 7, Set: "theirs", Members: []string{"node1", "node2", "node3", "node4"}}
		f.nodes[2].Flush()
		for _, n := range f.nodes[2:] {
			f.tell(n, theirs)
		}
		for range 3 {
			f.locks(ours, true)
			pass(20 * time.Second)
		}
		for _, n := range f.nodes[2:] {
			if told := f.kept(n); told.Set != "theirs" {
				t.Errorf("%s was told %s", n.Name, told.Text())
			}
		}
	})
}

// TestOtherVersion: a node that another version of the library uses, which this one does not know, is refused by its name,
// and stays as it is.
func TestOtherVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		const marker = "2:of:a:later:version"
		if err := nodes.Mini(1).Set(script.Marker, marker); err != nil {
			t.Fatal(err)
		}
		lk, err := New(nodes.Clients(), nil)
		if err == nil {
			lk.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "node "+nodes.Client(1).Options().Addr+": ineligible: must not vote: its marker is of version 2, and this program knows version 1") {
			t.Errorf("New: %v", err)
		}
		if got, _ := nodes.Mini(1).Get(script.Marker); got != marker {
			t.Errorf("its marker is %q", got)
		}
	})
}
