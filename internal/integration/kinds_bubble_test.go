package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/waitlist"
)

// TestEachHolderConflictsForItsOwnTTL: each of several holders of a key conflicts until its own TTL ends, whichever
// others came before or after it with a longer or shorter one.
func TestEachHolderConflictsForItsOwnTTL(t *testing.T) {
	type want struct {
		name    string
		options []redlock.AcquireOption
	}
	const short, long = time.Second, 10 * time.Second
	const soon = 3 * time.Millisecond
	heartbeat := waitlist.Heartbeat(long) // of a waiter that knows until when one slot is held, and not the other
	shared, slot := []redlock.AcquireOption{redlock.Shared()}, []redlock.AcquireOption{redlock.Slots(2)}
	for row, tt := range []struct {
		what        string
		short, long want
		wanted      want
		after, late time.Duration
	}{
		{"readers, and a writer", want{"a", shared}, want{"a", shared}, want{"a", nil}, long, soon},
		{"slots, and who wants it alone", want{"a", slot}, want{"a", slot}, want{"a", nil}, long, soon},
		{"slots, and a third who wants one", want{"a", slot}, want{"a", slot}, want{"a", slot}, short, heartbeat},
		{"two in a folder", want{"a/b", nil}, want{"a/c", nil}, want{"a", nil}, long, soon},
		{"two in a folder, and a reader of it", want{"a/b", nil}, want{"a/c", nil}, want{"a", shared}, long, soon},
		{"two readers in a folder", want{"a/b", shared}, want{"a/c/d", shared}, want{"a", nil}, long, soon},
		{"a writer in a folder, a reader for longer, and a reader of all", want{"a/b", nil}, want{"a/c", shared}, want{"a", shared}, short, soon},
		{"a reader in a folder, a writer for longer, and a reader of all", want{"a/b", shared}, want{"a/c", nil}, want{"a", shared}, long, soon},
		{"a slot in a folder, a reader for longer, and a reader of all", want{"a/b", slot}, want{"a/c", shared}, want{"a", shared}, short, soon},
		{"a reader of a folder, and one in it for longer", want{"a", shared}, want{"a/b", shared}, want{"a", nil}, long, soon},
		{"a reader of a folder for longer than one in it", want{"a/b", shared}, want{"a", shared}, want{"a/b", nil}, long, soon},
		{"several names", want{"b", []redlock.AcquireOption{redlock.Shared(), redlock.Also("a")}}, want{"c", []redlock.AcquireOption{redlock.Shared(), redlock.Also("a")}}, want{"a", nil}, long, soon},
	} {
		for column, first := range []string{"the short one first", "the long one first"} {
			if !need.Sample(row+column, 12) {
				continue
			}
			t.Run(tt.what+", "+first, func(t *testing.T) {
				fences(t, func(f *fenced) {
					t := f.T
					one, two, third, fourth := f.locker(paths), f.locker(paths), f.locker(paths), f.locker(paths)
					begin := time.Now()
					take := func(lk *redlock.Locker, w want, ttl time.Duration) {
						atRest(t, lk, w.name, append([]redlock.AcquireOption{redlock.TTL(ttl)}, w.options...)...)
					}
					if first == "the short one first" {
						take(one, tt.short, short)
						take(two, tt.long, long)
					} else {
						take(two, tt.long, long)
						take(one, tt.short, short)
					}
					for time.Since(begin) < tt.after-tt.after/8 {
						refused(t, third, tt.wanted.name, tt.wanted.options...)
						pass(tt.after / 9)
					}
					time.Sleep(tt.after - time.Since(begin) - time.Millisecond)
					refused(t, third, tt.wanted.name, tt.wanted.options...)
					l, err := fourth.Acquire(t.Context(), tt.wanted.name, tt.wanted.options...)
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(begin); took > tt.after+tt.late {
						t.Errorf("had after %v, want %v", took, tt.after)
					}
					f.release(l)
				})
			})
		}
	}
}

// TestShareOfADeadReaderEndsByItself: its share ends by itself, although others go on, and leaves nothing in the key that
// they hold.
func TestShareOfADeadReaderEndsByItself(t *testing.T) {
	fences(t, func(f *fenced) {
		t := f.T
		one, two, writer := f.locker(nil), f.locker(nil), f.locker(nil)
		atRest(t, one, "a", redlock.Shared(), redlock.TTL(2*time.Second))
		l := atRest(t, two, "a", redlock.Shared(), redlock.TTL(2*time.Second), redlock.AutoRenew())
		pass(20 * time.Second)
		if s := inspect(t, writer, "a"); s.State != redlock.StateHeld || len(s.Holders) != 1 || s.Holders[0].Token != l.Token() {
			t.Errorf("%+v", s)
		}
		for i := range f.Len() {
			if set, err := f.Mini(i).SortedSet("a"); err != nil || len(set) != 1 {
				t.Errorf("node %d has %v, %v", i, set, err)
			}
		}
		refused(t, writer, "a")
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		atRest(t, writer, "a")
	})
}

