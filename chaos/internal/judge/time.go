package judge

import (
	"cmp"
	"slices"
	"time"
)

// A span is a time in which a client was stopped, both ends included: what
// happens at one instant has no order.
type span struct {
	client    int
	from, to  time.Duration
	suspended bool // or part of it: by a machine that was
}

// mergeSpans sorts spans by client and time, and makes one of those that touch.
// Each client's are apart then, so that both their ends rise.
func mergeSpans(spans []span) []span {
	spans = slices.DeleteFunc(spans, func(s span) bool { return s.to < s.from })
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	merged := spans[:0]
	for _, s := range spans {
		if n := len(merged); n > 0 && merged[n-1].client == s.client && s.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, s.to)
			merged[n-1].suspended = merged[n-1].suspended || s.suspended
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

// mergeStretches sorts stretches, and makes one of those that touch.
func mergeStretches(all []stretch) []stretch {
	sortStretches(all)
	merged := all[:0]
	for _, s := range all {
		if n := len(merged); n > 0 && s.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, s.to)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

// stopsSince gives the stops from the first of a client's on that ends at t or
// later. Others' follow after the client's.
func (r *record) stopsSince(client int, t time.Duration) []span {
	first, _ := slices.BinarySearchFunc(r.stops, span{client: client, to: t}, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.to, b.to))
	})
	return r.stops[first:]
}

// stopped reports whether a client was stopped at any moment from one instant to
// another.
func (r *record) stopped(client int, from, to time.Duration) bool {
	s := r.stopsSince(client, from)
	return len(s) > 0 && s[0].client == client && s[0].from <= to
}

// noticed is when a client must have noticed what was due at some instant, and what
// it has had a timer for since another: Lag later, and Lag after the end of any stop
// that came before it had to. Timers of a machine that was suspended are late by
// what they stood still for, so it has to look by itself, and gets Look for that.
func (r *record) noticed(client int, since, due time.Duration) time.Duration {
	lag := r.run.Lag
	for _, s := range r.stopsSince(client, since) {
		if s.client != client || s.from > due {
			break
		}
		if s.suspended {
			lag = r.run.Lag + r.run.Look
		}
	}
	by := due + lag
	for _, s := range r.stopsSince(client, due) {
		if s.client != client || s.from > by {
			break
		}
		by = max(by, s.to+lag)
	}
	return by
}

// deadline is when something must have ended that a client began, and that may
// take so long: time in which it was stopped does not count.
func (r *record) deadline(client int, begin, limit time.Duration) time.Duration {
	by := begin + limit + r.run.Lag
	for _, s := range r.stopsSince(client, begin) {
		if s.client != client || s.from > by {
			break
		}
		by += s.to - max(s.from, begin)
	}
	return by
}
