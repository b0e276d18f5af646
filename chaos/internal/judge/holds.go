package judge

import (
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// A Hold is a time in which a client may rely on a lock.
type Hold struct {
	Client   int
	Request  history.Request
	Token    string
	Fence    uint64
	From, To time.Duration
}

// Holds are the holds of a history, in the order in which they began, as the rules see them.
func Holds(h *history.History) (all []Hold) {
	r := newRecord(h)
	for _, k := range r.holds {
		o := &r.ops[k]
		e := &r.events[o.got]
		from, to := r.valid(o)
		all = append(all, Hold{o.client, r.request(o), e.Token, e.Fence, from, to})
	}
	return all
}
