package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// TestSettingsOfTheSet: what a program leaves out is what the set has; what it gives must be the same.
func TestSettingsOfTheSet(t *testing.T) {
	t.Run("Separator", func(t *testing.T) {
		onNodes(t, 3, func(f *fleet) {
			paths := f.locker(redlock.Options{Separator: "/"}, f.nodes...)
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
				lk := f.locker(redlock.Options{}, f.nodes...)
				for _, n := range f.nodes {
					n.Hang(false)
				}
				if _, err := lk.TryAcquire(f.Context(), "a/b"); !errors.Is(err, redlock.ErrHeld) {
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
			l := atRest(f.T, f.locker(redlock.Options{}, f.nodes...), "a/b")
			if _, err := paths.TryAcquire(f.Context(), "a"); !errors.Is(err, redlock.ErrHeld) {
				t.Errorf("the folder of a name that is held: %v", err)
			}
			_ = l.Release(f.Context())
		})
	})
	t.Run("Separator that becomes known while a call waits", func(t *testing.T) {
		onNodes(t, 3, func(f *fleet) {
			folder := atRest(f.T, f.locker(redlock.Options{Separator: "/"}, f.nodes...), "a")
			pass(time.Second)
			for _, n := range f.nodes {
				n.Hang(true)
			}
			lk := f.locker(redlock.Options{}, f.nodes...)
			got := make(chan *redlock.Lock)
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
			f.locks(f.locker(redlock.Options{Quorum: 4}, f.nodes...), true)
			lk := f.locker(redlock.Options{}, f.nodes...)
			f.locks(lk, true)
			for _, n := range f.nodes[:2] {
				n.Kill()
			}
			var why *redlock.QuorumError
			if err := f.locks(lk, false); !errors.As(err, &why) || why.Need != 4 {
				t.Errorf("%v, want four votes", err)
			}
		})
	})
	t.Run("MaxTTL", func(t *testing.T) {
		onNodes(t, 3, func(f *fleet) {
			f.locks(f.locker(redlock.Options{TTL: 5 * time.Second, MaxTTL: 30 * time.Second}, f.nodes...), true)
			pass(time.Second)
			hooks := &redlock.Hooks{Warning: func(err error) { f.Error(err) }} // the TTLs do not disagree
			lk := f.locker(redlock.Options{TTL: time.Second, Hooks: hooks}, f.nodes...)
			atRest(f.T, lk, "long", redlock.TTL(30*time.Second))
			if _, err := lk.TryAcquire(f.Context(), "longer", redlock.TTL(31*time.Second)); err == nil || !strings.Contains(err.Error(), "TTL is 31s, and the set allows 30s") {
				t.Errorf("a lock for longer than the set allows: %v", err)
			}
			f.locks(f.locker(redlock.Options{TTL: time.Second, MaxTTL: 2 * time.Second}, f.nodes...), true) // a program may want less
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
			long, short := f.locker(redlock.Options{TTL: time.Minute}, f.nodes...), f.locker(redlock.Options{TTL: 2 * time.Second}, f.nodes...)
			f.locks(long, true)
			f.locks(short, true)
			atRest(f.T, short, "long", redlock.TTL(time.Minute)) // the set's counts
			if _, err := short.TryAcquire(f.Context(), "longer", redlock.TTL(time.Minute+time.Millisecond)); err == nil {
				t.Error("a TTL over the set's MaxTTL")
			}
			if d := f.Agrees(f.nodes...); d.MaxTTL != 60_000 || d.Quorum != 0 || d.Separator != "" {
				t.Errorf("it is %s", d.Text())
			}
		})
	})
	for _, tt := range []struct {
		name string
		opts redlock.Options
		want []string // each error has a line
	}{
		{"the same", redlock.Options{TTL: 5 * time.Second, Quorum: 4, Separator: "/", MaxTTL: 20 * time.Second}, nil},
		{"another Quorum", redlock.Options{TTL: 5 * time.Second, Quorum: 5}, []string{"Options.Quorum is 5, and that of the set is 4"}},
		{"another Separator", redlock.Options{TTL: 5 * time.Second, Separator: ":"}, []string{`Options.Separator is ":", and that of the set is "/"`}},
		{"a longer MaxTTL", redlock.Options{TTL: 5 * time.Second, MaxTTL: 21 * time.Second}, nil},
		{"a shorter one", redlock.Options{TTL: 2 * time.Second, MaxTTL: 3 * time.Second}, nil},
		{"two", redlock.Options{TTL: 5 * time.Second, Separator: ":", Quorum: 3}, []string{"Options.Quorum is 3, ", `Options.Separator is ":"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 5, func(f *fleet) {
				f.locks(f.locker(redlock.Options{TTL: 5 * time.Second, MaxTTL: 20 * time.Second, Separator: "/", Quorum: 4}, f.nodes...), true)
				lk, err := f.over(tt.opts, f.nodes...)
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
			f.locks(f.locker(redlock.Options{Separator: "/"}, f.nodes...), true)
			for _, n := range f.nodes {
				n.Hang(true)
			}
			lk := f.locker(redlock.Options{Separator: ":"}, f.nodes...)
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
			if _, err := lk.Attach(f.Context(), redlock.Handle{Name: "a", Token: "token", TTL: time.Second}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Attach: %v", err)
			}
		})
	})
}

// TestRefusalEnds: a program that cannot use the set is refused until the set is changed back, and no longer.
func TestRefusalEnds(t *testing.T) {
	second, four, three, two := time.Second, 4*time.Second, 3, 2
	for _, tt := range []struct {
		name      string
		opts      redlock.Options
		bad, back redlock.Change
		want      string
	}{
		{"MaxTTL", redlock.Options{TTL: four}, redlock.Change{MaxTTL: &second}, redlock.Change{MaxTTL: &four}, "TTL is 4s, and the set allows 1s"},
		{"Quorum", redlock.Options{TTL: four, Quorum: 2}, redlock.Change{Quorum: &three}, redlock.Change{Quorum: &two}, "Options.Quorum is 2, and that of the set is 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onNodes(t, 3, func(f *fleet) {
				lk, op := f.locker(tt.opts, f.nodes...), f.locker(redlock.Options{TTL: second}, f.nodes...)
				f.locks(op, true)
				long := atRest(f.T, lk, "long", redlock.AutoRenew())
				if _, err := op.Change(f.Context(), tt.bad, nil); err != nil {
					t.Fatal(err)
				}
				pass(2 * time.Second) // renewals hear of it
				for range 2 {
					asked := time.Now()
					if _, err := lk.Acquire(f.Context(), "other"); err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, redlock.ErrNoQuorum) {
						t.Errorf("Acquire: %v", err)
					}
					if took := time.Since(asked); took > 500*time.Millisecond {
						t.Errorf("that took %v", took)
					}
				}
				if err := long.Extend(f.Context()); err == nil || errors.Is(err, redlock.ErrLost) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Extend: %v", err)
				}
				if _, err := op.Change(f.Context(), tt.back, nil); err != nil {
					t.Fatal(err)
				}
				f.locks(lk, true)
				atRest(f.T, lk, "another")
				quick := tt.bad.MaxTTL != nil // a bound is changed within a moment, both ways
				if err := whyEnded(long); quick && err != nil || !quick && (!errors.Is(err, redlock.ErrLost) || !strings.Contains(err.Error(), "this program's options are not those of the set")) {
					t.Errorf("what was held by the description before: %v", err)
				}
			})
		})
	}
}

// TestMaxTTLChanges: it is made longer and shorter while locks are held. Whatever nodes lose their data meanwhile, no lock gets
// a second holder.
func TestMaxTTLChanges(t *testing.T) {
	short, long := 2*time.Second, time.Minute
	onNodes(t, 3, func(f *fleet) {
		lk, idle := f.locker(redlock.Options{TTL: short, MaxTTL: short}, f.nodes...), f.locker(redlock.Options{TTL: short, MaxTTL: short}, f.nodes...)
		f.locks(lk, true)
		f.locks(idle, true)
		began := time.Now()
		if m, err := lk.Change(f.Context(), redlock.Change{MaxTTL: &long}, nil); err != nil || m.MaxTTL != long || m.LongerTTL != 0 || m.Epoch != 3 {
			t.Fatalf("%+v, %v", m, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		atRest(f.T, idle, "other", redlock.TTL(long)) // it asks whether what it knows is still so
		l := atRest(f.T, lk, "long", redlock.TTL(long))
		for _, n := range f.nodes[:2] { // the second one when the first one has been told the description again
			n.Flush()
			_, _ = lk.TryAcquire(f.Context(), "found out")
			pass(100 * time.Millisecond)
		}
		f.alone(l, same(idle), same(lk))
	})
	onNodes(t, 3, func(f *fleet) {
		lk, idle := f.locker(redlock.Options{TTL: short, MaxTTL: long}, f.nodes...), f.locker(redlock.Options{TTL: short, MaxTTL: short}, f.nodes...)
		f.locks(lk, true)
		f.locks(idle, true)
		lk.Close()
		lk = f.locker(redlock.Options{TTL: short}, f.nodes...)
		l := atRest(f.T, lk, "long", redlock.TTL(long))
		began := time.Now()
		change := func(over bool) redlock.Members {
			m, err := lk.Change(f.Context(), redlock.Change{MaxTTL: &short, LongerOver: over}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		op := f.locker(redlock.Options{TTL: time.Second, MaxTTL: short}, f.nodes...)
		lk, op = op, lk
		if m := change(false); m.MaxTTL != short || m.LongerTTL != long {
			t.Fatalf("%+v", m)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("new locks are bounded after %v", took)
		}
		if _, err := op.TryAcquire(f.Context(), "other", redlock.TTL(long)); err == nil || !strings.Contains(err.Error(), "and the set allows 2s") {
			t.Errorf("a longer lock: %v", err)
		}
		if err := l.Extend(f.Context()); err == nil || errors.Is(err, redlock.ErrLost) || !strings.Contains(err.Error(), "the lock's TTL is 1m0s, and the set allows 2s") {
			t.Errorf("a longer lock is extended: %v", err)
		}
		for _, n := range f.nodes[:2] { // the second one when the first one has been told the description again
			n.Flush()
			_, _ = lk.TryAcquire(f.Context(), "found out")
			pass(100 * time.Millisecond)
		}
		f.alone(l, same(lk), same(idle)) // which waits for its end
		if m := change(false); m.LongerTTL != 0 || time.Since(began) < 2*long {
			t.Errorf("after %v: %+v", time.Since(began), m)
		}
		f.nodes[2].Flush()
		f.locks(lk, true)
		pass(3 * time.Second)
		f.nodes[0].Kill()
		f.locks(lk, true) // a quarantine is short now
	})
}

// TestMaxTTLIsAskedForBeforeARefusal: a client to which nothing was said since hears of a longer MaxTTL when it needs one: for a lock,
// for a handle, and for the renewals of a lock that were refused meanwhile.
func TestMaxTTLIsAskedForBeforeARefusal(t *testing.T) {
	short, long := 2*time.Second, 4*time.Second
	onNodes(t, 3, func(f *fleet) {
		op := f.locker(redlock.Options{TTL: short, MaxTTL: long}, f.nodes...)
		change := func(to time.Duration) {
			t.Helper()
			if _, err := op.Change(f.Context(), redlock.Change{MaxTTL: &to}, nil); err != nil {
				t.Fatal(err)
			}
		}
		f.locks(op, true)
		holder := f.locker(redlock.Options{TTL: long}, f.nodes...)
		l := atRest(f.T, holder, "long", redlock.AutoRenew())
		change(short)
		pass(long / 2) // renewals are refused
		if err := l.Extend(f.Context()); err == nil || errors.Is(err, redlock.ErrLost) {
			t.Errorf("it is extended: %v", err)
		}
		if j, err := holder.TryAcquire(l.Context(f.Context()), "long", redlock.Reentrant()); err != nil || j.Release(f.Context()) != nil {
			t.Errorf("a call joins the lock, which needs no TTL of its own: %v", err)
		}
		idle, other := f.locker(redlock.Options{TTL: short}, f.nodes...), f.locker(redlock.Options{TTL: short}, f.nodes...)
		f.locks(idle, true)
		f.locks(other, true)
		change(long)
		pass(3 * long)
		if err := whyEnded(l); err != nil {
			t.Errorf("the lock ended although it may be extended again: %v", err)
		}
		atRest(f.T, idle, "another", redlock.TTL(long))
		h, err := atRest(f.T, op, "a handle", redlock.TTL(long)).Detach()
		if err == nil {
			_, err = other.Attach(f.Context(), h)
		}
		if err != nil {
			t.Error(err)
		}
	})
	onNodes(t, 3, func(f *fleet) {
		lk, began := f.locker(redlock.Options{TTL: short, Quarantine: -1}, f.nodes...), time.Now()
		if _, err := lk.TryAcquire(f.Context(), "a", redlock.TTL(time.Minute)); err == nil || time.Since(began) > 0 {
			t.Errorf("a TTL over MaxTTL: %v after %v", err, time.Since(began))
		}
	})
}

// took has a Locker wait for a lock, and calls a function when it is held.
func (f *fleet) took(lk *redlock.Locker, name string, held func()) {
	l, err := lk.Acquire(f.Context(), name)
	if err == nil {
		held()
		err = l.Release(f.Context())
	}
	if err != nil {
		f.Error(err)
	}
}

// TestOrderBeforeTheSetIsKnown: calls of one Locker get a lock in the order in which they came, also if some came
// before it knew the set.
func TestOrderBeforeTheSetIsKnown(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  redlock.Options // of the program that has the set described
	}{
		{"its options are those of the set", redlock.Options{}},
		{"the set has a separator", redlock.Options{Separator: "/"}},
	} {
		for _, back := range []int{1, 2} { // how many of the two nodes that hang answer again
			t.Run(fmt.Sprint(tt.name, ", ", back+1, " nodes answer"), func(t *testing.T) {
				onNodes(t, 3, func(f *fleet) {
					lk, other := f.locker(redlock.Options{TTL: time.Second}, f.nodes...), f.locker(tt.set, f.nodes...)
					f.locks(other, true)
					for _, n := range f.nodes[1:] {
						n.Hang(true)
					}
					f.locks(lk, false) // its nodes are known to be silent from now on: a choice fails at once, and pauses
					var mu sync.Mutex
					var order []int
					var all sync.WaitGroup
					for i := range 100 {
						all.Go(func() {
							f.took(lk, "a/b", func() {
								mu.Lock()
								defer mu.Unlock()
								order = append(order, i)
							})
						})
						time.Sleep(700 * time.Microsecond)
						all.Go(func() { f.took(lk, fmt.Sprint(i), func() {}) }) // it may be the first one that hears of the set
						switch i {
						case 2:
							for _, n := range f.nodes[1 : 1+back] {
								n.Hang(false)
							}
						}
					}
					all.Wait()
					if !slices.IsSorted(order) {
						t.Errorf("the order is %v", order)
					}
				})
			})
		}
	}
}
