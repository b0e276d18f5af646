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
	"github.com/quorumlock/redlock/internal/wire"
)

// TestNewNodesAgree: the programs that begin on new nodes come to one description, however many they are,
// and whatever one of the nodes does.
func TestNewNodesAgree(t *testing.T) {
	for _, tt := range []struct {
		name    string
		lockers int
		nodes   int
		before  func(f *fleet) // what happens to the nodes
		after   func(f *fleet) // and its end
	}{
		{"two at once", 2, 3, nil, nil},
		{"many at once", 25, 3, nil, nil},
		{"many at once, far away", 10, 5, func(f *fleet) {
			for i, n := range f.nodes {
				n.Delay(time.Duration(10+5*i)*time.Millisecond, 30*time.Millisecond)
			}
		}, nil},
		{"round trips that take most of a NodeTimeout", 3, 5, func(f *fleet) {
			for _, n := range f.nodes {
				n.Delay(400*time.Millisecond, 0)
			}
		}, nil},
		{"one node alone", 3, 1, nil, nil},
		{"a node is down", 3, 3, func(f *fleet) { f.nodes[0].Kill() }, func(f *fleet) { f.nodes[0].Restart(false) }},
		{"a node hangs", 3, 3, func(f *fleet) { f.nodes[1].Hang(true) }, func(f *fleet) { f.nodes[1].Hang(false) }},
		{"answers get lost", 3, 3, func(f *fleet) {
			for _, n := range f.nodes {
				n.Lose(2)
			}
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, tt.nodes, func(f *fleet) {
				if tt.before != nil {
					tt.before(f)
				}
				var all sync.WaitGroup
				for i := range tt.lockers {
					lk := f.locker(redlock.Options{}, f.nodes...)
					all.Go(func() {
						ctx, cancel := context.WithTimeout(f.Context(), 30*time.Second)
						defer cancel()
						l, err := lk.Acquire(ctx, fmt.Sprint("name", i%3), redlock.AutoRenew())
						if err != nil {
							f.Error(err)
							return
						}
						time.Sleep(time.Second)
						if err := l.Release(f.Context()); err != nil {
							f.Error(err)
						}
					})
				}
				all.Wait()
				if tt.after != nil {
					tt.after(f)
				}
				pass(time.Minute)
				if d := f.Agrees(f.nodes...); d.Epoch != 1 || len(d.Members) != tt.nodes {
					t.Errorf("it is %s", d.Text())
				}
			})
		})
	}
}

