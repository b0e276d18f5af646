package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	arena "github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// onNodes runs a test on so many nodes that keep no description.
func onNodes(t *testing.T, n int, test func(*fleet)) {
	t.Helper()
	bubble(t, func(t *testing.T) { test(newFleet(t, n)) })
}

// locker is a process that is given some nodes, and knows nothing of them yet.
func (f *fleet) locker(opts Options, nodes ...*arena.Node) *Locker {
	f.Helper()
	lk, _, err := f.over(opts, nodes...)
	if err != nil {
		f.Fatal(err)
	}
	return lk
}

// agrees checks that nodes keep the same description, each under its own name, and gives it.
func (f *fleet) agrees(nodes ...*arena.Node) *wire.Description {
	f.Helper()
	var first *wire.Description
	for _, n := range nodes {
		told := f.kept(n)
		if told.Description == nil {
			f.Fatalf("%s keeps nothing", n.Name)
		}
		if first == nil {
			first = told.Description
		}
		if told.Text() != first.Text() || told.Self != n.Name {
			f.Errorf("%s is %s and keeps %s, and another one keeps %s", n.Name, told.Self, told.Text(), first.Text())
		}
	}
	return first
}

// described gives a client of nodes that keep the first description, and one that can follow that.
func (f *fleet) described() (lk *Locker, next wire.Description) {
	f.Helper()
	lk = f.locker(Options{}, f.nodes...)
	f.locks(lk, true)
	pass(time.Second)
	next = *f.agrees(f.nodes...)
	next.Epoch, next.Since = 2, next.Since+1
	return lk, next
}

// locks checks that a Locker can lock, or that it cannot.
func (f *fleet) locks(lk *Locker, want bool) (err error) {
	f.Helper()
	l, err := lk.TryAcquire(f.Context(), "locks")
	if err == nil {
		if e := l.Release(f.Context()); e != nil {
			f.Error(e)
		}
	}
	if err == nil != want {
		f.Errorf("it can lock: %v, want %v: %v", err == nil, want, err)
	}
	pass(100 * time.Millisecond)
	return err
}

// choose has a node take part in a choice, as a client does that ends before the next step.
func (f *fleet) choose(n *arena.Node, ballot string, value *wire.Description) wire.Chosen {
	f.Helper()
	f.hosts++
	l := n.Dial(arena.NewHost(sim.Seed(1), fmt.Sprint("c", f.hosts)), time.Second)
	if _, _, err := l.Connect(f.Context(), wire.Hello{}); err != nil {
		f.Fatal(err)
	}
	calls := []arena.Call{{Op: wire.Choose, Args: []string{"1", ballot, "", ""}}}
	if value != nil {
		calls[0].Args[0], calls[0].Args[2] = fmt.Sprint(value.Epoch), value.Text()
	}
	if value != nil && value.Epoch > 1 {
		calls[0].Args[3] = value.Set
	}
	if err := l.Exec(calls); err != nil || calls[0].Err != nil {
		f.Fatal(err, calls[0].Err)
	}
	c, ok := wire.ParseChosen(calls[0].Value)
	if !ok {
		f.Fatal(calls[0].Value)
	}
	return c
}

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
					lk := f.locker(Options{}, f.nodes...)
					all.Go(func() {
						ctx, cancel := context.WithTimeout(f.Context(), 30*time.Second)
						defer cancel()
						l, err := lk.Acquire(ctx, fmt.Sprint("name", i%3), AutoRenew())
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
				if d := f.agrees(f.nodes...); d.Epoch != 1 || len(d.Members) != tt.nodes {
					t.Errorf("it is %s", d.Text())
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
	dead := &wire.Description{Epoch: 1, Set: "of the dead", Members: []string{"node0", "node1", "node2"}, Since: 1}
	older := &wire.Description{Epoch: 1, Set: "of one that died before", Members: []string{"node0", "node1", "node2"}, Since: 1}
	for _, tt := range []struct {
		name string
		died func(f *fleet)
		want string // the set; "": a new one
	}{
		{"it had promises, of a ballot of the future", func(f *fleet) {
			for _, n := range f.nodes {
				f.choose(n, high, nil)
			}
		}, ""},
		{"all have taken it", func(f *fleet) {
			for _, n := range f.nodes {
				f.choose(n, low, dead)
			}
		}, dead.Set},
		{"a majority has taken it, and one an older one", func(f *fleet) {
			f.choose(f.nodes[0], "000000000000000800000000", older)
			f.choose(f.nodes[1], high, dead)
			f.choose(f.nodes[2], high, dead)
		}, dead.Set},
		{"all have answered, and one has taken it", func(f *fleet) { f.choose(f.nodes[0], low, dead) }, dead.Set},
		{"one was told", func(f *fleet) {
			for _, n := range f.nodes[:2] {
				f.choose(n, high, dead)
			}
			f.tell(f.nodes[1], dead)
		}, dead.Set},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 3, func(f *fleet) {
				tt.died(f)
				lk := f.locker(Options{}, f.nodes...)
				if err := lk.WaitReady(f.Context()); err != nil {
					t.Fatal(err)
				}
				f.locks(lk, true)
				pass(time.Second)
				d := f.agrees(f.nodes...)
				if tt.want != "" && d.Set != tt.want || tt.want == "" && d.Set == dead.Set {
					t.Errorf("the set is %q, want %q", d.Set, tt.want)
				}
			})
		})
	}
}

