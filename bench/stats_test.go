package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		values []time.Duration
		p      float64
		want   float64
	}{
		{nil, .5, 0},
		{[]time.Duration{7}, .01, 7},
		{[]time.Duration{7}, .99, 7},
		{hundred, .5, 50},
		{hundred, .99, 99},
		{hundred, 1, 100},
	} {
		if got := quantile(c.values, c.p); got != c.want {
			t.Errorf("quantile of %d values at %v: %v, want %v", len(c.values), c.p, got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{nil, spread{}},
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{9, 1, 2}, spread{1, 2, 9}},
		{[]float64{4, 1, 2, 9}, spread{1, 3, 9}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("spread of %v: %v, want %v", c.values, got, c.want)
		}
	}
}

// A ratio belongs to one round: a round in which either of the two failed has none.
func TestRatiosStayInTheirRound(t *testing.T) {
	s := &series{rounds: map[string][]sample{
		contender.Reference: {{"x": 10}, nil, {"x": 4}, {"x": 0}},
		"other":             {{"x": 5}, {"x": 5}, {"x": 8}, {"x": 8}},
		"broken":            {nil, {"x": 1}, nil, nil},
	}}
	for name, want := range map[string][]float64{
		"other": {.5, 2}, "broken": nil, contender.Reference: {1, 1}, "absent": nil,
	} {
		if got := s.ratios(name, "x", contender.Reference); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