// A crowd has the holders of slots, and checks their number.
type crowd struct {
	*testing.T
	mu   sync.Mutex
	in   map[*redlock.Lock]string // the number of its slot
	most int
}

func (c *crowd) enter(l *redlock.Lock, slot string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in[l] = slot
	n := 0
	for other, its := range c.in {
		if !other.Until().After(time.Now()) {
			continue
		}
		if n++; other != l && its == slot {
			c.Errorf("two have slot %s", slot)
		}
	}
	c.most = max(c.most, n)
}

func (c *crowd) leave(l *redlock.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.in, l)
}

// TestSlotsWithLinksDown: three clients that each reach another two of three nodes, so that any two of them
// have one node in common, and no node sees more than two of them. There are never more holders than slots,
// and all clients get one.
func TestSlotsWithLinksDown(t *testing.T) {
	need.Full(t) // TestModelSchedules of the harness has slots while links are down
	for _, slots := range []int{1, 2} {
		bubble(t, func(t *testing.T) {
			leaks.Check(t)
			f := &fenced{t, redistest.NewBubble(t, 3)}
			c := &crowd{T: t, in: make(map[*redlock.Lock]string)}
			var calls sync.WaitGroup
			for i := range f.Len() {
				f.Path(i).SetJitter(3 * time.Millisecond)
				for caller := range 2 {
					lk, err := redlock.New(f.without(i), &redlock.Options{TTL: 400 * time.Millisecond})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { lk.Close() })
					calls.Go(func() {
						lots := rand.New(rand.NewPCG(uint64(i), uint64(caller)))
						for n := range need.Sized(15, 15, 300) {
							ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
							l, err := lk.Acquire(ctx, "a", redlock.Slots(slots))
							cancel()
							if err != nil {
								t.Errorf("client %d: %v", i, err)
								return
							}
							c.enter(l, f.slot(l))
							time.Sleep(time.Duration(lots.Int64N(int64(20 * time.Millisecond))))
							c.leave(l)
							if n%10 > 0 { // otherwise it crashes
								l.Release(t.Context())
							}
							time.Sleep(time.Duration(lots.Int64N(int64(20 * time.Millisecond))))
						}
					})
				}
			}
			calls.Wait()
			if c.most != slots {
				t.Errorf("%d had one of %d slots at once", c.most, slots)
			}
		})
	}
}

// TestInspectKinds: the holders of a lock that several can hold, their modes, and for how long; and the
// holders of something below it.
func TestInspectKinds(t *testing.T) {
	fences(t, func(f *fenced) {
		t, lk := f.T, f.locker(paths)
		held := func(name string, ttl time.Duration, options ...redlock.AcquireOption) *redlock.Lock {
			t.Helper()
			return atRest(t, lk, name, append(options, redlock.TTL(ttl))...)
		}
		type holder struct {
			lock *redlock.Lock
			how  string
			ttl  time.Duration
		}
		look := func(name string, verdict redlock.State, want ...holder) *redlock.Status {
			t.Helper()
			s := inspect(t, lk, name)
			if s.State != verdict || len(s.Holders) != len(want) || s.Token != "" && len(want) > 0 {
				t.Errorf("%s: %v, %+v; want %d holders", name, s.State, s.Holders, len(want))
				return s
			}
			for _, w := range want {
				holder := redlock.Holder{Token: w.lock.Token(), By: redlock.Identify(w.lock.Token()), Mode: redlock.Mode(w.how), TTL: w.ttl, Nodes: f.Len()}
				if !slices.ContainsFunc(s.Holders, func(h redlock.Holder) bool { return reflect.DeepEqual(h, holder) }) {
					t.Errorf("%s: %+v, and no %q by %s for %v", name, s.Holders, w.how, w.lock.Token(), w.ttl)
				}
			}
			return s
		}

		one, two := held("a", 5*time.Second, redlock.Shared()), held("a", 10*time.Second, redlock.Shared(), redlock.Also("b"))
		if s := look("a", redlock.StateHeld, holder{one, "shared", 5 * time.Second}, holder{two, "shared", 10 * time.Second}); s.TTL != 10*time.Second {
			t.Errorf("the last of the readers has it for %v", s.TTL)
		}
		look("b", redlock.StateHeld, holder{two, "shared", 10 * time.Second})
		pass(6 * time.Second)
		look("a", redlock.StateHeld, holder{two, "shared", 4 * time.Second})
		f.release(two)
		look("a", redlock.StateFree)
		look("b", redlock.StateFree)

		slot, other := held("jobs", 20*time.Second, redlock.Slots(3)), held("jobs", 30*time.Second, redlock.Slots(3))
		look("jobs", redlock.StateHeld, holder{slot, "slot", 20 * time.Second}, holder{other, "slot", 30 * time.Second})
		f.release(slot)
		f.release(other)
		look("jobs", redlock.StateFree)

		reader, writer := held("p/A", 20*time.Second, redlock.Shared()), held("p/B/c", 30*time.Second)
		look("p", redlock.StateHeld, holder{reader, "shared below", 20 * time.Second}, holder{writer, "below", 30 * time.Second})
		look("/p/A/", redlock.StateHeld, holder{reader, "shared", 20 * time.Second})
		look("p/B", redlock.StateHeld, holder{writer, "below", 30 * time.Second})
		if s := look("p/B/c", redlock.StateHeld); s.Token != writer.Token() || s.Fence != writer.Fence() {
			t.Errorf("%+v", s)
		}
		look("p/C", redlock.StateFree)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go f.locker(paths).Acquire(ctx, "p")
		pass(500 * time.Millisecond)
		if s := inspect(t, lk, "p"); len(s.Waiting) != 1 || s.Waiting[0].Nodes != f.Len() || len(s.Holders) != 2 {
			t.Errorf("there is a waiter for the folder: %+v", s)
		}
		pass(time.Second)
		f.release(reader)
		f.release(writer)
		look("p", redlock.StateFree)
	})
}

