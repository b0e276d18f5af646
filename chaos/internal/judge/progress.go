package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// progress: a waiter must get its lock. A client that asks once must get it if nothing can be in
// its way, not even a scheduler.
func progress(r *record) {
	if r.run.Settled {
		settled(r)
	}
	if r.run.Bound <= 0 {
		return
	}
	for i := range r.ops {
		o := &r.ops[i]
		if o.ask < 0 {
			continue
		}
		ask := &r.events[o.ask]
		waits := ask.Verb == "acquire" || ask.Verb == "do" || ask.Verb == "try" && r.run.Clients == 1 && r.run.Always && r.run.Exact
		if !waits || ask.Limit < r.run.Bound || ask.At < r.calm && !r.run.Always {
			continue
		}
		by := r.deadline(o.client, ask.At, r.run.Bound)
		switch {
		case o.got >= 0 && r.events[o.got].At <= by:
		case o.got >= 0:
			r.violated(by, []int{o.ask, o.got}, "client %d asked for %v at %v and got it at %v, not by %v",
				o.client, r.request(o), ask.At, r.events[o.got].At, by)
		case o.end >= 0 && r.events[o.end].Why == "refused": // the set has other settings than the client
		case o.end >= 0 && ask.Verb == "try" && r.givesBack(o.client, ask.At):
		case o.end >= 0:
			e := &r.events[o.end]
			r.violated(min(e.At, by), []int{o.ask, o.end}, "client %d asked for %v at %v and was denied it at %v: %s",
				o.client, r.request(o), ask.At, e.At, cmp.Or(e.Error, e.Why, "no reason given"))
		case o.died <= by, r.last <= by:
		default:
			r.violated(by, []int{o.ask}, "client %d asked for %v at %v and had not got it by %v", o.client, r.request(o), ask.At, by)
		}
	}
}

// settled: a client that asks once is denied the lock only if another one has it meanwhile, or gets it with a request
// that is under way at the same time.
func settled(r *record) {
	for i := range r.ops {
		o := &r.ops[i]
		if o.ask < 0 || o.got >= 0 || o.end < 0 || r.events[o.ask].Verb != "try" {
			continue
		}
		ask, end := &r.events[o.ask], &r.events[o.end]
		if !slices.ContainsFunc(r.holds, func(k int) bool {
			other := &r.ops[k]
			begin := r.begin(k)
			if other.ask >= 0 {
				begin = r.events[other.ask].At
			}
			return begin <= end.At && r.free(other) >= ask.At && slices.Contains(r.against[o.request], other.request)
		}) {
			r.violated(end.At, []int{o.ask, o.end}, "client %d asked once for %v at %v and was denied it at %v (%s), and no client had it or got it",
				o.client, r.request(o), ask.At, end.At, cmp.Or(end.Error, end.Why, "no reason given"))
		}
	}
}

// givesBack reports whether a lock that the client had lost was being given back at the time. The
// nodes are told at the loss, as when MaxHold is over, and a Release after it does not wait for them:
// an attempt right then may find the client's own lock.
func (r *record) givesBack(client int, at time.Duration) bool {
	for i := range r.ops {
		o := &r.ops[i]
		if o.client != client || o.told < 0 || o.release < o.told {
			continue
		}
		if e := &r.events[o.release]; e.At <= at && at < e.At+e.Limit {
			return true
		}
	}
	return false
}

func inTime(r *record) {
	for i := range r.ops {
		if o := &r.ops[i]; o.ask >= 0 {
			r.ends(o, o.ask, o.end)
		}
	}
	for _, s := range r.steps {
		r.ends(&r.ops[s.op], s.begin, s.end)
	}
	for _, c := range r.changes {
		r.ends(&op{client: c.client, died: r.died(c.client, c.begin)}, c.begin, c.end)
	}
}

// died is when a client crashed, if that was after an event.
func (r *record) died(client, event int) time.Duration {
	i, _ := slices.BinarySearchFunc(r.crashes, crash{client, event}, byClient)
	if i < len(r.crashes) && r.crashes[i].client == client {
		return r.events[r.crashes[i].event].At
	}
	return never
}

// ends checks that an operation with a limit ends by then.
func (r *record) ends(o *op, begin, end int) {
	b := &r.events[begin]
	if b.Limit <= 0 {
		return
	}
	by := r.deadline(o.client, b.At, b.Limit)
	switch {
	case end >= 0 && r.events[end].At <= by:
	case end >= 0:
		r.violated(by, []int{begin, end}, "client %d had %v from %v on to %s, and it took until %v",
			o.client, b.Limit, b.At, r.doing(o, b), r.events[end].At)
	case o.died <= by, r.last <= by:
	default:
		r.violated(by, []int{begin}, "client %d had %v from %v on to %s, and it had not ended by %v",
			o.client, b.Limit, b.At, r.doing(o, b), by)
	}
}

func (r *record) doing(o *op, e *history.Event) string {
	switch e.Kind {
	case history.Changing:
		return "change the set: " + e.Name
	case history.Break:
		return fmt.Sprintf("break %q", e.Name)
	case history.Ask:
		return fmt.Sprint("acquire ", r.request(o))
	}
	return fmt.Sprint(e.Kind, " ", r.request(o))
}
