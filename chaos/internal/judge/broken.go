package judge

import (
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// A fracture is what operators have done to a lock that they took away.
type fracture struct {
	from      time.Duration // when the first of them began: from then on another client may have the lock
	confirmed int           // the first one that a quorum confirmed; -1: none
}

// breaking finds the locks that were broken. An operator that was told that the lock had ended before has
// changed nothing. Any other one may have, whatever it was told.
func (r *record) breaking() {
	for _, c := range r.changes {
		begin := &r.events[c.begin]
		if begin.Kind != history.Break || c.end >= 0 && r.events[c.end].Why == "lost" {
			continue
		}
		if r.broken == nil {
			r.broken = make(map[string]fracture)
		}
		f, known := r.broken[begin.Token]
		if !known {
			f = fracture{from: begin.At, confirmed: -1}
		}
		f.from = min(f.from, begin.At)
		if end := c.end; end >= 0 && r.events[end].Kind == history.Broke && r.events[end].Why == "" && (f.confirmed < 0 || end < f.confirmed) {
			f.confirmed = end
		}
		r.broken[begin.Token] = f
	}
}

// brokenFrom is from when on another client may have the lock; never: nobody has broken it.
func (r *record) brokenFrom(o *op) time.Duration {
	if f, is := r.broken[r.events[o.got].Token]; is {
		return f.from
	}
	return never
}

// broken: once an operator knows that a lock is broken, its holder cannot extend it, and does not believe in it
// for longer than a lock lives.
func broken(r *record) {
	if r.broken == nil {
		return
	}
	for _, k := range r.holds {
		o := &r.ops[k]
		f, is := r.broken[r.events[o.got].Token]
		if !is || f.confirmed < 0 {
			continue
		}
		if by := r.events[f.confirmed].Until + r.run.Lag; o.until > by {
			r.violated(by, []int{o.got, f.confirmed}, "client %d had %s until %v, and it was broken at %v",
				o.client, r.lock(o), o.until, r.events[f.confirmed].At)
		}
	}
	for i := range r.steps {
		s := &r.steps[i]
		if s.end < 0 || r.events[s.end].Kind != history.Extended {
			continue
		}
		o := &r.ops[s.op]
		f, is := r.broken[r.events[o.got].Token]
		if is && f.confirmed >= 0 && r.events[s.begin].At > r.events[f.confirmed].At {
			r.violated(r.events[s.end].At, []int{o.got, f.confirmed, s.begin, s.end}, "client %d extended %s from %v on, and it was broken at %v",
				o.client, r.lock(o), r.events[s.begin].At, r.events[f.confirmed].At)
		}
	}
}
