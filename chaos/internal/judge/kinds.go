package judge

import "github.com/quorumlock/redlock/chaos/history"

// Rules are about pairs of locks: those that are in each other's way. In a history there
// are many locks of a few kinds, so it is found out once for each two kinds.

// sort says which of the wants are in each other's way, and which are the same.
func (r *record) sort() {
	n := len(r.requests)
	r.against, r.behind, r.lines = make([][]int, n), make([][]int, n), make([]history.Request, n)
	for i, w := range r.requests {
		r.lines[i] = w.Canonical(r.run.Separator)
		for j, o := range r.requests {
			if w.Conflicts(o, r.run.Separator) {
				r.against[i] = append(r.against[i], j)
			}
			if w.MustQueueBehind(o, r.run.Separator) {
				r.behind[i] = append(r.behind[i], j)
			}
		}
	}
}

// request is what an op wants.
func (r *record) request(o *op) history.Request { return r.requests[o.request] }

// crowd gives those who have a slot of the same name as the last of some, when they are
// too many: of those with one of the first n slots, there can be n. All have what they
// have at one moment.
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
