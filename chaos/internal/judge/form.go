package judge

import (
	"cmp"
	"slices"
)

func lostUpdates(r *record) {
	for _, w := range r.writes {
		if e := &r.events[w.event]; e.Value != e.Was+1 {
			shown := []int{w.event}
			if w.read >= 0 {
				shown = []int{w.read, w.event}
			}
			r.violated(e.At, shown, "client %d wrote %d to %q at %v in the place of %d", e.Client, e.Value, e.Name, e.At, e.Was)
		}
	}
}

func nothingLeft(r *record) {
	for _, i := range r.left {
		e := &r.events[i]
		r.violated(e.At, []int{i}, "%s", cmp.Or(e.Error, e.Why, "something is left"))
	}
}

func wellFormed(r *record) {
	for _, o := range r.amiss {
		e := &r.events[o.event]
		r.violated(e.At, []int{o.event}, "client %d, number %d, %q: %s", e.Client, e.Op, e.Kind, o.text)
	}
	books(r)
}

// books checks that each write replaces the value of the one before it.
func books(r *record) {
	writes := make([]int, len(r.writes))
	for i, w := range r.writes {
		writes[i] = w.event
	}
	slices.SortStableFunc(writes, func(a, b int) int {
		e, f := &r.events[a], &r.events[b]
		return cmp.Or(cmp.Compare(e.Name, f.Name), cmp.Compare(e.At, f.At))
	})
	there := 0
	for i, n := 0, 0; i < len(writes); i += n {
		e := &r.events[writes[i]]
		for n = 1; i+n < len(writes); n++ {
			if f := &r.events[writes[i+n]]; f.Name != e.Name || f.At != e.At {
				break
			}
		}
		if i == 0 || r.events[writes[i-1]].Name != e.Name {
			there = 0
		}
		after, ok := r.balance(there, writes[i:i+n])
		if !ok {
			r.violated(e.At, writes[i:i+n:i+n], "%q was %d, and that is not what was replaced at %v", e.Name, there, e.At)
		}
		there = after
	}
}

// balance returns the value after writes of one instant, which have no order: the values that they
// replaced must be the old value and the values that they wrote, except the one that stays.
func (r *record) balance(there int, writes []int) (after int, ok bool) {
	last := &r.events[writes[len(writes)-1]]
	if len(writes) == 1 {
		return last.Value, last.Was == there
	}
	put, was := []int{there}, []int(nil)
	for _, i := range writes {
		put, was = append(put, r.events[i].Value), append(was, r.events[i].Was)
	}
	slices.Sort(put)
	slices.Sort(was)
	stays := 0
	for stays < len(was) && was[stays] == put[stays] {
		stays++
	}
	if !slices.Equal(was[stays:], put[stays+1:]) {
		return last.Value, false
	}
	return put[stays], true
}