// TestTryOnNewNodes: the first call on new nodes has a NodeTimeout for the lock, however long it took to choose the
// description of their set.
func TestTryOnNewNodes(t *testing.T) {
	for _, trip := range []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 400 * time.Millisecond} {
		t.Run(fmt.Sprint("round trips of ", trip), func(t *testing.T) {
			onNodes(t, 3, func(f *fleet) {
				for _, n := range f.nodes {
					n.Delay(trip/2, 0)
				}
				lk := f.locker(redlock.Options{NodeTimeout: time.Second}, f.nodes...)
				time.Sleep(5 * time.Second) // it has connected
				l, err := lk.TryAcquire(f.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Release(f.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestChoiceIsFinished: a program that died in the middle of a choice is in nobody's way. What a majority
// has taken is what the next one takes, too, since it may have been told to nodes; and what fewer have
// taken may be that, or another one.
func TestChoiceIsFinished(t *testing.T) {
	const low, high = "0000000000000009" + "00000000", "9000000000000000" + "00000000"
	dead := &wire.Description{MaxTTL: 10_000, Epoch: 1, Set: "of the dead", Members: []string{"node0", "node1", "node2"}, Since: 1}
	older := &wire.Description{MaxTTL: 10_000, Epoch: 1, Set: "of one that died before", Members: []string{"node0", "node1", "node2"}, Since: 1}
	for _, tt := range []struct {
		name string
		died func(f *fleet)
		want string // the set; "": a new one
	}{
		{"it had promises, of a ballot of the future", func(f *fleet) {
			for _, n := range f.nodes {
				f.Choose(n, high, nil)
			}
		}, ""},
		{"all have taken it", func(f *fleet) {
			for _, n := range f.nodes {
				f.Choose(n, low, dead)
			}
		}, dead.Set},
		{"a majority has taken it, and one an older one", func(f *fleet) {
			f.Choose(f.nodes[0], "000000000000000800000000", older)
			f.Choose(f.nodes[1], high, dead)
			f.Choose(f.nodes[2], high, dead)
		}, dead.Set},
		{"all have answered, and one has taken it", func(f *fleet) { f.Choose(f.nodes[0], low, dead) }, dead.Set},
		{"one was told", func(f *fleet) {
			for _, n := range f.nodes[:2] {
				f.Choose(n, high, dead)
			}
			f.Tell(f.nodes[1], dead)
		}, dead.Set},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 3, func(f *fleet) {
				tt.died(f)
				lk := f.locker(redlock.Options{}, f.nodes...)
				if err := lk.WaitReady(f.Context()); err != nil {
					t.Fatal(err)
				}
				f.locks(lk, true)
				pass(time.Second)
				d := f.Agrees(f.nodes...)
				if tt.want != "" && d.Set != tt.want || tt.want == "" && d.Set == dead.Set {
					t.Errorf("the set is %q, want %q", d.Set, tt.want)
				}
			})
		})
	}
}

// TestForgetfulMemberInAChoice: what a majority has taken stays chosen, although one of them has lost its data, and
// was told the description before again: it does not count as long as another one is silent.
func TestForgetfulMemberInAChoice(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, chosen := f.taken()
		f.nodes[1].Flush()
		f.locks(lk, true)
		pass(20 * time.Second)
		f.locks(lk, true)
		f.nodes[0].Kill()
		for range 2 {
			two := 2
			ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
			if m, err := lk.Change(ctx, redlock.Change{Quorum: &two}, nil); !errors.Is(err, context.DeadlineExceeded) {
				f.Errorf("the set was changed to %+v: %v", m, err)
			}
			cancel()
			if d := f.Agrees(f.nodes[1:]...); d.Epoch != 1 {
				f.Errorf("they keep %s", d.Text())
			}
		}
		f.nodes[0].Restart(true)
		pass(20 * time.Second)
		minute := time.Minute
		if m, err := lk.Change(f.Context(), redlock.Change{MaxTTL: &minute}, nil); !errors.Is(err, redlock.ErrOvertaken) {
			f.Errorf("what a majority had taken was forgotten: %+v: %v", m, err)
		}
		pass(time.Second)
		f.keeps(chosen)
	})
}

// TestForgetfulMemberBesideOneThatWasTold: two members have taken a description; one of them has been told it, and the other
// one has lost its data and was told the description before again. What they have taken stays chosen.
func TestForgetfulMemberBesideOneThatWasTold(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, chosen := f.taken()
		f.nodes[1].Flush()
		f.locks(lk, true)
		pass(20 * time.Second)
		f.locks(lk, true)
		f.Tell(f.nodes[0], chosen)
		two := 2
		if m, err := lk.Change(f.Context(), redlock.Change{Quorum: &two}, nil); !errors.Is(err, redlock.ErrOvertaken) {
			f.Errorf("what a majority had taken was forgotten: %+v: %v", m, err)
		}
		pass(time.Second)
		f.keeps(chosen)
	})
}

// TestLossInTheMiddleOfAChange: an operator dies when a description has been chosen and told to one member, and the other
// member that has taken it loses its data. Clients go on by what the first one keeps.
func TestLossInTheMiddleOfAChange(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, chosen := f.taken()
		f.Tell(f.nodes[0], chosen)
		f.nodes[1].Flush()
		_, _ = lk.TryAcquire(f.Context(), "found out")
		pass(20 * time.Second)
		f.locks(lk, true)
		f.keeps(chosen)
	})
}

