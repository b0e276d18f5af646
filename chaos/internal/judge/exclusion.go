package judge

import (
	"fmt"
	"slices"
	"time"
)

// crowd returns the holders of slots of one name, that of the last hold, if they are too many: there can be n
// holders of the first n slots. All of them hold at one moment.
func (r *record) crowd(all []int) []int {
	for n := r.request(&r.ops[all[len(all)-1]]).Slots; n < len(all); n++ {
		var some []int
		for _, k := range all {
			if r.request(&r.ops[k]).Slots <= n {
				some = append(some, k)
			}
		}
		if len(some) > n {
			return some
		}
	}
	return nil
}

// exclusion compares each hold with the earlier conflicting hold that lasts longest: if it overlaps any, it
// overlaps that one. A hold of a slot is counted with the others of that moment.
func exclusion(r *record) {
	farthest := make([]int, len(r.requests)) // by request: an index of r.holds, plus 1
	var slots map[string][]int               // by name: the ops that hold a slot
	for i, k := range r.holds {
		o := &r.ops[k]
		from, to := r.valid(o)
		if from >= to {
			continue
		}
		if r.run.Forgetful {
			if r.foreign(o) {
				continue
			}
			r.behindForeign(o)
		}
		worst, last := -1, from
		for _, v := range r.against[o.request] {
			if j := farthest[v] - 1; j >= 0 {
				if _, until := r.valid(&r.ops[r.holds[j]]); until > last || until == last && j < worst {
					worst, last = j, until
				}
			}
		}
		if worst >= 0 && !r.blinked(&r.ops[r.holds[worst]], from) {
			before := &r.ops[r.holds[worst]]
			since, until := r.valid(before)
			r.violated(from, []int{before.got, o.got}, "client %d had %s from %v to %v, and client %d had %s from %v",
				before.client, r.lock(before), since, until, o.client, r.same(before, o), from)
		}
		if w := r.request(o); w.IsSlot() {
			if slots == nil {
				slots = make(map[string][]int)
			}
			all := slices.DeleteFunc(slots[w.Name], func(k int) bool { _, until := r.valid(&r.ops[k]); return until <= from })
			all = append(all, k)
			slots[w.Name] = all
			if some := r.crowd(all); some != nil {
				var got []int
				for _, k := range some {
					got = append(got, r.ops[k].got)
				}
				r.violated(from, got, "client %d had %s from %v, when %d had one already", o.client, r.lock(o), from, len(some)-1)
			}
		}
		if j := farthest[o.request] - 1; j >= 0 {
			if _, until := r.valid(&r.ops[r.holds[j]]); to <= until {
				continue
			}
		}
		farthest[o.request] = i + 1
	}
}

// behindForeign checks a hold where nodes lose data (history.Head.Forgetful): no client of another library had the lock
// before this one asked, and has it still.
func (r *record) behindForeign(o *op) {
	from, _ := r.valid(o)
	var worst *op
	last := from
	for _, k := range r.holds {
		before := &r.ops[k]
		if o.ask < 0 || r.begin(k) >= r.events[o.ask].At {
			break
		}
		if since, until := r.valid(before); r.foreign(before) && since < until && until > last && slices.Contains(r.against[o.request], before.request) {
			worst, last = before, until
		}
	}
	if worst != nil && !r.blinked(worst, from) {
		r.violated(from, []int{worst.got, o.got}, "client %d of another library had %s until %v, and client %d asked for it later and had %s from %v",
			worst.client, r.lock(worst), last, o.client, r.lock(o), from)
	}
}

// foreign reports whether an op is of a client of another library.
func (r *record) foreign(o *op) bool { return o.ask >= 0 && r.events[o.ask].Verb == "plain" }

// blinked reports whether a node's clock was set, and set back, between the request for a lock and
// an instant: the node may have dropped the lock, and a client that did not ask it meanwhile cannot
// know (docs/safety.md). Fences are compared all the same.
func (r *record) blinked(o *op, at time.Duration) bool {
	asked := r.events[max(o.ask, 0)].At
	return slices.ContainsFunc(r.blinks, func(s span) bool { return s.from <= at && s.to >= asked })
}

// same describes a hold after another one.
func (r *record) same(before, o *op) string {
	if before.request == o.request {
		return fmt.Sprintf("it (%s)", r.events[o.got].Token)
	}
	return r.lock(o)
}

func tokens(r *record) {
	owners := make(map[string]int, len(r.holds))
	for _, k := range r.holds {
		o := &r.ops[k]
		e := &r.events[o.got]
		if e.Token == "" {
			r.violated(e.At, []int{o.got}, "client %d got %v without a token", o.client, r.request(o))
			continue
		}
		if first, taken := owners[e.Token]; taken {
			other := &r.ops[first]
			r.violated(e.At, []int{other.got, o.got}, "client %d got %s at %v with the token with which client %d had got %v at %v",
				o.client, r.lock(o), e.At, other.client, r.request(other), r.events[other.got].At)
		} else {
			owners[e.Token] = k
		}
	}
}
