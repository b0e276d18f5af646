package judge

import (
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// waits returns the ops that have waited, by request, in the order in which they asked.
func (r *record) waits() [][]standing {
	if r.waiting != nil {
		return r.waiting
	}
	r.waiting = make([][]standing, len(r.requests))
	type line struct {
		client int
		of     history.Request
	}
	gone := make(map[line]time.Duration) // when all that have asked so far are gone
	for k := range r.ops {               // in the order of their first events
		o := &r.ops[k]
		if o.ask < 0 || !inLine(r.events[o.ask].Verb) {
			continue
		}
		w := standing{op: k, ask: r.events[o.ask].At, end: o.died}
		if o.end >= 0 {
			w.end, w.forsaken = r.events[o.end].At, o.got < 0
		}
		l := line{o.client, r.lines[o.request]}
		w.front = max(w.ask, gone[l])
		gone[l] = max(gone[l], w.end)
		r.waiting[o.request] = append(r.waiting[o.request], w)
	}
	return r.waiting
}

func inLine(verb string) bool { return verb == "acquire" || verb == "do" }
