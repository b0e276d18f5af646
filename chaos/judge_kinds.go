package chaos

// Rules are about pairs of locks: those that are in each other's way. In a history there
// are many locks of a few kinds, so it is found out once for each two kinds.

// sort says which of the wants are in each other's way, and which are the same.
func (r *record) sort() {
	n := len(r.wants)
	r.against, r.behind, r.lines = make([][]int, n), make([][]int, n), make([]want, n)
	for i, w := range r.wants {
		r.lines[i] = w.line(r.run.Separator)
		for j, o := range r.wants {
			if w.excludes(o, r.run.Separator) {
				r.against[i] = append(r.against[i], j)
			}
			if w.yields(o, r.run.Separator) {
				r.behind[i] = append(r.behind[i], j)
			}
		}
	}
}

// want is what an op wants.
func (r *record) want(o *op) want { return r.wants[o.want] }

// crowd gives those who have a slot of the same name as the last of some, when they are
// too many: of those with one of the first n slots, there can be n. All have what they
// have at one moment.
func (r *record) crowd(all []int) []int {
	for n := r.want(&r.ops[all[len(all)-1]]).Slots; n < len(all); n++ {
		var some []int
		for _, k := range all {
			if r.want(&r.ops[k]).Slots <= n {
				some = append(some, k)
			}
		}
		if len(some) > n {
			return some
		}
	}
	return nil
}
