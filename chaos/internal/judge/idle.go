package judge

import (
	"cmp"
	"slices"
	"time"
)

// idle: a free lock does not stay free while a client waits. Some times do not count: those in
// which too many nodes are not well; those in which a dead or stopped client may have the lock
// without a record of it; and those in which an earlier conflicting request waits for another lock,
// since there is an order among them.
func idle(r *record) {
	if r.run.Idle <= 0 {
		return
	}
	all := r.hindrances()
	r.still = r.standstills()
	had := make([][]stretch, len(r.requests)) // by request
	for _, k := range r.holds {
		o := &r.ops[k]
		had[o.request] = append(had[o.request], stretch{r.events[o.got].At, r.free(o)})
	}
	asked := make([][]stretch, len(r.requests)) // the same: a client of another library keeps some nodes to itself while it asks
	for k := range r.ops {
		o := &r.ops[k]
		if !r.foreign(o) {
			continue
		}
		end := o.died
		if o.end >= 0 {
			end = r.events[o.end].At
		}
		asked[o.request] = append(asked[o.request], stretch{r.events[o.ask].At, end})
	}
	waits := r.waits()
	for v := range waits {
		if len(waits[v]) == 0 {
			continue
		}
		times := slices.Concat(all, r.full(v, had))
		for _, other := range r.against[v] {
			times = append(append(times, had[other]...), asked[other]...)
		}
		sortStretches(times)
		for i := range waits[v] {
			w, times := &waits[v][i], times
			if first := r.first(w, v); first != nil {
				times = slices.Concat(times, first)
				sortStretches(times)
			}
			if since, by := r.longFree(times, w.front, min(w.end, r.last)); since != never {
				o := &r.ops[w.op]
				r.violated(by, []int{o.ask}, "client %d waited for %v, and no client had it from %v on", o.client, r.request(o), since)
			}
		}
	}
}

// first returns the times in which other waiters may go before this one.
func (r *record) first(w *standing, request int) (all []stretch) {
	for _, v := range r.behind[request] {
		if v == request {
			continue // whatever holds them up holds this one up
		}
		for i := range r.waiting[v] {
			o := &r.waiting[v][i]
			if o.ask >= w.ask+max(r.run.Settle, 1) {
				break
			}
			if o.end > w.ask {
				all = append(all, stretch{o.ask, o.end})
			}
		}
	}
	return all
}

// full returns the times in which no slot is free for a request.
func (r *record) full(request int, had [][]stretch) (all []stretch) {
	w := r.requests[request]
	if !w.IsSlot() {
		return nil
	}
	type change struct {
		at time.Duration
		by int
	}
	var changes []change
	for v, o := range r.requests {
		if o.SharesSlots(w) {
			for _, s := range had[v] {
				changes = append(changes, change{s.from, 1}, change{s.to, -1})
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.by, a.by)) })
	n, since := 0, never
	for _, c := range changes {
		n += c.by
		switch {
		case n >= w.Slots && since == never:
			since = c.at
		case n < w.Slots && since != never:
			all = append(all, stretch{since, c.at})
			since = never
		}
	}
	return all
}

// longFree finds the first time that is too long and that no stretch overlaps. It returns its
// beginning, and when it became too long. The stretches are sorted.
func (r *record) longFree(times []stretch, from, to time.Duration) (since, by time.Duration) {
	for _, s := range append(slices.Clip(times), stretch{to, to}) {
		if until := min(s.from, to); until-from > r.run.Idle { // it was too long already
			if by := r.ran(from, r.run.Idle); until > by {
				return from, by
			}
		}
		from = max(from, s.to)
	}
	return never, never
}

// ran is when this much time has gone by in which the computer ran enough of the nodes.
func (r *record) ran(from, d time.Duration) time.Duration {
	by := from + d
	for _, s := range r.still { // sorted, and apart
		if s.from > by {
			break
		}
		if s.to == never {
			return never
		}
		by += max(0, s.to-max(s.from, from))
	}
	return by
}

// free is the latest time at which the nodes still have a hold.
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