// TestChoiceWithHungNodes: where a majority of the nodes has been there for a long time, it chooses the first description
// without an answer of nodes that hang.
func TestChoiceWithHungNodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 5)
		f.nodes[3].Hang(true)
		f.nodes[4].Hang(true)
		lk := f.client(&redlock.Options{}, 0)
		began := time.Now()
		if _, err := lk.TryAcquire(t.Context(), "a"); err != nil || time.Since(began) > 500*time.Millisecond*2/5 { // a quarter is for a node that may be about to answer
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestSetIsMadeByWhatNodesKeepNow: a program has met all nodes when they kept nothing, and has been idle since. Meanwhile
// the set was made, a long lock is held, and most nodes have lost their data. It makes no other set, with a shorter MaxTTL
// and so a shorter quarantine.
func TestSetIsMadeByWhatNodesKeepNow(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		idle := f.locker(redlock.Options{TTL: time.Second, MaxTTL: 10 * time.Second}, f.nodes...)
		first := f.locker(redlock.Options{TTL: time.Minute, MaxTTL: time.Minute}, f.nodes...)
		pass(time.Second)
		atRest(f.T, first, "a")
		set := f.nodes[2].Kept().Set
		first.Close() // it tells nobody any more
		f.nodes[0].Flush()
		f.nodes[1].Flush()
		f.locker(redlock.Options{}, f.nodes[:2]...) // they have markers again, and not those by which the idle program knows them
		f.nodes[2].Delay(80*time.Millisecond, 0)    // its answer is the last
		if _, err := idle.TryAcquire(f.Context(), "a"); err == nil {
			f.Error("there are two holders")
		}
		pass(11 * time.Second)
		if _, err := idle.TryAcquire(f.Context(), "a"); err == nil {
			f.Error("there are two holders after the shorter quarantine")
		}
		for _, n := range f.nodes {
			if told := n.Kept(); told.Description != nil && told.Set != set {
				f.Errorf("%s keeps %v, and the set is %q", n.Name, told, set)
			}
		}
	})
}

// TestNodesAreAskedAgain: a program starts while most of its nodes keep nothing. Others tell them the description of the
// set, and the program finds out, although no node says so by itself.
func TestNodesAreAskedAgain(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		first := f.locker(redlock.Options{}, f.nodes...)
		atRest(f.T, first, "a")
		quorum := 3
		f.change(first, redlock.Change{Quorum: &quorum})
		pass(time.Minute)
		first.Close()
		keep := f.nodes[0].Kept()
		for _, n := range f.nodes[1:] {
			n.Forget()
		}
		f.nodes[0].Hang(true)
		lk := f.locker(redlock.Options{}, f.nodes...) // it has not heard of any
		f.nodes[0].Hang(false)
		if _, err := lk.TryAcquire(f.Context(), "a"); err == nil || !strings.Contains(err.Error(), "redlock members restore") {
			f.Errorf("one of three keeps a description, and a try says: %v", err)
		}
		pass(2 * time.Second)
		for _, n := range f.nodes[1:] {
			n.Keep(wire.Kept{Self: n.Name, Description: keep.Description}.String())
		}
		ctx, cancel := context.WithTimeout(f.Context(), 30*time.Second)
		defer cancel()
		if err := lk.WaitReady(ctx); err != nil {
			f.Error(err)
		}
		atRest(f.T, lk, "a")
	})
}

// TestSlowNodeTakesPart: a node that answers later than the others, after 80 ms, when the set is made takes part all the same. So
// the set can be changed when one of the others is dead.
func TestSlowNodeTakesPart(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		f.nodes[2].Delay(80*time.Millisecond, 0)
		lk := f.locker(redlock.Options{}, f.nodes...)
		f.locks(lk, true)
		f.nodes[0].Kill()
		pass(time.Minute)
		ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
		defer cancel()
		if _, err := lk.Change(ctx, redlock.Change{Remove: f.nodes[0].Name}, nil); err != nil {
			f.Error(err)
		}
	})
}
