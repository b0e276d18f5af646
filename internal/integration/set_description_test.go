package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestNoDescriptionWithoutAMajority: without a majority there is no description, and no lock. When it is back there are both.
func TestNoDescriptionWithoutAMajority(t *testing.T) {
	for _, tt := range []struct {
		name         string
		strike, ends func(n *arena.Node)
	}{
		{"down", (*arena.Node).Kill, func(n *arena.Node) { n.Restart(true) }},
		{"hung", func(n *arena.Node) { n.Hang(true) }, func(n *arena.Node) { n.Hang(false) }},
		{"read-only", func(n *arena.Node) { n.ReadOnly(true) }, func(n *arena.Node) { n.ReadOnly(false) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 3, func(f *fleet) {
				for _, n := range f.nodes[:2] {
					tt.strike(n)
				}
				lk := f.locker(redlock.Options{}, f.nodes...)
				begin := time.Now()
				f.locks(lk, false)
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("it has taken %v", took)
				}
				if told := f.Kept(f.nodes[2]); told.Description != nil {
					t.Errorf("the third node keeps %v", told)
				}
				got := make(chan error, 1)
				go func() {
					_, err := lk.Acquire(f.Context(), "waited for")
					got <- err
				}()
				pass(time.Minute)
				for _, n := range f.nodes[:2] {
					tt.ends(n)
				}
				begin = time.Now()
				if err := <-got; err != nil || time.Since(begin) > time.Minute {
					t.Errorf("%v after %v", err, time.Since(begin))
				}
				pass(time.Minute)
				f.Agrees(f.nodes...)
			})
		})
	}
}

// TestWithoutDescription: a program that turned the quarantine off does not ask what nodes keep.
func TestWithoutDescription(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk := f.locker(redlock.Options{Quarantine: -1}, f.nodes...)
		l := atRest(f.T, lk, "name")
		pass(time.Second)
		for _, n := range f.nodes {
			if told := f.Kept(n); told.Description != nil {
				t.Errorf("%s keeps %v", n.Name, told)
			}
		}
		f.locks(f.locker(redlock.Options{Separator: "/"}, f.nodes...), true)
		if err := l.Extend(f.Context()); err != nil {
			t.Error(err)
		}
		f.locks(lk, true)
		if _, err := f.over(redlock.Options{Quarantine: -1, Separator: ":"}, f.nodes...); err != nil {
			t.Error(err)
		}
	})
}

