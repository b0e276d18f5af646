package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/sim"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
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

// change has a process change the set.
func (f *fleet) change(lk *Locker, c Change) Members {
	f.Helper()
	m, err := lk.Change(f.Context(), c, func(what string, most time.Duration) { f.Logf("waits for %s, %v", what, most) })
	if err != nil {
		f.Fatal(err)
	}
	return m
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
	next = *f.agrees(f.nodes...).Next()
	next.Since++
	return lk, next
}

// changed gives a client of nodes that keep the second description, and that description.
func (f *fleet) changed() (lk *Locker, second wire.Description) {
	f.Helper()
	lk, second = f.described()
	for _, n := range f.nodes {
		f.tell(n, &second)
	}
	f.locks(lk, true)
	pass(time.Second)
	return lk, second
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
			if _, err := lk.TryAcquire(f.Context(), "longer", TTL(31*time.Second)); err == nil || !strings.Contains(err.Error(), "TTL is 31s, and the set allows 30s") {
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
			acquired(f.T, short, "long", TTL(time.Minute)) // the set's counts
			if _, err := short.TryAcquire(f.Context(), "longer", TTL(time.Minute+time.Millisecond)); err == nil {
				t.Error("a TTL over the set's MaxTTL")
			}
			if d := f.agrees(f.nodes...); d.MaxTTL != 60_000 || d.Quorum != 0 || d.Separator != "" {
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
		{"a longer MaxTTL", Options{TTL: 5 * time.Second, MaxTTL: 21 * time.Second}, nil},
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
			if want := "node2: ineligible: it is a node of another set, with the members node3, node4, node5: give the nodes of one set, or make it forget, with redlock members forget"; !strings.Contains(err.Error(), want) {
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
	var given []string
	for _, n := range f.nodes {
		given = append(given, addr(n.Name))
	}
	replace.In(&opts, h.Parts(func(at string) *arena.Node {
		if i := slices.Index(given, at); i >= 0 {
			return f.nodes[i]
		}
		return f.node(at)
	}))
	lk, err := New(arena.Clients(given), &opts)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { lk.Close() })
	return lk
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
// held and waited for. A program learns of it from a majority of the members, and tells the others. What one
// member alone keeps costs that one its vote.
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
					want, they := int64(2), f.nodes
					if told == 1 { // that is no majority
						want, they = 1, f.nodes[1:]
					}
					if d := f.agrees(they...); d.Epoch != want {
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
		if !need.Sample(slow, 4) {
			continue
		}
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

// TestRefusalEnds: a program that cannot use the set is refused until the set is changed back, and no longer.
func TestRefusalEnds(t *testing.T) {
	second, four, three, two := time.Second, 4*time.Second, 3, 2
	for _, tt := range []struct {
		name      string
		opts      Options
		bad, back Change
		want      string
	}{
		{"MaxTTL", Options{TTL: four}, Change{MaxTTL: &second}, Change{MaxTTL: &four}, "TTL is 4s, and the set allows 1s"},
		{"Quorum", Options{TTL: four, Quorum: 2}, Change{Quorum: &three}, Change{Quorum: &two}, "Options.Quorum is 2, and that of the set is 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 3, func(f *fleet) {
				lk, op := f.locker(tt.opts, f.nodes...), f.locker(Options{TTL: second}, f.nodes...)
				f.locks(op, true)
				long := acquired(f.T, lk, "long", AutoRenew())
				if _, err := op.Change(f.Context(), tt.bad, nil); err != nil {
					t.Fatal(err)
				}
				pass(2 * time.Second) // renewals hear of it
				for range 2 {
					asked := time.Now()
					if _, err := lk.Acquire(f.Context(), "other"); err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrNoQuorum) {
						t.Errorf("Acquire: %v", err)
					}
					if took := time.Since(asked); took > lk.settings().NodeTimeout {
						t.Errorf("that took %v", took)
					}
				}
				if err := long.Extend(f.Context()); err == nil || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Extend: %v", err)
				}
				if _, err := op.Change(f.Context(), tt.back, nil); err != nil {
					t.Fatal(err)
				}
				f.locks(lk, true)
				acquired(f.T, lk, "another")
				quick := tt.bad.MaxTTL != nil // a bound is changed within a moment, both ways
				if err := long.why(); quick && err != nil || !quick && (!errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "this program's options are not those of the set")) {
					t.Errorf("what was held by the description before: %v", err)
				}
			})
		})
	}
}
