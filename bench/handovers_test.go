package main

import (
	"math"
	"reflect"
	"testing"
	"time"
)

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{0, 0}, 0},
		{[]float64{7}, 1},
		{[]float64{5, 5, 5, 5}, 1},
		{[]float64{9, 0, 0, 0}, .25},
		{[]float64{1, 2, 3}, 36. / (3 * 14)},
	} {
		if got := jain(c.shares); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.shares, got, c.want)
		}
	}
}

// TestHistory: two processes; the second overtakes the first once, by 3, and the first waits in
// vain at the end.
func TestHistory(t *testing.T) {
	h, err := newHistory([]answer{
		{Acquisitions: []acquisition{{Asked: 10, Got: 20, Gave: 25}, {Asked: 26, Got: 45, Gave: 50}, {Asked: 55}}},
		{Acquisitions: []acquisition{{Asked: 12, Got: 28, Gave: 29, Tries: 2}, {Asked: 29, Got: 31, Gave: 40, Tries: 4}}},
	}, time.Unix(0, 10), time.Unix(0, 100))
	if err != nil {
		t.Fatal(err)
	}
	order := []int{}
	for _, t := range h.acquisitions {
		order = append(order, t.by)
	}
	for what, check := range map[string]struct{ got, want any }{
		"order":           {order, []int{0, 1, 1, 0, 0}},
		"served":          {len(h.served()), 4},
		"switches":        {h.switches(), 2},
		"hand-overs":      {h.handOvers(), []time.Duration{3, 5}},
		"in order":        {h.inOrder(0), .75},
		"by more than 2":  {h.inOrder(2), .75},
		"by more than 3":  {h.inOrder(3), 1.},
		"waits":           {h.waits(0), []time.Duration{10, 16, 2, 19, 45}},
		"later waits":     {h.waits(16), []time.Duration{2, 19, 45}},
		"shares":          {h.shares(), []float64{2, 2}},
		"tries":           {h.tries(), 1.5},
		"the mean of two": {mean([]time.Duration{1, 2}), 1.5},
	} {
		if !reflect.DeepEqual(check.got, check.want) {
			t.Errorf("%s: %v, want %v", what, check.got, check.want)
		}
	}
}

// A process that is never served was overtaken by all that asked later.
func TestHistoryCountsTheStarved(t *testing.T) {
	h, err := newHistory([]answer{
		{Acquisitions: []acquisition{{Asked: 1, Got: 2, Gave: 3}, {Asked: 4, Got: 5, Gave: 6}}},
		{Acquisitions: []acquisition{{Asked: 3}}},
	}, time.Unix(0, 0), time.Unix(0, 10))
	if err != nil || h.inOrder(0) != .5 || jain(h.shares()) != .5 {
		t.Errorf("%v in order, fairness %v, %v", h.inOrder(0), jain(h.shares()), err)
	}
}

// A lock with two holders at once is an error, and so is one that no process has.
func TestHistoryRefuses(t *testing.T) {
	for what, answers := range map[string][]answer{
		"two at once": {{Acquisitions: []acquisition{{Asked: 1, Got: 2, Gave: 9}}}, {Acquisitions: []acquisition{{Asked: 1, Got: 5, Gave: 6}}}},
		"no holder":   {{Acquisitions: []acquisition{{Asked: 1}}}},
	} {
		if _, err := newHistory(answers, time.Unix(0, 0), time.Unix(0, 10)); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestWithout(t *testing.T) {
	got, err := without("a\nlocal x\n  y\nend\nb\n", []cut{{"local x", "\nend\n"}})
	if got != "a\nb\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := without("a\n", []cut{{"local x", "\n"}}); err == nil {
		t.Error("a piece that is not there: no error")
	}
}
