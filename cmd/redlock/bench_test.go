package main

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
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
			h, all := new(histogram), []time.Duration(nil)
			for i := range n {
				d := of.draw(i)
				h.add(d)
				all = append(all, d)
			}
			slices.Sort(all)
			for _, share := range []float64{0.01, 0.5, 0.98, 0.99, 1} {
				want := all[max(0, (int(share*1000)*n+999)/1000-1)]
				if got := h.quantile(share); (got - want).Abs() > want/100 {
					t.Errorf("%s: %v of %d is %v, not %v", of.name, share, n, got, want)
				}
			}
			if s := h.spread(); s.Count != uint64(n) || time.Duration(s.Longest) != all[n-1] {
				t.Errorf("%s: %d, the longest %v, not %d and %v", of.name, s.Count, s.Longest, n, all[n-1])
			}
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	h := new(histogram)
	if s := h.spread(); s != (spread{}) {
		t.Errorf("of nothing: %+v", s)
	}
	h.add(-time.Second) // a clock was set
	const longest = time.Duration(1<<63 - 1)
	h.add(longest)
	if got := h.quantile(1); longest-got > longest/100 {
		t.Errorf("the longest that there is: %v", got)
	}
	for d := time.Duration(0); d < 1<<20; d++ { // each in the cell of the one before, or the next
		if now, before := cell(d), cell(max(0, d-1)); now != before && now != before+1 {
			t.Fatalf("%d is in cell %d, and %d in %d", d, now, d-1, before)
		}
	}
	h = new(histogram)
	h.add(time.Second)
	h.reach(time.Minute)
	if s := h.spread(); s.Count != 1 || time.Duration(s.Longest) != time.Minute || time.Duration(s.P99) > 2*time.Second {
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
		got, err := json.Marshal(millis(of.d))
		if shown := millis(of.d).String(); shown != of.shown || string(got) != of.json || err != nil {
			t.Errorf("%v is %s and %s, not %s and %s: %v", of.d, shown, got, of.shown, of.json, err)
		}
	}
}

// What is advised follows from the figures, and where there are none nothing is.
func TestAdvice(t *testing.T) {
	ms := func(n float64) millis { return millis(n * float64(time.Millisecond)) }
	node := func(name string, p99 float64, failed int) nodeFigures {
		return nodeFigures{Node: name, spread: spread{Count: 1000, P99: ms(p99)}, Failed: tally{"timeout": failed}}
	}
	measured := func(ttl time.Duration, longest float64, nodes ...nodeFigures) *benchReport {
		return &benchReport{
			TTL: millis(ttl), NodeTimeout: millis(nodeTimeout(ttl)), Quorum: len(nodes)/2 + 1, Nodes: nodes,
			Callers: []callersFigures{{Callers: 1, spread: spread{Count: 1, Longest: ms(longest / 2)}}, {Callers: 2, spread: spread{Count: 1, Longest: ms(longest)}}},
		}
	}
	handedOver := func(longest float64, failed tally) *benchReport {
		r := measured(time.Second, 1, node("a", 1, 0))
		r.HandOver = &handOverFigures{PerSecond: 120, HandOver: spread{Count: 9, P50: ms(2), Longest: ms(longest)}, troubles: troubles{Failed: failed}}
		return r
	}
	for _, of := range []struct {
		name   string
		report *benchReport
		says   []string // in this order
		not    string
	}{
		{"nothing was measured", &benchReport{Quorum: 2}, nil, "lock"},
		{"nodes of our own", &benchReport{Embedded: true, Quorum: 1, Nodes: []nodeFigures{node("a", 1, 0)}}, []string{"Nothing for your nodes"}, "a, "},
		{"one", measured(10*time.Second, 1, node("a", 1, 0)), []string{"majority: a, 1.00ms", "No further node may fail", "a TTL of 100ms or more will do: 10s is enough"}, "fastest 3"},
		{"three, one far", measured(10*time.Second, 1, node("far", 20, 0), node("b", 2, 0), node("a", 1, 0)),
			[]string{"majority: b, 2.00ms", "If the fastest node fails, that is far, 20.0ms", "NodeTimeout 500ms leaves room: it is 25 times the 20.0ms of far", "a TTL of 800ms or more"}, "fastest 3"},
		{"five", measured(10*time.Second, 1, node("e", 5, 0), node("d", 4, 0), node("c", 3, 0), node("b", 2, 0), node("a", 1, 0)),
			[]string{"majority: c, 3.00ms", "If the fastest 2 fail, that is e, 5.00ms", "fastest 3 nodes alone it would be b, 2.00ms"}, ""},
		{"five, one unwell", measured(10*time.Second, 1, node("e", 5, 11), node("d", 4, 10), node("c", 3, 0), node("b", 2, 0), node("a", 1, 0)),
			[]string{"e cannot be counted on", "majority: c, 3.00ms", "If the fastest node fails, that is d, 4.00ms"}, "fastest 3"},
		{"no quorum", measured(10*time.Second, 1, node("c", 3, 900), node("b", 2, 900), node("a", 1, 0)), []string{"c, b cannot be counted on"}, "TTL"},
		{"too far for the TTL", measured(time.Second, 1, node("a", 30, 0)), []string{"NodeTimeout 100ms is too short for a: it should be 4 times 30.0ms", "a TTL of 1.2s or more will do: 1s is too short"}, "room: it"},
		{"too far for any", measured(10*time.Second, 1, node("a", 200, 0)), []string{"NodeTimeout 500ms is too short", "No TTL brings a NodeTimeout of 800ms"}, "will do"},
		{"a long pause", measured(time.Second, 700, node("a", 1, 0)), []string{"leaves room", "a TTL of 1.1s or more will do: 1s is too short"}, ""},
		{"a very long pause", measured(10*time.Second, 20_000, node("a", 1, 0)), []string{"a TTL of 30s or more will do: 10s is too short"}, ""},
		{"a long hand-over", handedOver(700, nil), []string{"a TTL of 1.1s or more will do", "700ms", "One name serves at most 120 holders a second", "comes on top of 2.00ms"}, "came to nothing"},
		{"failures", handedOver(3, tally{"no quorum": 1200}), []string{"1,200 attempts above came to nothing", "leaves room"}, ""},
	} {
		text := strings.Join(of.report.advice(), "\n")
		rest := text
		for _, want := range of.says {
			_, after, found := strings.Cut(rest, want)
			if rest = after; !found {
				t.Errorf("%s: it does not say %q where it should:\n%s", of.name, want, text)
				break
			}
		}
		if of.not != "" && strings.Contains(text, of.not) {
			t.Errorf("%s: it says %q:\n%s", of.name, of.not, text)
		}
	}
}

func TestItems(t *testing.T) {
	long := strings.Repeat("word ", 30)
	got := items([]string{"short", long})
	if want := "- short\n- " + strings.TrimSpace(strings.Repeat("word ", 17)) + "\n  " + strings.TrimSpace(strings.Repeat("word ", 13)) + "\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
