package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// namesOf splits all names of a lock into their parts.
func (tw *twin) namesOf(e history.Event) (all [][]string) {
	for _, name := range append([]string{e.Name}, strings.Fields(e.Also)...) {
		parts := []string{name}
		if tw.Run.Separator != "" {
			parts = strings.Split(name, tw.Run.Separator)
		}
		all = append(all, parts)
	}
	return all
}

// isSlot reports whether an event is about one slot of several.
func isSlot(e history.Event) bool { return e.Slots > 0 && !e.Shared && e.Also == "" }

func sameSlots(a, b history.Event) bool { return isSlot(a) && isSlot(b) && a.Name == b.Name }

// apart reports whether two locks, by themselves, can be held at once: both are shared, or are
// slots of the same name, or have no name in common.
func (tw *twin) apart(a, b history.Event) bool {
	if a.Shared && b.Shared || sameSlots(a, b) {
		return true
	}
	for _, x := range tw.namesOf(a) {
		for _, y := range tw.namesOf(b) {
			n := min(len(x), len(y))
			if slices.Equal(x[:n], y[:n]) {
				return false
			}
		}
	}
	return true
}

// same reports whether two requests are for the same lock: each contains all names of the other.
func (tw *twin) same(a, b history.Event) bool {
	takesIn := func(a, b history.Event) bool {
		return !slices.ContainsFunc(tw.namesOf(b), func(name []string) bool {
			return !slices.ContainsFunc(tw.namesOf(a), func(whole []string) bool {
				return len(whole) <= len(name) && slices.Equal(whole, name[:len(whole)])
			})
		})
	}
	return a.Shared == b.Shared && isSlot(a) == isSlot(b) && takesIn(a, b) && takesIn(b, a)
}

// crowded reports whether there are too few slots for their holders when a hold begins. It gives
// the last slots first to the holders that can have them.
func (tw *twin) crowded(i int, o twinHold) (got []int) {
	all := []int{i}
	for j := i - 1; j >= 0; j-- {
		if p := tw.holds[j]; sameSlots(p.what, o.what) && p.from < p.to && p.to > o.from && !tw.lawless(p) {
			all = append(all, j)
		}
	}
	slices.Reverse(all)
	for n := o.what.Slots; n <= len(all); n++ {
		free := n
		got = nil
		for _, j := range all {
			if tw.holds[j].what.Slots <= n {
				free--
				got = append(got, tw.holds[j].got)
			}
		}
		if free < 0 {
			return got
		}
	}
	return nil
}

// inTheWay tells for each instant whether other clients keep a waiter from its lock up to the next
// instant, and whether they did at the instant itself.
func (tw *twin) inTheWay(w twinWait, waits []twinWait) (is, touched []bool) {
	is, touched = tw.taken(w)
	settle := max(tw.Run.Settle, 1)
	for _, o := range waits {
		same := o.what.Name == w.what.Name && o.what.Also == w.what.Also && o.what.Shared == w.what.Shared && o.what.Slots == w.what.Slots
		if same || tw.apart(o.what, w.what) && !sameSlots(o.what, w.what) || o.end <= w.asked || o.asked-w.asked >= settle {
			continue
		}
		touched[o.asked] = true
		for at := o.asked; at < o.end && at <= tw.last; at++ {
			is[at] = true
		}
	}
	if !isSlot(w.what) {
		return is, touched
	}
	for at := range is {
		now, still := 0, 0
		for _, o := range tw.holds {
			if from, to := o.from, tw.free(o); sameSlots(o.what, w.what) && from <= time.Duration(at) && time.Duration(at) <= to {
				now++
				if time.Duration(at) < to {
					still++
				}
			}
		}
		is[at] = is[at] || still >= w.what.Slots
		touched[at] = touched[at] || now >= w.what.Slots
	}
	return is, touched
}