// TestInspectKindsDisagree: a token that no quorum has is no holder.
func TestInspectKindsDisagree(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(nil)
		l := atRest(f.T, lk, "a", redlock.Shared())
		for i := range 3 {
			f.Mini(i).Del("a")
		}
		if s := inspect(f.T, lk, "a"); s.State != redlock.StateFree || len(s.Holders) != 1 || s.Holders[0].Nodes != 2 {
			f.Errorf("two of five nodes know of a reader: %+v", s)
		}
		f.Kill(0)
		if s := inspect(f.T, lk, "a"); s.State != redlock.StateSplit || len(s.Holders) != 1 || s.Holders[0].Token != l.Token() {
			f.Errorf("two nodes have the token, and two have none: %+v", s)
		}
	})
}

// TestSlotsFillUp: a call that asks once for a slot gets one as long as one is free, although it does
// not know which, and a node is down; and a smaller number of slots gives no more.
func TestSlotsFillUp(t *testing.T) {
	for _, n := range need.Sized([]int{7}, []int{1, 2, 40}, []int{1, 2, 40}) {
		fences(t, func(f *fenced) {
			f.Kill(4)
			one, other := f.locker(nil), f.locker(nil)
			var all []*redlock.Lock
			taken := make(map[string]bool)
			for i := range n {
				l, err := []*redlock.Locker{one, other}[i%2].TryAcquire(f.Context(), "jobs", redlock.Slots(n))
				if err != nil {
					f.Fatalf("slot %d of %d: %v", i+1, n, err)
				}
				slot := f.slot(l)
				if number, err := strconv.Atoi(slot); err != nil || number < 1 || number > n || taken[slot] {
					f.Errorf("slot %s of %d", slot, n)
				}
				taken[slot] = true
				all = append(all, l)
			}
			if _, err := one.TryAcquire(f.Context(), "jobs", redlock.Slots(n)); !errors.Is(err, redlock.ErrHeld) || !strings.Contains(err.Error(), ", and no other slot is free") {
				f.Errorf("slot %d of %d: %v", n+1, n, err)
			}
			if _, err := other.TryAcquire(f.Context(), "jobs"); !errors.Is(err, redlock.ErrHeld) || strings.Contains(err.Error(), "slot") {
				f.Errorf("the whole: %v", err)
			}
			if n > 2 {
				refused(f.T, other, "jobs", redlock.Slots(2))
			}
			free := f.slot(all[n/2])
			f.release(all[n/2])
			again := atRest(f.T, other, "jobs", redlock.Slots(n))
			if had := f.slot(again); had != free {
				f.Errorf("slot %s is free, and slot %s is had", free, had)
			}
			f.release(again)
			for i, l := range all {
				if i != n/2 {
					if err := l.Release(f.Context()); err != nil {
						f.Error(err)
					}
				}
			}
			pass(time.Second)
			f.free(0, 1, 2, 3)
		})
	}
}

