package load

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A histogram is compared with the sorted durations themselves.
func TestHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, of := range []struct {
		name string
		draw func(i int) time.Duration
	}{
		{"one by one", func(i int) time.Duration { return time.Duration(i) }},
		{"all the same", func(int) time.Duration { return 1234567 }},
		{"nothing", func(int) time.Duration { return 0 }},
		{"of each size", func(int) time.Duration { return time.Duration(random.Uint64() >> (1 + random.IntN(63))) }},
		{"two far apart", func(i int) time.Duration { return []time.Duration{time.Microsecond, time.Hour}[i%100/98] }},
	} {
		for _, n := range []int{1, 2, 99, 100, 101, 5000} {
			h, all := new(Histogram), []time.Duration(nil)
			for i := range n {
				d := of.draw(i)
				h.Add(d)
				all = append(all, d)
			}
			slices.Sort(all)
			for _, share := range []float64{0.01, 0.5, 0.98, 0.99, 1} {
				want := all[max(0, (int(share*1000)*n+999)/1000-1)]
				if got := h.quantile(share); (got - want).Abs() > want/100 {
					t.Errorf("%s: %v of %d is %v, not %v", of.name, share, n, got, want)
				}
			}
			if s := h.Spread(); s.Count != uint64(n) || time.Duration(s.Longest) != all[n-1] {
				t.Errorf("%s: %d, the longest %v, not %d and %v", of.name, s.Count, s.Longest, n, all[n-1])
			}
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	h := new(Histogram)
	if s := h.Spread(); s != (Spread{}) {
		t.Errorf("of nothing: %+v", s)
	}
	h.Add(-time.Second) // as after a clock was set
	const longest = time.Duration(1<<63 - 1)
	h.Add(longest)
	if got := h.quantile(1); longest-got > longest/100 {
		t.Errorf("the longest that there is: %v", got)
	}
	for d := time.Duration(0); d < 1<<20; d++ { // each in the cell of the one before, or the next
		if now, before := cell(d), cell(max(0, d-1)); now != before && now != before+1 {
			t.Fatalf("%d is in cell %d, and %d in %d", d, now, d-1, before)
		}
	}
	h = new(Histogram)
	h.Add(time.Second)
	h.Reach(time.Minute)
	if s := h.Spread(); s.Count != 1 || time.Duration(s.Longest) != time.Minute || time.Duration(s.P99) > 2*time.Second {
		t.Errorf("with one that has not ended: %+v", s)
	}
}

func TestMillis(t *testing.T) {
	for _, of := range []struct {
		d           time.Duration
		shown, json string
	}{
		{0, "0.00ms", "0.000"},
		{262 * time.Microsecond, "0.26ms", "0.262"},
		{9_994 * time.Microsecond, "9.99ms", "9.994"},
		{12_345_678, "12.3ms", "12.346"},
		{1603 * time.Millisecond, "1,603ms", "1603.000"},
	} {
		got, err := json.Marshal(Millis(of.d))
		if shown := Millis(of.d).String(); shown != of.shown || string(got) != of.json || err != nil {
			t.Errorf("%v is %s and %s, not %s and %s: %v", of.d, shown, got, of.shown, of.json, err)
		}
	}
}