// TestNodesOfTwoSets: which set a program uses is decided by a majority of the nodes that it was given.
func TestNodesOfTwoSets(t *testing.T) {
	two := func(f *fleet) (one, other []*arena.Node) {
		one, other = f.nodes[:3], f.nodes[3:6]
		f.locks(f.locker(redlock.Options{}, one...), true)
		f.locks(f.locker(redlock.Options{}, other...), true)
		pass(time.Second)
		return one, other
	}
	t.Run("two nodes of the one and one of the other", func(t *testing.T) {
		onNodes(t, 6, func(f *fleet) {
			one, other := two(f)
			lk := f.locker(redlock.Options{}, other[0], one[0], one[1])
			l := atRest(f.T, lk, "name")
			pass(time.Second)
			// The third node is the one that the set says, and not the one that was given.
			for i, n := range f.nodes {
				n, tokens := i < 3, f.Tokens(n)
				if n != (tokens == 1) {
					t.Errorf("node %d has %d locks", i, tokens)
				}
			}
			if _, err := f.locker(redlock.Options{}, one...).TryAcquire(f.Context(), "name"); !errors.Is(err, redlock.ErrHeld) {
				t.Errorf("another program of the set: %v", err)
			}
			if _, err := f.locker(redlock.Options{}, other...).TryAcquire(f.Context(), "name"); err != nil {
				t.Errorf("a program of the other set: %v", err)
			}
			_ = l.Release(f.Context())
		})
	})
	t.Run("a member's address leads to a node of the other", func(t *testing.T) {
		onNodes(t, 6, func(f *fleet) {
			one, other := two(f)
			lost := *f.Agrees(other...)
			one[2].Flush()
			f.Tell(one[2], &lost)
			lk := f.locker(redlock.Options{}, one...)
			f.locks(lk, true)
			one[1].Kill()
			err := f.locks(lk, false)
			if want := "node2: ineligible: it is a node of another set, with the members node3, node4, node5: give the nodes of one set, or make it forget, with redlock members forget"; !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			if told := f.Kept(one[2]); told.Set != lost.Set {
				t.Errorf("it keeps %v", told)
			}
		})
	})
	t.Run("one node of a set and two new ones", func(t *testing.T) {
		onNodes(t, 8, func(f *fleet) {
			one, _ := two(f)
			lk := f.locker(redlock.Options{}, one[0], f.nodes[6], f.nodes[7])
			for range 3 {
				f.locks(lk, false)
				pass(time.Minute)
			}
			for _, n := range f.nodes[6:] {
				if told := f.Kept(n); told.Description != nil {
					t.Errorf("%s keeps %v", n.Name, told)
				}
			}
			f.Agrees(one...)
		})
	})
	t.Run("one of each and a new one", func(t *testing.T) {
		onNodes(t, 7, func(f *fleet) {
			one, other := two(f)
			f.locks(f.locker(redlock.Options{}, one[0], other[0], f.nodes[6]), false)
			if told := f.Kept(f.nodes[6]); told.Description != nil {
				t.Errorf("the new one keeps %v", told)
			}
		})
	})
	t.Run("more nodes than the set has", func(t *testing.T) {
		onNodes(t, 6, func(f *fleet) {
			one, other := two(f)
			for _, n := range other {
				n.Delay(20*time.Millisecond, 0)
			}
			f.locks(f.locker(redlock.Options{}, one[2], one[1], one[0], other[0], other[1]), true)
			f.locks(f.locker(redlock.Options{}, other[0], other[1], one[2], one[1], one[0]), true)
		})
	})
	t.Run("fewer nodes than the set has", func(t *testing.T) {
		onNodes(t, 3, func(f *fleet) {
			first := f.locker(redlock.Options{}, f.nodes...)
			f.locks(first, true)
			pass(time.Second)
			atRest(f.T, first, "name")
			for _, n := range f.nodes {
				if _, err := f.locker(redlock.Options{}, n).TryAcquire(f.Context(), "name"); !errors.Is(err, redlock.ErrHeld) {
					t.Errorf("a program that was given %s: %v", n.Name, err)
				}
			}
		})
	})
}

// TestLaterDescriptionReplacesTheOneBefore: a description of a later epoch takes the place of the one before while locks are
// held and waited for. A program learns of it from a majority of the members, and tells the others. What one
// member alone keeps costs that one its vote.
func TestLaterDescriptionReplacesTheOneBefore(t *testing.T) {
	for _, tt := range []struct {
		name string
		held func(f *fleet, lk *redlock.Locker) (check func())
	}{
		{"nothing is held", func(f *fleet, lk *redlock.Locker) func() { return func() { f.locks(lk, true) } }},
		{"a lock is renewed, and nothing else is done", func(f *fleet, lk *redlock.Locker) func() {
			l := atRest(f.T, lk, "name", redlock.AutoRenew())
			return func() {
				pass(15 * time.Second)
				if err := l.Context(f.Context()).Err(); err != nil {
					f.Errorf("the lock was lost: %v", context.Cause(l.Context(f.Context())))
				}
			}
		}},
		{"a lock is held", func(f *fleet, lk *redlock.Locker) func() {
			l := atRest(f.T, lk, "name")
			return func() {
				if _, err := lk.TryAcquire(f.Context(), "name"); !errors.Is(err, redlock.ErrHeld) {
					f.Errorf("a lock that is held: %v", err)
				}
				pass(time.Second)
				if err := l.Release(f.Context()); err != nil {
					f.Error(err)
				}
				f.locks(lk, true)
			}
		}},
		{"a lock is waited for", func(f *fleet, lk *redlock.Locker) func() {
			l := atRest(f.T, lk, "name")
			got := make(chan error, 1)
			go func() {
				_, err := lk.Acquire(f.Context(), "name")
				got <- err
			}()
			pass(time.Second)
			return func() {
				if err := l.Release(f.Context()); err != nil {
					f.Error(err)
				}
				begin := time.Now()
				if err := <-got; err != nil || time.Since(begin) > 5*time.Second {
					f.Errorf("%v after %v", err, time.Since(begin))
				}
			}
		}},
	} {
		for _, told := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%s, %d are told", tt.name, told), func(t *testing.T) {
				onNodes(t, 3, func(f *fleet) {
					lk, next := f.described()
					check := tt.held(f, lk)
					for _, n := range f.nodes[:told] {
						f.Tell(n, &next)
					}
					check()
					f.locks(lk, true)
					pass(time.Second)
					want, they := int64(2), f.nodes
					if told == 1 { // that is no majority
						want, they = 1, f.nodes[1:]
					}
					if d := f.Agrees(they...); d.Epoch != want {
						t.Errorf("they keep %s", d.Text())
					}
					f.locks(lk, true)
				})
			})
		}
	}
}

