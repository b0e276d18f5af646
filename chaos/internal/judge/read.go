package judge

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

func newRecord(h *history.History) *record {
	n := len(h.Events)
	r := &record{
		run: h.Run, events: h.Events, calm: never, struck: never,
		ops: make([]op, 0, n/4+8), holds: make([]int, 0, n/8+8), steps: make([]step, 0, n/8+8),
		index: newIndex(n), number: make(map[history.Request]int),
	}
	if n > 0 {
		r.last = h.Events[n-1].At
	}
	r.disturbances()
	var now time.Duration
	for i := range r.events {
		e := &r.events[i]
		if e.At < now {
			r.odd(i, "it comes after something at %v", now)
		}
		now = e.At
		r.take(i, e)
	}
	r.breaking()
	if byTime := func(a, b int) int { return cmp.Compare(r.begin(a), r.begin(b)) }; !slices.IsSortedFunc(r.holds, byTime) {
		slices.SortStableFunc(r.holds, byTime)
	}
	r.sort()
	return r
}

// disturbances collects the faults of clients. It comes first, since the other events depend on
// which clients are stopped or dead.
func (r *record) disturbances() {
	for i := range r.events {
		switch e := &r.events[i]; e.Kind {
		case history.Crashed:
			r.crashes = append(r.crashes, crash{e.Client, i})
		case history.Struck:
			r.struck = min(r.struck, e.At)
		case history.Held:
			r.stops = append(r.stops, span{e.Client, e.At, e.Until, e.Why == history.WhySuspended})
		case history.Stalled:
			if e.At <= e.Until {
				r.stalls = append(r.stalls, ailment{e.Value, e.At, e.Until})
			}
		}
	}
	slices.SortFunc(r.crashes, byClient)
	r.stops = mergeSpans(r.stops)
}

// take adds one event to the record.
func (r *record) take(i int, e *history.Event) {
	switch e.Kind {
	case history.Ask, history.Got, history.Denied, history.Extend, history.Extended, history.Failed, history.Renewed, history.Release, history.Released, history.Told, history.Read, history.Wrote, history.Refused, history.Found:
		if e.Client < 1 || e.Op < 1 {
			r.odd(i, "it has no client, or no number")
		}
		r.did(i, e)
	case history.Crashed, history.Held:
		if e.Client < 1 {
			r.odd(i, "it has no client")
		}
		if e.Kind == history.Held && e.Until < e.At {
			r.odd(i, "it ends at %v, before it begins", e.Until)
		}
	case history.Struck, history.Healed:
		if e.Fault == nil {
			r.odd(i, "it does not say what")
		} else if e.Kind == history.Healed && e.Fault.Kind == history.Step {
			r.blinks = append(r.blinks, span{from: e.Fault.At, to: e.At})
		}
	case history.Stalled, history.Lost:
		if e.Until < e.At {
			r.odd(i, "it ends at %v, before it begins", e.Until)
		}
	case history.Measured:
	case history.Changing, history.Changed, history.Break, history.Broke:
		r.changing(i, e)
	case history.Weighed:
		if e.Weight == nil {
			r.odd(i, "it does not say what")
		}
	case history.Calm:
		r.calm = min(r.calm, e.At)
	case history.Left:
		r.left = append(r.left, i)
	default:
		r.odd(i, "its kind is unknown")
	}
}

// changing adds the beginning or the end of a change of the set, or of the breaking of a lock.
func (r *record) changing(i int, e *history.Event) {
	if e.Client < 1 || e.Op < 1 {
		r.odd(i, "it has no client, or no number")
	}
	key := [2]int{e.Client, e.Op}
	r.struck = min(r.struck, e.At)
	at, begun := r.change[key]
	begins := e.Kind == history.Changing || e.Kind == history.Break
	switch {
	case begins && begun:
		r.odd(i, "it has begun before")
	case begins:
		if r.change == nil {
			r.change = make(map[[2]int]int)
		}
		r.change[key] = len(r.changes)
		r.changes = append(r.changes, alteration{e.Client, i, -1})
	case !begun:
		r.odd(i, "it has not begun")
	case r.changes[at].end >= 0:
		r.odd(i, "it has ended before")
	default:
		r.changes[at].end = i
	}
}

// did adds an event of a client.
func (r *record) did(i int, e *history.Event) {
	k := r.find(e)
	if e.Kind == history.Wrote {
		// The resource has the value, whatever happened to the writer.
		w := write{i, -1}
		if k >= 0 {
			w.read = r.ops[k].read
		}
		r.writes = append(r.writes, w)
		r.verdict.Writes++
	}
	if k < 0 {
		if e.Kind != history.Ask && e.Kind != history.Got && e.Kind != history.Denied {
			r.odd(i, "there is no such lock")
			return
		}
		k = r.add(i, e)
	} else if e.Kind == history.Ask {
		r.odd(i, "it has begun before")
		return
	}
	o := &r.ops[k]
	if i > o.dead {
		return
	}
	o.last = i
	switch e.Kind {
	case history.Ask:
		r.asked(i, e, o)
	case history.Got, history.Denied:
		r.answered(i, e, k)
	default:
		if o.got < 0 {
			r.odd(i, "there is no such lock")
			return
		}
		r.held(i, e, k)
	}
}

