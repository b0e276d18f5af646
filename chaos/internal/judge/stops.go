package judge

import (
	"cmp"
	"slices"
	"time"
)

// stopsSince returns the stops from a client's first one that ends at t or later. Those of other
// clients follow.
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

// noticed is when a client must have noticed what was due at an instant, and for which it has had a
// timer since another: Lag later, and Lag after the end of any stop that came before. Timers of a
// suspended machine are late by the time of the suspension, so the client has to look by itself,
// and gets Look for that.
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

// deadline is when an operation of a client must have ended that may take this long: time in which
// the client was stopped does not count.
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
