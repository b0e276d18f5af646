package redlock

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestOrderBeforeTheSetIsKnown: calls of one Locker get a lock in the order in which they came, also if some came
// before it knew the set.
func TestOrderBeforeTheSetIsKnown(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  Options // of the program that has the set described
	}{
		{"its options are those of the set", Options{}},
		{"the set has a separator", Options{Separator: "/"}},
	} {
		for _, back := range []int{1, 2} { // how many of the two nodes that hang answer again
			t.Run(fmt.Sprint(tt.name, ", ", back+1, " nodes answer"), func(t *testing.T) {
				onNodes(t, 3, func(f *fleet) {
					lk, other := f.locker(Options{TTL: time.Second}, f.nodes...), f.locker(tt.set, f.nodes...)
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

// took has a Locker wait for a lock, and calls a function when it is held.
func (f *fleet) took(lk *Locker, name string, held func()) {
	l, err := lk.Acquire(f.Context(), name)
	if err == nil {
		held()
		err = l.Release(f.Context())
	}
	if err != nil {
		f.Error(err)
	}
}