// asked begins an acquisition.
func (r *record) asked(i int, e *history.Event, o *op) {
	o.ask = i
	o.renews = e.Verb == "do" || e.Why == "renewed"
	r.verdict.Asks++
	if !slices.Contains(verbs, e.Verb) {
		r.odd(i, "there is no such verb as %q", e.Verb)
	}
	if e.Name == "" {
		r.odd(i, "it has no name")
	}
	if r.request(o).Invalid() {
		r.odd(i, "there is no such kind of lock")
	}
}

// answered ends an acquisition, with a hold or without.
func (r *record) answered(i int, e *history.Event, k int) {
	o := &r.ops[k]
	if o.ask < 0 && o.end < 0 {
		r.odd(i, "it has not begun")
	}
	if o.end >= 0 {
		r.odd(i, "it has ended before")
	} else {
		o.end = i
	}
	if e.Kind == history.Denied {
		r.verdict.Denials++
		return
	}
	if o.got >= 0 {
		return
	}
	if was := r.request(o); e.Name != "" && e.Request() != was {
		r.odd(i, "it was to be %v", was)
	}
	o.got, o.until = i, e.Until
	r.holds = append(r.holds, k)
	r.verdict.Holds++
	r.waited(o)
}

var verbs = []string{"try", "acquire", "do", "plain"}

// held adds an event of the holder of a lock. The end of validity never moves back: if it seems to,
// the holder's clock was set forward, and the nodes keep the lock as long as before.
func (r *record) held(i int, e *history.Event, k int) {
	o := &r.ops[k]
	switch e.Kind {
	case history.Extend:
		if o.extending >= 0 {
			r.odd(i, "the extension before it has not ended")
		}
		o.extending, o.extends = r.start(k, i), true
	case history.Extended, history.Failed:
		if o.extending >= 0 {
			r.steps[o.extending].end = i
			r.steps[o.extending].until, r.steps[o.extending].unsure = o.until, o.failed
			o.extending = -1
		} else {
			r.odd(i, "it has not begun")
		}
		if e.Kind == history.Extended {
			r.verdict.Extensions++
			o.until = max(o.until, e.Until)
		} else {
			o.failed = true
		}
	case history.Renewed:
		o.renews = true
		o.until = max(o.until, e.Until)
	case history.Release:
		if o.releasing >= 0 {
			r.odd(i, "the release before it has not ended")
		}
		o.releasing = r.start(k, i)
		o.until = max(o.until, e.Until) // the library has renewed it, which the client has not recorded yet
		if o.release < 0 {
			o.release, o.untilRelease = i, o.until
		}
	case history.Released:
		if o.releasing >= 0 {
			if r.steps[o.releasing].begin == o.release {
				o.released = i
			}
			r.steps[o.releasing].end = i
			o.releasing = -1
		} else {
			r.odd(i, "it has not begun")
		}
	case history.Told:
		if o.told >= 0 {
			r.odd(i, "it has ended before")
			return
		}
		o.told = i
		o.until = max(o.until, e.Until)
		if e.Why == "lost" {
			r.verdict.Losses++
		}
	case history.Read:
		o.read = i
	}
}

// waited measures how long the client waited for a hold.
func (r *record) waited(o *op) {
	if o.ask < 0 {
		return
	}
	asked := r.events[o.ask].At
	wait := r.events[o.got].At - asked
	r.verdict.LongestWait = max(r.verdict.LongestWait, wait)
	if asked >= r.calm {
		r.verdict.LongestWaitCalm = max(r.verdict.LongestWaitCalm, wait)
	}
}

// start begins a step.
func (r *record) start(op, event int) int {
	r.steps = append(r.steps, step{op: op, begin: event, end: -1})
	return len(r.steps) - 1
}

func byClient(a, b crash) int {
	return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.event, b.event))
}

// add begins an op.
func (r *record) add(i int, e *history.Event) int {
	request, known := r.number[e.Request()]
	if !known {
		request = len(r.requests)
		r.number[e.Request()] = request
		r.requests = append(r.requests, e.Request())
	}
	o := op{
		client: e.Client, number: e.Op, request: request,
		ask: -1, end: -1, got: -1, told: -1, release: -1, released: -1, read: -1, extending: -1, releasing: -1,
		dead: math.MaxInt, died: never,
	}
	if len(r.crashes) > 0 {
		c, _ := slices.BinarySearchFunc(r.crashes, crash{e.Client, i}, byClient)
		if c < len(r.crashes) && r.crashes[c].client == e.Client {
			o.dead = r.crashes[c].event
			o.died = r.events[o.dead].At
		}
	}
	slot := r.slot(e.Client, e.Op)
	r.ops = append(r.ops, o)
	r.index[slot] = int32(len(r.ops))
	return len(r.ops) - 1
}