// TestLastFreeSlotOfTheMostIsFound: of MaxSlots slots all but one are held by somebody else. One call finds the free
// one.
func TestLastFreeSlotOfTheMostIsFound(t *testing.T) {
	fences(t, func(f *fenced) {
		for i := range f.Len() {
			for n := range redlock.MaxSlots {
				if n+1 != 777 {
					f.Mini(i).Set(fmt.Sprint("jobs:slot:", n+1), "somebody")
					f.Mini(i).SetTTL(fmt.Sprint("jobs:slot:", n+1), 10*time.Second)
				}
			}
		}
		lk := f.locker(nil)
		if l := atRest(f.T, lk, "jobs", redlock.Slots(redlock.MaxSlots)); f.slot(l) != "777" {
			f.Errorf("slot %s", f.slot(l))
		}
		refused(f.T, lk, "jobs", redlock.Slots(redlock.MaxSlots))
	})
}

// TestLockIsGoneWhereOneOfItsKeysIs: a lock of several keys is one. At a node that has lost any of them it is
// gone, and is there again as a whole with the next extension; and it is lost when too many
// nodes have lost one, whichever.
func TestLockIsGoneWhereOneOfItsKeysIs(t *testing.T) {
	for row, tt := range []struct {
		name    string
		options []redlock.AcquireOption
		keys    []string
	}{
		{"a", []redlock.AcquireOption{redlock.Also("b", "c")}, []string{"a", "b", "c"}},
		{"a", []redlock.AcquireOption{redlock.Also("b"), redlock.Shared()}, []string{"a", "b"}},
		{"p/A/x", nil, []string{"p", "p/A", "p/A/x"}},
		{"p/A/x", []redlock.AcquireOption{redlock.Shared()}, []string{"p", "p/A", "p/A/x"}},
		{"p/jobs", []redlock.AcquireOption{redlock.Slots(1)}, []string{"p", "p/jobs", "p/jobs:slot:1"}},
	} {
		for i, lost := range tt.keys {
			if !need.Sample(row+i, 6) {
				continue
			}
			t.Run(fmt.Sprint(tt.name, len(tt.options), ", ", lost), func(t *testing.T) {
				fences(t, func(f *fenced) {
					l := atRest(f.T, f.locker(paths), tt.name, tt.options...)
					for node := range 2 {
						f.Mini(node).Del(lost)
					}
					if err := l.Extend(f.Context()); err != nil {
						f.Fatalf("three of five nodes have it: %v", err)
					}
					pass(time.Second)
					for node := range f.Len() {
						if keys := f.Keys(node); fmt.Sprint(keys) != fmt.Sprint(tt.keys) {
							f.Errorf("node %d has %q, want %q", node, keys, tt.keys)
						}
					}
					for node := range 3 { // each has lost another one
						f.Mini(node).Del(tt.keys[(i+node)%len(tt.keys)])
					}
					if err := l.Extend(f.Context()); !errors.Is(err, redlock.ErrLost) {
						f.Errorf("two of five nodes have it: %v", err)
					}
					pass(time.Second)
					f.free(0, 1, 2, 3, 4)
				})
			})
		}
	}
}

// TestKindsWaitForPlainRedlock: a client of another library calls no waiter. Waiters for its lock retry
// more often than at their heartbeats, for all kinds of lock.
func TestKindsWaitForPlainRedlock(t *testing.T) {
	for row, tt := range []struct {
		name    string
		options []redlock.AcquireOption
	}{
		{"p", nil}, {"p", []redlock.AcquireOption{redlock.Shared()}}, {"p", []redlock.AcquireOption{redlock.Slots(2)}}, {"p/A", nil}, {"p/A/x", []redlock.AcquireOption{redlock.Shared()}}, {"a", []redlock.AcquireOption{redlock.Also("p")}},
	} {
		if !need.Sample(row+1, 6) {
			continue
		}
		fences(t, func(f *fenced) {
			lk := f.locker(paths)
			for i := range f.Len() {
				f.Mini(i).Set("p", "MTIzNDU2Nzg5MDEyMzQ1Ng==")
				f.Mini(i).SetTTL("p", time.Minute)
			}
			var freed time.Time
			time.AfterFunc(3456*time.Millisecond, func() {
				freed = time.Now()
				for i := range f.Len() {
					f.Mini(i).Del("p")
				}
			})
			l, err := lk.Acquire(f.Context(), tt.name, tt.options...)
			if err != nil {
				f.Fatal(err)
			}
			if took := time.Since(freed); freed.IsZero() || took > waitlist.MaxPause {
				f.Errorf("%s: free for %v", tt.name, took)
			}
			f.release(l)
			f.free(0, 1, 2, 3, 4)
		})
	}
}