// TestMajorityDown: without a majority there is no description, and no lock. When it is back there are both.
func TestMajorityDown(t *testing.T) {
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
				lk := f.locker(Options{}, f.nodes...)
				begin := time.Now()
				f.locks(lk, false)
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("it has taken %v", took)
				}
				if told := f.kept(f.nodes[2]); told.Description != nil {
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
				f.agrees(f.nodes...)
			})
		})
	}
}

// TestSettingsOfTheSet: what a program leaves out is what the set has; what it gives must be the same.
func TestSettingsOfTheSet(t *testing.T) {
	t.Run("Separator", func(t *testing.T) {
		onNodes(t, 3, func(f *fleet) {
			paths := f.locker(Options{Separator: "/"}, f.nodes...)
			folder, err := paths.TryAcquire(f.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			for _, late := range []bool{false, true} { // known when New returns, or not
				if late {
					for _, n := range f.nodes {
						n.Hang(true)
					}
				}
				lk := f.locker(Options{}, f.nodes...)
				for _, n := range f.nodes {
					n.Hang(false)
				}
				if _, err := lk.TryAcquire(f.Context(), "a/b"); !errors.Is(err, ErrHeld) {
					t.Errorf("known late: %v: below a folder that is held: %v", late, err)
				}
				if _, err := lk.TryAcquire(f.Context(), "b//c"); err == nil || !strings.Contains(err.Error(), "empty") {
					t.Errorf("a path with an empty part: %v", err)
				}
				pass(time.Second)
			}
			if err := folder.Release(f.Context()); err != nil {
				t.Error(err)
			}
			pass(time.Second)
			l := acquired(f.T, f.locker(Options{}, f.nodes...), "a/b")
			if _, err := paths.TryAcquire(f.Context(), "a"); !errors.Is(err, ErrHeld) {
				t.Errorf("the folder of a name that is held: %v", err)
			}
			_ = l.Release(f.Context())
		})
	})
	t.Run("Separator that becomes known while a call waits", func(t *testing.T) {
		onNodes(t, 3, func(f *fleet) {
			folder := acquired(f.T, f.locker(Options{Separator: "/"}, f.nodes...), "a")
			pass(time.Second)
			for _, n := range f.nodes {
				n.Hang(true)
			}
			lk := f.locker(Options{}, f.nodes...)
			got := make(chan *Lock)
			go func() {
				l, err := lk.Acquire(f.Context(), "a/b")
				if err != nil {
					f.Error(err)
				}
				got <- l
			}()
			pass(2 * time.Second)
			for _, n := range f.nodes {
				n.Hang(false)
			}
			if l := <-got; l != nil && time.Now().Before(folder.Until()) {
				t.Error("a name below a folder that is held is another lock's")
			}
		})
	})
	t.Run("Quorum", func(t *testing.T) {
		onNodes(t, 5, func(f *fleet) {
			f.locks(f.locker(Options{Quorum: 4}, f.nodes...), true)
			lk := f.locker(Options{}, f.nodes...)
			f.locks(lk, true)
			for _, n := range f.nodes[:2] {
				n.Kill()
			}
			var why *QuorumError
			if err := f.locks(lk, false); !errors.As(err, &why) || why.Need != 4 {
				t.Errorf("%v, want four votes", err)
			}
		})
	})
	t.Run("MaxTTL", func(t *testing.T) {
		onNodes(t, 3, func(f *fleet) {
			f.locks(f.locker(Options{TTL: 5 * time.Second, MaxTTL: 30 * time.Second}, f.nodes...), true)
			pass(time.Second)
			hooks := &Hooks{Warning: func(err error) { f.Error(err) }} // the TTLs do not disagree
			lk := f.locker(Options{TTL: time.Second, Hooks: hooks}, f.nodes...)
			acquired(f.T, lk, "long", TTL(30*time.Second))
			if _, err := lk.TryAcquire(f.Context(), "longer", TTL(31*time.Second)); err == nil || !strings.Contains(err.Error(), "MaxTTL 30s") {
				t.Errorf("a lock for longer than the set allows: %v", err)
			}
			f.locks(f.locker(Options{TTL: time.Second, MaxTTL: 2 * time.Second}, f.nodes...), true) // a program may want less
			// What a node forgets counts for as long as the set allows.
			f.nodes[0].Flush()
			f.nodes[1].Flush()
			f.locks(lk, false)
			pass(29 * time.Second)
			f.locks(lk, false)
			pass(5 * time.Second)
			f.locks(lk, true)
		})
	})
	t.Run("none", func(t *testing.T) {
		onNodes(t, 3, func(f *fleet) {
			long, short := f.locker(Options{TTL: time.Minute}, f.nodes...), f.locker(Options{TTL: 2 * time.Second}, f.nodes...)
			f.locks(long, true)
			f.locks(short, true)
			if _, err := short.TryAcquire(f.Context(), "long", TTL(time.Minute)); err == nil {
				t.Error("a TTL over the program's own MaxTTL")
			}
			if d := f.agrees(f.nodes...); d.MaxTTL != 0 || d.Quorum != 0 || d.Separator != "" {
				t.Errorf("it is %s", d.Text())
			}
		})
	})
	for _, tt := range []struct {
		name string
		opts Options
		want []string // each error has a line
	}{
		{"the same", Options{TTL: 5 * time.Second, Quorum: 4, Separator: "/", MaxTTL: 20 * time.Second}, nil},
		{"another Quorum", Options{TTL: 5 * time.Second, Quorum: 5}, []string{"Options.Quorum is 5, and that of the set is 4"}},
		{"another Separator", Options{TTL: 5 * time.Second, Separator: ":"}, []string{`Options.Separator is ":", and that of the set is "/"`}},
		{"a longer MaxTTL", Options{TTL: 5 * time.Second, MaxTTL: 21 * time.Second}, []string{"Options.MaxTTL is 21s, and the set allows 20s"}},
		{"a longer TTL", Options{TTL: 25 * time.Second}, []string{"Options.MaxTTL is 25s, and the set allows 20s"}},
		{"a shorter one", Options{TTL: 2 * time.Second, MaxTTL: 3 * time.Second}, nil},
		{"two", Options{TTL: 5 * time.Second, Separator: ":", Quorum: 3}, []string{"Options.Quorum is 3, ", `Options.Separator is ":"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 5, func(f *fleet) {
				f.locks(f.locker(Options{TTL: 5 * time.Second, MaxTTL: 20 * time.Second, Separator: "/", Quorum: 4}, f.nodes...), true)
				lk, _, err := f.over(tt.opts, f.nodes...)
				if tt.want == nil {
					if err != nil {
						t.Fatal(err)
					}
					f.locks(lk, true)
					return
				}
				for _, want := range tt.want {
					if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") != len(tt.want)-1 {
						t.Errorf("%v, want %q", err, want)
					}
				}
			})
		})
	}
	t.Run("not known when New returned", func(t *testing.T) {
		onNodes(t, 3, func(f *fleet) {
			f.locks(f.locker(Options{Separator: "/"}, f.nodes...), true)
			for _, n := range f.nodes {
				n.Hang(true)
			}
			lk := f.locker(Options{Separator: ":"}, f.nodes...)
			for _, n := range f.nodes {
				n.Hang(false)
			}
			pass(10 * time.Second)
			const want = `Options.Separator is ":", and that of the set is "/"`
			if _, err := lk.Acquire(f.Context(), "a"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Acquire: %v", err)
			}
			if err := f.locks(lk, false); !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
			if err := lk.WaitReady(f.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("WaitReady: %v", err)
			}
			if _, err := lk.Attach(f.Context(), Handle{Name: "a", Token: "token", TTL: time.Second}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Attach: %v", err)
			}
		})
	})
}

// TestNodesOfTwoSets: which set a program uses is decided by a majority of the nodes that it was given.
func TestNodesOfTwoSets(t *testing.T) {
	two := func(f *fleet) (one, other []*arena.Node) {
		one, other = f.nodes[:3], f.nodes[3:6]
		f.locks(f.locker(Options{}, one...), true)
		f.locks(f.locker(Options{}, other...), true)
		pass(time.Second)
		return one, other
	}
	t.Run("two nodes of the one and one of the other", func(t *testing.T) {
		onNodes(t, 6, func(f *fleet) {
			one, other := two(f)
			lk := f.locker(Options{}, other[0], one[0], one[1])
			l := acquired(f.T, lk, "name")
			pass(time.Second)
			// The third node is the one that the set says, and not the one that was given.
			for i, n := range f.nodes {
				n, tokens := i < 3, f.tokens(n)
				if n != (tokens == 1) {
					t.Errorf("node %d has %d locks", i, tokens)
				}
			}
			if _, err := f.locker(Options{}, one...).TryAcquire(f.Context(), "name"); !errors.Is(err, ErrHeld) {
				t.Errorf("another program of the set: %v", err)
			}
			if _, err := f.locker(Options{}, other...).TryAcquire(f.Context(), "name"); err != nil {
				t.Errorf("a program of the other set: %v", err)
			}
			_ = l.Release(f.Context())
		})
	})
	t.Run("a member's address leads to a node of the other", func(t *testing.T) {
		onNodes(t, 6, func(f *fleet) {
			one, other := two(f)
			lost := *f.agrees(other...)
			one[2].Flush()
			f.tell(one[2], &lost)
			lk := f.locker(Options{}, one...)
			f.locks(lk, true)
			one[1].Kill()
			err := f.locks(lk, false)
			if want := "node2: ineligible: it is a node of another set, with the members node3, node4, node5: give the nodes of one set, or empty it"; !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			if told := f.kept(one[2]); told.Set != lost.Set {
				t.Errorf("it keeps %v", told)
			}
		})
	})
	t.Run("one node of a set and two new ones", func(t *testing.T) {
		onNodes(t, 8, func(f *fleet) {
			one, _ := two(f)
			lk := f.locker(Options{}, one[0], f.nodes[6], f.nodes[7])
			for range 3 {
				f.locks(lk, false)
				pass(time.Minute)
			}
			for _, n := range f.nodes[6:] {
				if told := f.kept(n); told.Description != nil {
					t.Errorf("%s keeps %v", n.Name, told)
				}
			}
			f.agrees(one...)
		})
	})
	t.Run("one of each and a new one", func(t *testing.T) {
		onNodes(t, 7, func(f *fleet) {
			one, other := two(f)
			f.locks(f.locker(Options{}, one[0], other[0], f.nodes[6]), false)
			if told := f.kept(f.nodes[6]); told.Description != nil {
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
			f.locks(f.locker(Options{}, one[2], one[1], one[0], other[0], other[1]), true)
			f.locks(f.locker(Options{}, other[0], other[1], one[2], one[1], one[0]), true)
		})
	})
	t.Run("fewer nodes than the set has", func(t *testing.T) {
		onNodes(t, 3, func(f *fleet) {
			first := f.locker(Options{}, f.nodes...)
			f.locks(first, true)
			pass(time.Second)
			acquired(f.T, first, "name")
			for _, n := range f.nodes {
				if _, err := f.locker(Options{}, n).TryAcquire(f.Context(), "name"); !errors.Is(err, ErrHeld) {
					t.Errorf("a program that was given %s: %v", n.Name, err)
				}
			}
		})
	})
}

// tokens is how many locks are on a node.
func (f *fleet) tokens(n *arena.Node) (count int) {
	for range n.Tokens() {
		count++
	}
	return count
}

// spelled is a process that reaches nodes by other addresses than the set has for them.
func (f *fleet) spelled(opts Options, addr func(name string) string) *Locker {
	f.Helper()
	f.hosts++
	h := arena.NewHost(sim.Seed(1), fmt.Sprint("c", f.hosts))
	opts.Clock = h
	var clients []lane.Client
	for _, n := range f.nodes {
		c := n.Client(h)
		c.Addr = addr(n.Name)
		clients = append(clients, c)
	}
	lk, err := New(clients, &opts)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { lk.Close() })
	return lk
}

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

// TestWithoutDescription: a program that turned the quarantine off does not ask what nodes keep.
func TestWithoutDescription(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk := f.locker(Options{Quarantine: -1}, f.nodes...)
		l := acquired(f.T, lk, "name")
		pass(time.Second)
		for _, n := range f.nodes {
			if told := f.kept(n); told.Description != nil {
				t.Errorf("%s keeps %v", n.Name, told)
			}
		}
		f.locks(f.locker(Options{Separator: "/"}, f.nodes...), true)
		if err := l.Extend(f.Context()); err != nil {
			t.Error(err)
		}
		f.locks(lk, true)
		if _, _, err := f.over(Options{Quarantine: -1, Separator: ":"}, f.nodes...); err != nil {
			t.Error(err)
		}
	})
}

// TestLaterDescription: a description of a later epoch takes the place of the one before while locks are
// held and waited for. A program learns of it from a node that has it, and tells the others.
func TestLaterDescription(t *testing.T) {
	for _, tt := range []struct {
		name string
		held func(f *fleet, lk *Locker) (check func())
	}{
		{"nothing is held", func(f *fleet, lk *Locker) func() { return func() { f.locks(lk, true) } }},
		{"a lock is renewed, and nothing else is done", func(f *fleet, lk *Locker) func() {
			l := acquired(f.T, lk, "name", AutoRenew())
			return func() {
				pass(15 * time.Second)
				if err := l.Context(f.Context()).Err(); err != nil {
					f.Errorf("the lock was lost: %v", context.Cause(l.Context(f.Context())))
				}
			}
		}},
		{"a lock is held", func(f *fleet, lk *Locker) func() {
			l := acquired(f.T, lk, "name")
			return func() {
				if _, err := lk.TryAcquire(f.Context(), "name"); !errors.Is(err, ErrHeld) {
					f.Errorf("a lock that is held: %v", err)
				}
				pass(time.Second)
				if err := l.Release(f.Context()); err != nil {
					f.Error(err)
				}
				f.locks(lk, true)
			}
		}},
		{"a lock is waited for", func(f *fleet, lk *Locker) func() {
			l := acquired(f.T, lk, "name")
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
						f.tell(n, &next)
					}
					check()
					f.locks(lk, true)
					pass(time.Second)
					if d := f.agrees(f.nodes...); d.Epoch != 2 {
						t.Errorf("they keep %s", d.Text())
					}
					f.locks(lk, true)
				})
			})
		}
	}
}

// TestFailoverClients: clients that ask sentinels for their server have all the same address. They are the
// ways to different nodes all the same.
func TestFailoverClients(t *testing.T) {
	fences(t, func(f *fenced) {
		open := func() *Locker {
			f.Helper()
			var clients []*redis.Client
			for i := range 3 {
				o := f.Options(i)
				o.Addr = failoverAddr
				clients = append(clients, redis.NewClient(o))
				f.Cleanup(func() { clients[i].Close() })
			}
			lk, err := New(clients, nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Cleanup(func() { lk.Close() })
			if err := lk.WaitReady(f.Context()); err != nil {
				f.Fatal(err)
			}
			return lk
		}
		lk := open()
		l := acquired(f.T, lk, "name")
		pass(time.Second)
		for i := range 3 {
			if got := f.Keys(i); len(got) != 1 {
				f.Errorf("node %d has %q", i, got)
			}
		}
		if _, err := open().TryAcquire(f.Context(), "name"); !errors.Is(err, ErrHeld) {
			f.Errorf("another program: %v", err)
		}
		_ = l.Release(f.Context())
		f.Kill(0)
		f.Kill(1)
		pass(time.Second)
		if _, err := lk.TryAcquire(f.Context(), "alone"); !errors.Is(err, ErrNoQuorum) {
			f.Errorf("with one node of three: %v", err)
		}
	})
}

// TestOtherAddresses: a program that calls the nodes by other addresses than the set has is one of its
// programs, however late the nodes answer at one address or the other.
func TestOtherAddresses(t *testing.T) {
	for slow := range 4 { // the node whose other address is slow; 3: none
		fences(t, func(f *fenced) {
			first, err := New(f.Clients()[:3], nil)
			if err == nil {
				err = first.ready(f.Context())
			}
			if err != nil {
				f.Fatal(err)
			}
			defer first.Close()
			held := acquired(f.T, first, "held", AutoRenew())
			pass(time.Second)
			var clients []*redis.Client
			for i := range 3 {
				o := f.Options(i)
				o.Addr = fmt.Sprintf("10.9.9.%d:6379", i)
				dial := o.Dialer
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if i == slow && addr == o.Addr { // New waits for it, and the address that the set has comes first
						time.Sleep(30 * time.Millisecond)
					}
					for j := range 3 {
						if addr == f.Addr(j) {
							return f.Options(j).Dialer(ctx, network, addr)
						}
					}
					return dial(ctx, network, addr)
				}
				clients = append(clients, redis.NewClient(o))
				f.Cleanup(func() { clients[i].Close() })
			}
			for range 2 {
				lk, err := New(clients, nil)
				if err != nil {
					f.Fatalf("node %d is slow: %v", slow, err)
				}
				if _, err := lk.TryAcquire(f.Context(), "held"); !errors.Is(err, ErrHeld) {
					f.Errorf("node %d is slow: %v", slow, err)
				}
				pass(10 * time.Second)
				l, err := lk.TryAcquire(f.Context(), "free")
				if err != nil {
					f.Fatalf("node %d is slow: %v", slow, err)
				}
				pass(time.Second)
				for i := range 3 {
					if got := f.Keys(i); !slices.Contains(got, "free") {
						f.Errorf("node %d is slow: node %d has %q", slow, i, got)
					}
				}
				_ = l.Release(f.Context())
				lk.Close()
			}
			_ = held.Release(f.Context())
		})
	}
}

// TestSleeperTellsNobody: of a set that has been changed, a client may have missed later changes. A majority that
// has lost its data is told nothing by it while it cannot hear the rest: that may serve other members by now.
func TestSleeperTellsNobody(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, second := f.described()
		for _, n := range f.nodes {
			f.tell(n, &second)
		}
		f.locks(lk, true)
		pass(time.Second)
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
			f.tell(f.nodes[0], &wire.Description{Epoch: 4, Set: "another", Members: []string{"node0", "10.0.0.8:1", "10.0.0.9:1"}})
		}},
		{"two serve others, of which one loses its data, and one is down", 1, func(f *fleet) {
			for _, n := range f.nodes[:2] {
				f.tell(n, &wire.Description{Epoch: 3, Set: "another", Members: []string{"node0", "node1"}})
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
				known := *f.agrees(f.nodes[:3]...)
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

// TestVoidMemberForgets: a node that is told a description again, which it has lost, may have forgotten what it took
// in the choice of the next one, although it has taken part in that of another set since.
func TestVoidMemberForgets(t *testing.T) {
	onNodes(t, 1, func(f *fleet) {
		n, members := f.nodes[0], []string{"node0", "node1", "node2"}
		of := func(set string, epoch int64) *wire.Description {
			return wire.ParseDescription((&wire.Description{Epoch: epoch, Set: set, Members: members}).Text())
		}
		f.tell(n, of("s", 7))
		f.choose(n, "1", of("s", 8))
		n.Flush()
		f.tell(n, of("t", 6))
		f.choose(n, "1", of("t", 7))
		hello := wire.Hello{Marked: true, Time: time.Now().UnixMilli()}
		mark, err := f.join(n, hello)
		hello.Told, hello.While, hello.Void = wire.Told{Self: "node0", Description: of("s", 7)}, mark.Value, mark.Told.Names()
		if err == nil {
			mark, err = f.join(n, hello)
		}
		if err != nil || mark.Told.Set != "s" {
			t.Fatal(mark, err)
		}
		if c := f.choose(n, "2", of("s", 8)); !c.Lost {
			t.Errorf("it says %+v", c)
		}
	})
}

// TestToldAgainBesideAnother: a member that keeps another description of the same members has lost its data like the
// others, and is no reason not to tell those. Of other members it is one: they may be a majority of their set.
func TestToldAgainBesideAnother(t *testing.T) {
	t.Run("of the same members", func(t *testing.T) { toldAgain(t, true, "node0", "node1", "node2", "node3", "node4") })
	t.Run("of other members", func(t *testing.T) { toldAgain(t, false, "node3", "node4", "node5") })
}

func toldAgain(t *testing.T, want bool, members ...string) {
	onNodes(t, 5, func(f *fleet) {
		lk, second := f.described()
		for _, n := range f.nodes {
			f.tell(n, &second)
		}
		f.locks(lk, true)
		pass(time.Second)
		for _, n := range f.nodes {
			n.Flush()
		}
		f.tell(f.nodes[4], &wire.Description{Epoch: 1, Set: "another", Members: members})
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

// TestForgetfulMemberInAChoice: what a majority has taken stays chosen, although one of them has lost its data, and
// was told the description before again: it does not count as long as another one is silent.
func TestForgetfulMemberInAChoice(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, chosen := f.described()
		chosen.Former = chosen.Members
		for _, n := range f.nodes[:2] {
			f.choose(n, "000000000000000800000000", &chosen)
		}
		f.nodes[1].Flush()
		f.locks(lk, true)
		pass(20 * time.Second)
		f.locks(lk, true)
		f.nodes[0].Kill()
		for range 2 {
			minute := time.Minute
			ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
			if m, err := lk.Change(ctx, Change{MaxTTL: &minute}, nil); !errors.Is(err, context.DeadlineExceeded) {
				f.Errorf("the set was changed to %+v: %v", m, err)
			}
			cancel()
			if d := f.agrees(f.nodes[1:]...); d.Epoch != 1 {
				f.Errorf("they keep %s", d.Text())
			}
		}
		f.nodes[0].Restart(true)
		pass(20 * time.Second)
		minute := time.Minute
		if m, err := lk.Change(f.Context(), Change{MaxTTL: &minute}, nil); !errors.Is(err, ErrOvertaken) {
			f.Errorf("what a majority had taken was forgotten: %+v: %v", m, err)
		}
		pass(time.Second)
		if d := f.agrees(f.nodes...); d.Text() != chosen.Text() {
			f.Errorf("they keep %s", d.Text())
		}
	})
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
					if n := lk.lanes.Room(); n > 3+1+8 {
						t.Errorf("there is room for %d nodes", n)
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
