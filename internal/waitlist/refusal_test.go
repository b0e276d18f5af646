package waitlist

import (
	"math"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		try    int
		ttl    time.Duration
		jitter float64
		want   time.Duration
	}{
		{0, 10 * time.Second, 0, 2 * ms},
		{0, 10 * time.Second, 1, 4 * ms},
		{3, 10 * time.Second, 1, 32 * ms},
		{3, 10 * time.Second, 0.5, 24 * ms},
		{9, 10 * time.Second, 1, MaxPause},
		{math.MaxInt, 10 * time.Second, 1, MaxPause},
		{9, 80 * ms, 1, 10 * ms}, // short locks make short pauses
		{0, 8 * ms, 1, 4 * ms},
	} {
		if got := Backoff(tt.try, tt.ttl, tt.jitter); got != tt.want {
			t.Errorf("Backoff(%d, %v, %v) = %v, want %v", tt.try, tt.ttl, tt.jitter, got, tt.want)
		}
	}
}

func TestFreeIn(t *testing.T) {
	for _, tt := range []struct {
		n, need, failed int
		held            []time.Duration
		want            time.Duration
	}{
		{5, 3, 0, nil, 0},
		{5, 3, 0, []time.Duration{7, 9}, 0},    // a majority is free now: votes were split
		{5, 3, 0, []time.Duration{9, 7, 8}, 7}, // one has to go
		{5, 3, 0, []time.Duration{9, 7, 8, 1, 2}, 7},
		{5, 3, 2, []time.Duration{9, 7, 8}, 9}, // all three, since two are down
		{5, 3, 1, []time.Duration{9, 7, 8, 5}, 8},
		{3, 2, 1, []time.Duration{4}, 4},
		{3, 2, 2, []time.Duration{4}, 0},    // no expiry helps
		{4, 3, 0, []time.Duration{3, 5}, 3}, // a tie
		{1, 1, 0, []time.Duration{6}, 6},
	} {
		r := Refusal{N: tt.n, Need: tt.need, Failed: tt.failed}
		for _, d := range tt.held {
			r.Nodes = append(r.Nodes, NodeRefusal{Status: wire.Held, TTL: d})
		}
		for range tt.failed {
			r.Nodes = append(r.Nodes, NodeRefusal{Status: wire.Timeout})
		}
		if got := r.FreeIn(); got != tt.want {
			t.Errorf("%d of %d, held for %v, %d failed: free in %v, want %v", tt.need, tt.n, tt.held, tt.failed, got, tt.want)
		}
	}
}

// TestHeldBefore: only holders count that were named before, and say when they began, and that was before.
func TestHeldBefore(t *testing.T) {
	began := time.UnixMilli(1e12).Add(time.Microsecond)
	at := func(d time.Duration) string { return wire.Sign("secret", began.Add(d), "", "", "") }
	before, now, after := at(-time.Millisecond), at(0), at(time.Millisecond)
	for _, tt := range []struct {
		holders []string
		want    bool
	}{
		{[]string{before, before, before}, true},
		{[]string{before, before}, false},
		{[]string{before, before, now}, false},
		{[]string{before, before, after}, false},
		{[]string{before, before, after, before}, true},
		{[]string{before, before, "of another library"}, false},
	} {
		r := Refusal{N: 5, Need: 3}
		for _, holder := range tt.holders {
			r.Nodes = append(r.Nodes, NodeRefusal{Status: wire.Held, Holder: holder})
		}
		if got := r.HeldBefore(began, &r); got != tt.want {
			t.Errorf("%q: %v", tt.holders, got)
		}
		if r.HeldBefore(began, &Refusal{}) {
			t.Errorf("%q, which were not named before", tt.holders)
		}
	}
}

// TestSplit: the votes are split if no client can have a quorum, whatever the nodes would say that
// gave no answer.
func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		need, failed int
		holders      string // a letter for each node that refused
		want         bool
	}{
		{3, 0, "aab", true},
		{3, 0, "aabb", true},
		{3, 0, "aaa", false},
		{3, 1, "aabb", false}, // the node that failed may have granted to either
		{2, 0, "ab", true},
		{2, 0, "aa", false},
	} {
		r := Refusal{N: 5, Need: tt.need, Failed: tt.failed}
		for _, holder := range tt.holders {
			r.Nodes = append(r.Nodes, NodeRefusal{Status: wire.Held, Holder: string(holder)})
		}
		if got := r.split(); got != tt.want {
			t.Errorf("%q, %d failed: %v", tt.holders, tt.failed, got)
		}
	}
}
