package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
)

// TestSeedRepeats: the number of a branch depends on the root and the names on the way to it, and on nothing else. The
// histories of the chaos harness have these numbers in them, so a change of one makes every recorded seed another run.
func TestSeedRepeats(t *testing.T) {
	for _, tt := range []struct {
		branch sim.Seed
		want   uint64
	}{
		{sim.Seed(1).Of(0), 0xe9fd6049d65af21e},
		{sim.Seed(1).For("jitter"), 0x71254115943273ae},
		{sim.Seed(1).For("node0").Of(7), 0xbfce44ba3a01b2d0},
	} {
		if uint64(tt.branch) != tt.want {
			t.Errorf("it is %#x, want %#x", uint64(tt.branch), tt.want)
		}
	}
}

// TestBranchesAreApart: no two of many branches of two neighbouring roots have the same number.
func TestBranchesAreApart(t *testing.T) {
	seen := make(map[sim.Seed]bool)
	add := func(s sim.Seed) {
		if seen[s] {
			t.Errorf("%#x is there twice", s)
		}
		seen[s] = true
	}
	for _, root := range []sim.Seed{1, 2} {
		for n := range 1000 {
			add(root.Of(n))
		}
		for _, name := range []string{"", "a", "b", "ab", "ba", "node0", "node1"} {
			add(root.For(name))
			add(root.For(name).Of(0))
		}
	}
}

// TestDraws: Float, Below and OneIn stay within their bounds, and are spread evenly.
func TestDraws(t *testing.T) {
	const n = 10_000
	sum, hits := 0.0, 0
	for i := range n {
		s := sim.Seed(3).Of(i)
		f := s.Float()
		if f < 0 || f >= 1 {
			t.Fatalf("Float is %v", f)
		}
		if d := s.Below(time.Second); d < 0 || d >= time.Second {
			t.Fatalf("Below is %v", d)
		}
		if s.Below(0) != 0 {
			t.Fatal("nothing is below 0, and Below is not 0")
		}
		if sum += f; s.OneIn(10) {
			hits++
		}
	}
	if mean := sum / n; math.Abs(mean-0.5) > 0.02 {
		t.Errorf("the mean is %v", mean)
	}
	if hits < n/10-150 || hits > n/10+150 {
		t.Errorf("one in ten came up %d times in %d", hits, n)
	}
}

// TestChanceHasNewTokens: outside of a simulation no two tokens are the same, and the jitter is a part of 1.
func TestChanceHasNewTokens(t *testing.T) {
	seen := make(map[string]bool)
	var chance sim.Chance
	for range 1000 {
		token := chance.Token()
		if token == "" || seen[token] {
			t.Fatalf("token %q is not new", token)
		}
		seen[token] = true
		if j := chance.Jitter(); j < 0 || j >= 1 {
			t.Fatalf("the jitter is %v", j)
		}
	}
}
