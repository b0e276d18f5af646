package chaos

import (
	"cmp"
	"slices"
	"time"
)

// A stretch is a time in which a lock may not be had.
type stretch struct{ from, to time.Duration }

// idle: a lock that nobody has does not stay so while somebody waits. Times do not
// count in which too many nodes are not well; nor those for which the dead, and the
// stopped, may have the lock without having said so.
func idle(r *record) {
	if r.run.Idle <= 0 {
		return
	}
	all := r.hindrances()
	taken := make([][]stretch, len(r.names))
	for _, k := range r.holds {
		o := &r.ops[k]
		taken[o.name] = append(taken[o.name], stretch{r.events[o.got].At, r.free(o)})
	}
	for name, waits := range r.waits() {
		if len(waits) == 0 {
			continue
		}
		times := slices.Concat(all, taken[name])
		slices.SortFunc(times, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
		for i := range waits {
			w := &waits[i]
			if since := longFree(times, w.front, min(w.end, r.last), r.run.Idle); since != never {
				o := &r.ops[w.op]
				r.violated(since+r.run.Idle, []int{o.ask}, "client %d waited for %q, and nobody had it from %v on", o.client, o.word, since)
			}
		}
	}
}

// longFree gives the beginning of the first time of more than limit, from one instant to
// another, that none of the stretches has a part in. They are sorted.
func longFree(times []stretch, from, to, limit time.Duration) (since time.Duration) {
	for _, s := range times {
		if min(s.from, to)-from > limit {
			return from
		}
		from = max(from, s.to)
	}
	if to-from > limit {
		return from
	}
	return never
}

// free is when the nodes have forgotten a hold at the latest.
func (r *record) free(o *op) time.Duration {
	if o.released >= 0 && r.events[o.released].Error == "" {
		return r.events[o.released].At
	}
	if o.told < 0 && o.release < 0 && o.died == never {
		return never
	}
	touched := r.events[o.got].At
	if o.renews || o.extends {
		touched = r.events[o.last].At
		if o.died < never {
			touched = o.died
		}
	}
	return touched + r.run.TTL + r.run.Settle
}

// hindrances are what keeps everybody from having any lock, sorted and apart.
func (r *record) hindrances() (all []stretch) {
	for _, c := range r.crashes {
		at := r.events[c.event].At
		all = append(all, stretch{at, at + r.run.TTL + r.run.Settle})
	}
	for _, s := range r.stops {
		if s.to-s.from > r.run.Slight {
			all = append(all, stretch{s.from, s.to + r.run.Settle})
		}
	}
	return append(all, r.unwell()...)
}

// unwell are the times in which so many nodes ail that no quorum is left.
func (r *record) unwell() (all []stretch) {
	spare := r.run.Nodes - r.run.Quorum
	ailments := r.ailments()
	for i, a := range ailments {
		// From when one begins on, for as long as enough of those that have begun last.
		ends := make(map[int]time.Duration)
		for _, b := range ailments[:i+1] {
			if b.node >= 0 && b.to >= a.from {
				ends[b.node] = max(ends[b.node], b.to)
			}
		}
		if a.node < 0 || len(ends) <= spare {
			continue
		}
		last := make([]time.Duration, 0, len(ends))
		for _, to := range ends {
			last = append(last, to)
		}
		slices.Sort(last)
		all = append(all, stretch{a.from, last[len(last)-1-max(spare, 0)]})
	}
	return all
}
