package redlock

import "github.com/quorumlock/redlock/internal/seam"

// weighed offers the lengths of the lanes to a host that wants to know them.
func (lk *Locker) weighed() {
	if s, ok := lk.opts.host.(seam.Scales); ok {
		s.Weigh(lk.weigh)
	}
}

// weigh is how many requests each lane keeps: those that have not left yet, and the
// releases that it owes.
func (lk *Locker) weigh() []int {
	all := make([]int, len(lk.nodes))
	for i, n := range lk.nodes {
		n.mu.Lock()
		all[i] = len(n.queue)
		for _, owed := range n.owed {
			all[i] += len(owed)
		}
		n.mu.Unlock()
	}
	return all
}
