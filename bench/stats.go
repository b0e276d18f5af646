package main

import (
	"slices"
	"time"
)

// quantile returns the value that a fraction p of the values does not exceed,
// and 0 where there are none.
func quantile(values []time.Duration, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Clone(values)
	slices.Sort(values)
	i := int(p*float64(len(values))+0.5) - 1
	return float64(values[min(max(i, 0), len(values)-1)])
}

// A spread summarises one figure over all rounds. The median is the result; the ends say how reliable it is.
type spread struct{ low, median, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(values))
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (v[len(v)/2-1] + mid) / 2
	}
	return spread{low: v[0], median: mid, high: v[len(v)-1]}
}