// minority has a node keep something else than the others do, while a client uses the set, and renews a lock. The node
// costs its own vote, and is named in a warning; the client goes on, and so does one that is started now.
func minority(t *testing.T, warning, todo string, spoil func(f *fleet, n *arena.Node, d *wire.Description)) {
	t.Helper()
	onNodes(t, 5, func(f *fleet) {
		var mu sync.Mutex
		var warned []string
		hooks := &redlock.Hooks{Warning: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			warned = append(warned, err.Error())
		}}
		lk := f.locker(redlock.Options{Hooks: hooks}, f.nodes[:3]...)
		l := atRest(f.T, lk, "held", redlock.AutoRenew())
		pass(time.Second)
		d := f.Agrees(f.nodes[:3]...)
		spoil(f, f.nodes[0], d)
		f.nodes[0].Reset()
		for range 5 {
			f.locks(lk, true)
			pass(10 * time.Second)
		}
		if err := l.Context(f.Context()).Err(); err != nil {
			t.Errorf("the lock was lost: %v", context.Cause(l.Context(f.Context())))
		}
		if m := lk.Members(); m.Epoch != 1 || m.Set != d.Set {
			t.Errorf("it goes by %+v", m)
		}
		if n := len(lk.Members().Nodes); n != 3 || f.lanes(lk) != 3 {
			t.Errorf("it has %d members, and %d lanes", n, f.lanes(lk))
		}
		mu.Lock()
		if len(warned) != 1 || !strings.Contains(warned[0], "node0") || !strings.Contains(warned[0], warning) || !strings.Contains(warned[0], "redlock members "+todo) {
			t.Errorf("it has warned of %q", warned)
		}
		mu.Unlock()
		second := f.locker(redlock.Options{}, f.nodes[:3]...)
		f.locks(second, true)
		f.Agrees(f.nodes[1:3]...)
		f.nodes[1].Kill() // the other vote is missing
		f.locks(second, false)
		f.nodes[1].Restart(true)
		pass(20 * time.Second)
		f.nodes[0].Forget() // as redlock members forget does
		_, _ = lk.TryAcquire(f.Context(), "found out")
		pass(20 * time.Second)
		f.Agrees(f.nodes[:3]...)
		f.nodes[1].Kill()
		_, _ = lk.TryAcquire(f.Context(), "found out")
		pass(time.Second)
		f.locks(lk, true)
	})
}

// TestDescriptionOfAMinorityDecidesNothing: one node of three keeps another description than the others. Clients go
// by the majority, and that node has no vote.
func TestDescriptionOfAMinorityDecidesNothing(t *testing.T) {
	t.Run("a later description of the set", func(t *testing.T) {
		minority(t, "keeps a later description of the set (epoch 5", "restore", func(f *fleet, n *arena.Node, d *wire.Description) {
			later := d.Next()
			later.Epoch, later.Members = 5, []string{"node0", "node3", "node4"}
			f.Tell(n, later)
		})
	})
	t.Run("one that asks for no other vote", func(t *testing.T) {
		minority(t, "keeps what cannot be the description of a set (the quorum is 1", "forget", func(f *fleet, n *arena.Node, d *wire.Description) {
			later := d.Next()
			later.Quorum = 1
			n.Keep("node0\n" + later.Text())
		})
	})
	t.Run("damaged", func(t *testing.T) {
		minority(t, "keeps what cannot be the description of a set", "forget", func(f *fleet, n *arena.Node, d *wire.Description) { n.Keep("node0\n" + d.Text()[:40]) })
	})
	t.Run("a snapshot of an earlier set", func(t *testing.T) {
		minority(t, "keeps the description of another set", "forget", func(f *fleet, n *arena.Node, d *wire.Description) {
			n.Keep("node0\n" + (&wire.Description{MaxTTL: 10_000, Epoch: 5, Set: "earlier", Members: []string{"node0", "node3", "node4"}}).Text())
		})
	})
	t.Run("a copy of another member", func(t *testing.T) {
		minority(t, "that address answers as another server", "forget", func(f *fleet, n *arena.Node, d *wire.Description) {
			n.Keep("node1\n" + d.Text())
		})
	})
}

