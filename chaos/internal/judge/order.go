package judge

import "time"

// inOrder: a client that has waited for long enough when another asks gets the lock first. The
// calls of one client are ordered by the client itself. Those of several clients are ordered by the
// nodes, which must have been well, and which do not know an op that was not the first of its local
// queue. Only conflicting requests count, and requests for slots, since only one may be free.
func inOrder(r *record) {
	if r.run.Settle <= 0 {
		return
	}
	waits := r.waits()
	for _, k := range r.holds {
		o := &r.ops[k]
		if o.ask < 0 || r.events[o.ask].Verb == "plain" {
			continue
		}
		var first *standing
		for _, v := range r.behind[o.request] {
			for i := range waits[v] {
				w := &waits[v][i]
				if first != nil && first.op < w.op {
					break
				}
				if w.op != k && r.overtakes(o, w) {
					first = w
					break
				}
			}
		}
		if first == nil {
			continue
		}
		x, what := &r.ops[first.op], ""
		if x.request != o.request {
			what = " for " + r.request(o).String()
		}
		r.violated(r.events[o.got].At, []int{x.ask, o.ask, o.got}, "client %d asked for %v at %v and waited, client %d asked%s at %v and got it at %v",
			x.client, r.request(x), first.ask, o.client, what, r.events[o.ask].At, r.events[o.got].At)
	}
}

// overtakes reports whether a hold should have gone to a waiter.
func (r *record) overtakes(o *op, w *standing) bool {
	x := &r.ops[w.op]
	ask, got := r.events[o.ask], r.events[o.got].At
	still := got
	if r.request(x).SharesSlots(r.request(o)) {
		still += r.run.Settle // the waiter may have a slot, too, and be about to learn of it
	}
	if w.ask+r.run.Settle > ask.At || !r.waitedAt(w, still) {
		return false
	}
	if x.client == o.client && inLine(ask.Verb) && r.lines[x.request] == r.lines[o.request] {
		return !r.stood(o.client, w.ask, got)
	}
	return after(w.front, r.run.Settle) <= got && !r.ailed(w.front, got) && !r.stood(x.client, w.front, got) && !r.stood(o.client, w.front, got)
}

// waitedAt reports whether a wait went on at an instant, and beyond it: a client that gives up
// records that a little later.
func (r *record) waitedAt(w *standing, at time.Duration) bool {
	end := w.end
	if w.forsaken {
		end -= r.run.Settle
	}
	return end > at
}
