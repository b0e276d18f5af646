package judge

import "github.com/quorumlock/redlock/chaos/history"

// bounded: what nodes and clients keep does not grow over time. Nodes are checked at the end of the
// run, and lanes also while their nodes are away.
func bounded(r *record) {
	for i := range r.events {
		e := &r.events[i]
		if e.Kind != history.Weighed || e.Weight == nil {
			continue
		}
		w := e.Weight
		for _, of := range []struct {
			what      string
			is, bound int
		}{{"keys", w.Keys, r.run.MostKeys}, {"bytes", w.Bytes, r.run.MostBytes}, {"requests", w.Requests, r.run.MostRequests}} {
			switch {
			case of.bound <= 0 || of.is <= of.bound:
			case e.Client > 0:
				r.violated(e.At, []int{i}, "client %d keeps %d %s for node %d, and there should be %d at most", e.Client, of.is, of.what, w.Node, of.bound)
			default:
				r.violated(e.At, []int{i}, "node %d has %d %s, and there should be %d at most", w.Node, of.is, of.what, of.bound)
			}
		}
	}
}

// restored: no client gets a lock between the loss of a set and its restoration. What it asked for before may have been granted
// before, too.
func restored(r *record) {
	for i := range r.events {
		e := &r.events[i]
		if e.Kind != history.Lost {
			continue
		}
		for _, k := range r.holds {
			o := &r.ops[k]
			if o.ask < 0 || r.events[o.ask].Verb == "plain" {
				continue
			}
			if got := &r.events[o.got]; r.events[o.ask].At > e.At+r.run.Lag && got.At < e.Until {
				r.violated(got.At, []int{i, o.ask, o.got}, "client %d asked for %s at %v, and got it at %v, and most members of the set had lost their data from %v to %v",
					o.client, r.lock(o), r.events[o.ask].At, got.At, e.At, e.Until)
			}
		}
	}
}

// onQuorum: a client that gets a lock has it on a quorum of nodes. The client looks for its token
// on all nodes as soon as it has the lock, and the result counts while the lock is valid: a node
// that does not answer may have the token.
func onQuorum(r *record) {
	for i := range r.events {
		e := &r.events[i]
		if e.Kind != history.Found {
			continue
		}
		k := r.find(e)
		if k < 0 {
			continue
		}
		o := &r.ops[k]
		if o.got < 0 || o.got > i || i > o.dead {
			continue
		}
		if _, until := r.valid(o); e.Value+e.Was < r.run.Quorum && e.At < until {
			r.violated(e.At, []int{o.got, i}, "client %d had %s, and its token was on %d of %d nodes, and perhaps on %d others: not on %d",
				o.client, r.lock(o), e.Value, r.run.Nodes, e.Was, r.run.Quorum)
		}
	}
}