// TestCopiesOfAnotherSetAreRefused: two of three nodes have a copy of the data of two of another set's. The third node of that set
// hears nothing, and a program that was given the copies is refused with an error that says what to do; then they are a
// set of their own.
func TestCopiesOfAnotherSetAreRefused(t *testing.T) {
	onNodes(t, 6, func(f *fleet) {
		production := f.locker(redlock.Options{}, f.nodes[:3]...)
		l := atRest(f.T, production, "name", redlock.AutoRenew())
		pass(time.Second)
		d := f.Agrees(f.nodes[:3]...)
		f.TellAs(f.nodes[3], "node0", d)
		f.TellAs(f.nodes[4], "node1", d)
		lk, err := f.over(redlock.Options{}, f.nodes[3:]...)
		if err == nil {
			pass(time.Second)
			err = f.locks(lk, false)
		}
		for _, want := range []string{"node3 has that of node0", "node4 has that of node1", "redlock members forget node3 node4"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if lk != nil {
			if n := f.lanes(lk); n != 3 {
				t.Errorf("it has made %d lanes", n)
			}
		}
		f.nodes[3].Forget()
		f.nodes[4].Forget()
		staging := f.locker(redlock.Options{}, f.nodes[3:]...)
		_, _ = staging.TryAcquire(f.Context(), "name")
		pass(20 * time.Second)
		s := atRest(f.T, staging, "name")
		if m := staging.Members(); m.Set == d.Set || m.Epoch != 1 {
			t.Errorf("staging is %+v", m)
		}
		_ = s.Release(f.Context())
		_ = l.Release(f.Context())
	})
}

// TestClientsFinishAChangeThatHalfWasTold: an operator has told half of four members, and has died. The others have taken the
// description, so that no quorum is left by either; the clients that are there finish it. What one node keeps that none
// has taken, they do not.
func TestClientsFinishAChangeThatHalfWasTold(t *testing.T) {
	for _, taken := range []bool{true, false} {
		onNodes(t, 4, func(f *fleet) {
			lk := f.locker(redlock.Options{}, f.nodes...)
			l := atRest(f.T, lk, "held", redlock.AutoRenew())
			pass(time.Second)
			next := f.Agrees(f.nodes...).Next()
			next.MaxTTL = time.Minute.Milliseconds()
			told := 1
			if taken {
				told = 2
				f.Choose(f.nodes[2], "000000000000000800000000", next)
			} else {
				f.nodes[3].Kill() // one more may be missing
			}
			for _, n := range f.nodes[:told] {
				f.Tell(n, next)
			}
			pass(20 * time.Second)
			if err := l.Context(f.Context()).Err(); (err == nil) != taken {
				t.Errorf("taken: %v; the lock: %v", taken, err)
			}
			f.locks(lk, taken)
			if m := lk.Members(); (m.Epoch == 2) != taken {
				t.Errorf("taken: %v; it goes by %+v", taken, m)
			}
		})
	}
}

// TestSetHasANonce: a set that is made anew of the same nodes is another set.
func TestSetHasANonce(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, _ := f.described()
		first := f.Agrees(f.nodes...)
		lk.Close()
		for _, n := range f.nodes {
			n.Flush()
		}
		anew := f.locker(redlock.Options{}, f.nodes...)
		_, _ = anew.TryAcquire(f.Context(), "found out")
		pass(20 * time.Second)
		f.locks(anew, true)
		if second := f.Agrees(f.nodes...); second.Set == first.Set {
			t.Errorf("both are %s", first.Set)
		}
	})
}

// TestNodeOfAnotherVersionIsRefused: a node that another version of the library uses, which this one does not know, is refused by its name,
// and stays as it is.
func TestNodeOfAnotherVersionIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		const marker = "2:of:a:later:version"
		if err := nodes.Mini(1).Set(script.Marker, marker); err != nil {
			t.Fatal(err)
		}
		lk, err := redlock.New(nodes.Clients(), nil)
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
