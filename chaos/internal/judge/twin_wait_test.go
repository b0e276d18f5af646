package judge

import (
	"math"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// A twinWait is the request of a waiter.
type twinWait struct {
	ask, client       int
	what              history.Event
	asked, front, end time.Duration
	forsaken          bool
}

func (tw *twin) waits() (all []twinWait) {
	for i, e := range tw.Events {
		mine := tw.lifeOf(i)
		if e.Kind != history.Ask || mine[0] != i || e.Verb != "acquire" && e.Verb != "do" {
			continue
		}
		w := twinWait{ask: i, asked: e.At, front: e.At, end: tw.died(i), client: e.Client, what: e}
		if end := tw.first(mine, history.Got, history.Denied); end >= 0 {
			w.end, w.forsaken = tw.Events[end].At, tw.first(mine, history.Got) < 0
		}
		for _, before := range all {
			if before.client == w.client && tw.same(before.what, w.what) {
				w.front = max(w.front, before.end)
			}
		}
		all = append(all, w)
	}
	return all
}

// A twinIll is a fault that may affect waiters; node -1: at no node.
type twinIll struct {
	node     int
	from, to time.Duration
}

func (tw *twin) findIlls() {
	taken := make(map[int]bool)
	for i, e := range tw.Events {
		if e.Kind != history.Struck || e.Fault == nil {
			continue
		}
		f, to := *e.Fault, e.At
		if f.For > 0 {
			to = tw.last
		}
		for j := i + 1; j < len(tw.Events); j++ {
			if h := tw.Events[j]; h.Kind == history.Healed && h.Fault != nil && *h.Fault == f && !taken[j] {
				taken[j], to = true, h.At
				break
			}
		}
		to += tw.Run.Grace
		where := f.Node
		switch f.Kind {
		case history.Crash, history.Mute, history.Deafen, history.Pause, history.Suspend, history.Still:
			continue
		case history.Skew:
			where, to = -1, math.MaxInt64
		case history.LoseReplies, history.TearReplies, history.Repeat, history.RepeatLate, history.Evict, history.Step:
			to = math.MaxInt64
		}
		if (f.Kind == history.Slow || f.Kind == history.Jitter) && f.By <= tw.Run.Slight || f.Kind == history.Hang && f.For <= tw.Run.Slight {
			continue
		}
		tw.ills = append(tw.ills, twinIll{where, e.At, to})
	}
}

// ails reports whether a node was unwell at an instant, or up to the next one.
func (tw *twin) ails(node int, at time.Duration, next bool) bool {
	return slices.ContainsFunc(tw.ills, func(i twinIll) bool {
		return i.node == node && i.from <= at && (at < i.to || at == i.to && !next)
	})
}

// stood reports whether a client stood still at an instant, for longer than a moment.
func (tw *twin) stood(client int, at time.Duration) bool {
	if tw.stands == nil {
		tw.stands = make(map[int][]bool)
	}
	if tw.stands[client] == nil {
		is := make([]bool, tw.last+1)
		for _, e := range tw.Events {
			if e.Kind == history.Held && e.Client == client {
				from, to := tw.stop(e)
				for at := from; at <= to && at <= tw.last && to-from > tw.Run.Slight; at++ {
					is[at] = true
				}
			}
		}
		tw.stands[client] = is
	}
	return tw.stands[client][at]
}

// stop is a stop of a client, with those that follow without a gap.
func (tw *twin) stop(e history.Event) (from, to time.Duration) {
	from, to = e.At, e.Until
	for range tw.Events {
		for _, f := range tw.Events {
			if f.Kind == history.Held && f.Client == e.Client && f.At <= f.Until && f.At <= to && f.Until >= from && from <= to {
				from, to = min(from, f.At), max(to, f.Until)
			}
		}
	}
	return from, to
}

func (tw *twin) judgeWaiting() {
	waits := tw.waits()
	tw.findIlls()
	if tw.Run.Settle > 0 {
		for _, o := range tw.holds {
			for _, w := range waits {
				if tw.overtaken(w, o) {
					tw.add("order", o.from, w.ask, o.ask, o.got)
					break
				}
			}
		}
	}
	if tw.Run.Idle <= 0 {
		return
	}
	for _, w := range waits {
		taken, touched := tw.inTheWay(w, waits)
		free := time.Duration(0)
		for at := w.front; at < min(w.end, tw.last); at++ {
			if touched[at] {
				free = 0
			}
			if !tw.standsStill(at) {
				free++
			}
			if taken[at] {
				free = 0
			}
			if free > tw.Run.Idle {
				tw.add("idle", at, w.ask)
				break
			}
		}
	}
}

// stalled reports whether the computer did not run a server at an instant, or up to the next
// one.
func (tw *twin) stalled(node int, at time.Duration, next bool) bool {
	return slices.ContainsFunc(tw.Events, func(e history.Event) bool {
		return e.Kind == history.Stalled && e.Value == node && e.At <= at && (at < e.Until || at == e.Until && !next)
	})
}

// stands reports whether it ran so few that no quorum was left.
func (tw *twin) standsStill(at time.Duration) bool {
	bad, stalled := 0, false
	for node := range 8 {
		is := tw.stalled(node, at, true)
		stalled = stalled || is
		if is || tw.ails(node, at, true) {
			bad++
		}
	}
	return stalled && bad > max(tw.Run.Nodes-tw.Run.Quorum, 0)
}

func (tw *twin) overtaken(w twinWait, o twinHold) bool {
	if o.ask < 0 || o.ask == w.ask || tw.apart(w.what, o.what) && !sameSlots(w.what, o.what) {
		return false
	}
	ask := tw.Events[o.ask]
	end := w.end
	if w.forsaken {
		end -= tw.Run.Settle
	}
	if sameSlots(w.what, o.what) {
		end -= tw.Run.Settle
	}
	if ask.Verb == "plain" || ask.At-w.asked < tw.Run.Settle || end <= o.from {
		return false
	}
	since := w.front
	alone := w.client == ask.Client && tw.same(w.what, ask) && (ask.Verb == "acquire" || ask.Verb == "do")
	if alone {
		since = w.asked
	} else if o.from < w.front || o.from-w.front < tw.Run.Settle {
		return false
	}
	for at := since; at <= o.from; at++ {
		if tw.stood(w.client, at) || tw.stood(ask.Client, at) {
			return false
		}
		for node := -1; node < 8 && !alone; node++ {
			if tw.ails(node, at, false) || tw.stalled(node, at, false) {
				return false
			}
		}
	}
	return true
}

// taken tells for each instant whether, up to the next one, some client may have the lock or none
// can get it, and whether that was so at the instant itself.
func (tw *twin) taken(w twinWait) (is, touched []bool) {
	is, touched = make([]bool, tw.last+1), make([]bool, tw.last+1)
	fill := func(from, to time.Duration) {
		touched[from] = true
		for at := from; at < to && at <= tw.last; at++ {
			is[at] = true
		}
	}
	for _, o := range tw.holds {
		if !tw.apart(o.what, w.what) {
			fill(o.from, tw.free(o))
		}
	}
	for i, e := range tw.Events {
		switch e.Kind {
		case history.Ask:
			if mine := tw.lifeOf(i); mine[0] == i && e.Verb == "plain" && !tw.apart(e, w.what) {
				end := tw.died(i)
				if j := tw.first(mine, history.Got, history.Denied); j >= 0 {
					end = tw.Events[j].At
				}
				fill(e.At, end)
			}
		case history.Crashed:
			fill(e.At, e.At+tw.Run.TTL+tw.Run.Settle)
		case history.Held:
			if from, to := tw.stop(e); to-from > tw.Run.Slight {
				fill(from, to+tw.Run.Settle)
			}
		}
	}
	for at := range is {
		bad, were := 0, 0
		for node := range 8 {
			if tw.ails(node, time.Duration(at), true) {
				bad++
			}
			if tw.ails(node, time.Duration(at), false) {
				were++
			}
		}
		is[at] = is[at] || bad > max(tw.Run.Nodes-tw.Run.Quorum, 0)
		touched[at] = touched[at] || were > max(tw.Run.Nodes-tw.Run.Quorum, 0)
	}
	return is, touched
}

// free is when the nodes have forgotten a hold.
func (tw *twin) free(o twinHold) time.Duration {
	extends := slices.ContainsFunc(o.mine, func(j int) bool { return j > o.got && tw.Events[j].Kind == history.Extend })
	for _, j := range o.mine {
		if o.release < 0 || j <= o.release {
			continue
		}
		if e := tw.Events[j]; e.Kind == history.Released && e.Error == "" {
			return e.At
		} else if e.Kind == history.Release || e.Kind == history.Released {
			break // no quorum has confirmed it
		}
	}
	dies := o.died < math.MaxInt64
	last := tw.Events[o.got].At
	switch {
	case o.told < 0 && o.release < 0 && !dies:
		return math.MaxInt64
	case !o.renews && !extends:
	case dies:
		last = o.died
	default:
		last = tw.Events[o.mine[len(o.mine)-1]].At
	}
	return last + tw.Run.TTL + tw.Run.Settle
}
