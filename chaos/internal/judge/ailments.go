package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// hindrances returns the times in which no client can get any lock, sorted and apart.
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

// standstills returns the times, sorted and apart, in which no quorum was left of the servers that ran and were
// well. What was under way is late by as much and no more.
func (r *record) standstills() []stretch {
	if len(r.stalls) == 0 {
		return nil
	}
	all := slices.Concat(r.ailments(), r.stalls)
	slices.SortStableFunc(all, func(a, b ailment) int { return cmp.Compare(a.from, b.from) })
	return mergeStretches(r.tooMany(all))
}

// unwell returns the times in which so many nodes ail that no quorum is left.
func (r *record) unwell() []stretch { return r.tooMany(r.ailments()) }

// tooMany returns the times in which ailments, sorted by their beginnings, leave no quorum.
func (r *record) tooMany(ailments []ailment) (all []stretch) {
	spare := r.run.Nodes - r.run.Quorum
	for i, a := range ailments {
		// It lasts from the beginning of one for as long as enough of the earlier ones last.
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

// ailments returns the faults that may affect waiting, sorted by their beginnings. A fault that
// takes effect with later requests, or cannot be undone, has no end. Lost calls and deaths of other
// clients are left out: waiting must work in spite of them.
func (r *record) ailments() []ailment {
	if r.ailing != nil {
		return r.ailing
	}
	r.ailing = []ailment{}
	for _, s := range history.Spells(r.events) {
		f := &s.Fault
		a := ailment{f.Node, s.From, after(s.To, r.run.Grace)}
		switch f.Kind {
		case history.Pause, history.Suspend, history.Crash, history.Mute, history.Deafen, history.Still:
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
