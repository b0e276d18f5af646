package redlock

import (
	"errors"
	"fmt"
	"github.com/quorumlock/redlock/internal/waitlist"
	"testing"
	"time"
)

// TestSlotsFillUp: a call that asks once for a slot gets one as long as one is free, although it does
// not know which, and a node is down; and a smaller number of slots gives no more.
func TestSlotsFillUp(t *testing.T) {
	for _, n := range []int{1, 2, 40} {
		fences(t, func(f *fenced) {
			f.Kill(4)
			one, other := f.locker(nil), f.locker(nil)
			var all []*Lock
			taken := make(map[int64]bool)
			for i := range n {
				l, err := []*Locker{one, other}[i%2].TryAcquire(f.Context(), "jobs", Slots(n))
				if err != nil {
					f.Fatalf("slot %d of %d: %v", i+1, n, err)
				}
				if l.claim.Slot < 1 || l.claim.Slot > int64(n) || taken[l.claim.Slot] {
					f.Errorf("slot %d of %d", l.claim.Slot, n)
				}
				taken[l.claim.Slot] = true
				all = append(all, l)
			}
			refused(f.T, one, "jobs", Slots(n))
			if n > 2 {
				refused(f.T, other, "jobs", Slots(2))
			}
			f.release(all[n/2])
			again := acquired(f.T, other, "jobs", Slots(n))
			if again.claim.Slot != all[n/2].claim.Slot {
				f.Errorf("slot %d is free, and slot %d is had", all[n/2].claim.Slot, again.claim.Slot)
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

// TestMostSlots: as many as there can be, of which hardly any is free.
func TestMostSlots(t *testing.T) {
	fences(t, func(f *fenced) {
		for i := range f.Len() {
			for n := range MaxSlots {
				if n+1 != 777 {
					f.Mini(i).Set(fmt.Sprint("jobs:slot:", n+1), "somebody")
					f.Mini(i).SetTTL(fmt.Sprint("jobs:slot:", n+1), 10*time.Second)
				}
			}
		}
		lk := f.locker(nil)
		if l := acquired(f.T, lk, "jobs", Slots(MaxSlots)); l.claim.Slot != 777 {
			f.Errorf("slot %d", l.claim.Slot)
		}
		refused(f.T, lk, "jobs", Slots(MaxSlots))
	})
}

// TestOneKeyIsLost: a lock of several keys is one. At a node that has lost any of them it is
// gone, and is there again as a whole with the next extension; and it is lost when too many
// nodes have lost one, whichever.
func TestOneKeyIsLost(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options []AcquireOption
		keys    []string
	}{
		{"a", []AcquireOption{Also("b", "c")}, []string{"a", "b", "c"}},
		{"a", []AcquireOption{Also("b"), Shared()}, []string{"a", "b"}},
		{"p/A/x", nil, []string{"p", "p/A", "p/A/x"}},
		{"p/A/x", []AcquireOption{Shared()}, []string{"p", "p/A", "p/A/x"}},
		{"p/jobs", []AcquireOption{Slots(1)}, []string{"p", "p/jobs", "p/jobs:slot:1"}},
	} {
		for i, lost := range tt.keys {
			t.Run(fmt.Sprint(tt.name, len(tt.options), ", ", lost), func(t *testing.T) {
				fences(t, func(f *fenced) {
					l := acquired(f.T, f.locker(paths), tt.name, tt.options...)
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
					if err := l.Extend(f.Context()); !errors.Is(err, ErrLost) {
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
	for _, tt := range []struct {
		name    string
		options []AcquireOption
	}{
		{"p", nil}, {"p", []AcquireOption{Shared()}}, {"p", []AcquireOption{Slots(2)}}, {"p/A", nil}, {"p/A/x", []AcquireOption{Shared()}}, {"a", []AcquireOption{Also("p")}},
	} {
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
