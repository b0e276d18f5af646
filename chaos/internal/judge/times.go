package judge

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A stretch is a time in which a lock cannot be acquired.
type stretch struct{ from, to time.Duration }

func sortStretches(times []stretch) {
	slices.SortFunc(times, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
}

// never is the time of an event that does not happen.
const never time.Duration = math.MaxInt64

// A span is a time in which a client was stopped, both ends included: events of one instant have no order.
type span struct {
	client    int
	from, to  time.Duration
	suspended bool // the machine was suspended, at least for a part of it
}

// mergeSpans sorts spans by client and time, and merges those that touch. Then each client's spans
// are apart, so that both their ends rise.
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

// mergeStretches sorts stretches, and merges those that touch.
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

// after is an instant plus a duration; never stays never.
func after(t, d time.Duration) time.Duration {
	if t == never {
		return never
	}
	return t + d
}

// An ailment is a time in which a node is not well, or has not recovered.
type ailment struct {
	node     int // -1: of no node
	from, to time.Duration
}
