package judge

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A stretch is a time in which a lock may not be had.
type stretch struct{ from, to time.Duration }

func sortStretches(times []stretch) {
	slices.SortFunc(times, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
}

// never is the time of what does not happen.
const never time.Duration = math.MaxInt64

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
