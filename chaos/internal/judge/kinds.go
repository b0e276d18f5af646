package judge

import "github.com/quorumlock/redlock/chaos/history"

// Rules are about pairs of conflicting locks. A history has many locks of a few kinds, so the
// conflicts are computed once for each two kinds.

// sort computes which requests conflict, and which are the same.
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
