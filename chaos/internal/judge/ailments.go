package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// hindrances are what keeps everybody from having any lock, sorted and apart.
func (r *record) hindrances() (all []stretch) {
	for _, c := range r.crashes {
		at := r.events[c.event].At
		all = append(all, stretch{at, at + r.run.TTL + r.run.Settle})
	}
	for _, s := range r.stops {
		if s.to-s.from > r.run.Slight {
			all = append(all, stretch{s.from, s.to + r.run.Settle})
		}
	}
	return append(all, r.unwell()...)
}

// standstills are the times, sorted and apart, in which so many servers were not run, with the
// nodes that ail, that no quorum was left. What was under way is late by as much and no more.
func (r *record) standstills() []stretch {
	if len(r.stalls) == 0 {
		return nil
	}
	all := slices.Concat(r.ailments(), r.stalls)
	slices.SortStableFunc(all, func(a, b ailment) int { return cmp.Compare(a.from, b.from) })
	return mergeStretches(r.tooMany(all))
}

// unwell are the times in which so many nodes ail that no quorum is left.
func (r *record) unwell() []stretch { return r.tooMany(r.ailments()) }

// tooMany are the times in which some ailments, by when they begin, leave no quorum.
func (r *record) tooMany(ailments []ailment) (all []stretch) {
	spare := r.run.Nodes - r.run.Quorum
	for i, a := range ailments {
		// From when one begins on, for as long as enough of those that have begun last.
		ends := make(map[int]time.Duration)
		for _, b := range ailments[:i+1] {
			if b.node >= 0 && b.to >= a.from {
				ends[b.node] = max(ends[b.node], b.to)
			}
		}
		if a.node < 0 || len(ends) <= spare {
			continue
		}
		last := make([]time.Duration, 0, len(ends))
		for _, to := range ends {
			last = append(last, to)
		}
		slices.Sort(last)
		all = append(all, stretch{a.from, last[len(last)-1-max(spare, 0)]})
	}
	return all
}

// ailments are the faults that waiting may notice, by when they begin. What takes hold
// with the requests to come, or cannot be undone, has no end. That no waiter is called,
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
