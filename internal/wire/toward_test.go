package wire_test

import (
	"testing"

	"github.com/quorumlock/redlock/internal/wire"
)

// TestToward: from any bounds the steps lead to a MaxTTL, and each step is one that two clients may be on both sides of:
// no lock by the one is longer than the quarantine by the other, and neither bound goes past the other.
func TestToward(t *testing.T) {
	ttls := []int64{1, 2, 3, 4}
	for _, most := range ttls {
		for _, maxTTL := range ttls {
			for _, other := range append(ttls, 0) {
				if other > 0 && other <= maxTTL {
					continue
				}
				d, steps := wire.Description{MaxTTL: maxTTL, Other: other}, 0
				for d.MaxTTL != most || d.Other != 0 {
					next := d
					next.MaxTTL, next.Other = d.Toward(most)
					long := func(d wire.Description) int64 { return max(d.MaxTTL, d.Other) }
					if next.MaxTTL > long(d) || d.MaxTTL > long(next) || next.Other != 0 && next.Other <= next.MaxTTL {
						t.Errorf("from %d, %d to %d: %d, %d comes after %d, %d", maxTTL, other, most, next.MaxTTL, next.Other, d.MaxTTL, d.Other)
					}
					if d = next; steps == 2 {
						t.Fatalf("from %d, %d to %d there are more than two steps", maxTTL, other, most)
					}
					steps++
				}
			}
		}
	}
}
