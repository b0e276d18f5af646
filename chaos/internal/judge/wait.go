package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// A standing is an op of those who stand in a line: the calls of one client for the same
// that wait. The first of it is whom the nodes know of.
type standing struct {
	op       int
	ask      time.Duration
	front    time.Duration // from when it was the first of its line; never: it never was
	end      time.Duration // when it waited no more; never: that is not known
	forsaken bool          // it ended without a lock
}

// waits gives those who have waited, by want, in the order in which they asked.
func (r *record) waits() [][]standing {
	if r.waiting != nil {
		return r.waiting
	}
	r.waiting = make([][]standing, len(r.requests))
	type line struct {
		client int
		of     history.Request
	}
	gone := make(map[line]time.Duration) // when all are that have asked so far
	for k := range r.ops {               // which are in the order of their first events
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

// after is an instant so much after another, and never after never.
func after(t, d time.Duration) time.Duration {
	if t == never {
		return never
	}
	return t + d
}

// An ailment is a time in which a node is not well, or has not found its way back.
type ailment struct {
	node     int // -1: it is no node's
	from, to time.Duration
}

// ailments are all that waiting may suffer from, by when they begin. What takes hold
// with the requests to come, or cannot be undone, has no end. That nobody is called,
// and that others die, is what waiting has to do with.
func (r *record) ailments() []ailment {
	if r.ailing != nil {
		return r.ailing
	}
	r.ailing = []ailment{}
	for _, s := range history.Spells(r.events) {
		f := &s.Fault
		a := ailment{f.Node, s.From, after(s.To, r.run.Grace)}
		switch f.Trouble {
		case history.Pause, history.Suspend, history.Crash, history.Mute, history.Deafen, history.Forge, history.Replay, history.Still:
			continue
		case history.Slow, history.Jitter:
			if f.By <= r.run.Slight {
				continue
			}
		case history.Hang:
			if f.For <= r.run.Slight {
				continue
			}
		case history.LoseReplies, history.TearReplies, history.Repeat, history.RepeatLate, history.Evict, history.Step:
			a.to = never
		case history.Skew:
			a.node, a.to = -1, never
		}
		r.ailing = append(r.ailing, a)
	}
	slices.SortStableFunc(r.ailing, func(a, b ailment) int { return cmp.Compare(a.from, b.from) })
	return r.ailing
}

// ailed reports whether anything was not well, or not run, at some moment between two.
func (r *record) ailed(from, to time.Duration) bool {
	then := func(a ailment) bool { return a.from <= to && a.to >= from }
	return slices.ContainsFunc(r.ailments(), then) || slices.ContainsFunc(r.stalls, then)
}

// stood reports whether a client was stopped for more than a moment between two
// instants.
func (r *record) stood(client int, from, to time.Duration) bool {
	for _, s := range r.stopsSince(client, from) {
		if s.client != client || s.from > to {
			break
		}
		if s.to-s.from > r.run.Slight {
			return true
		}
	}
	return false
}
