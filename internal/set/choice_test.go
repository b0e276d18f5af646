package set

import (
	"testing"

	"github.com/quorumlock/redlock/internal/wire"
)

// TestCount: what the answers of three members to a step of a choice come to. Each keeps the first description, but where
// another one is said; taken is what it has taken, by the ballot that it has promised.
func TestCount(t *testing.T) {
	const mine, higher = "000000000000000200000000", "000000000000000300000000"
	first := &wire.Description{Epoch: 1, Set: "s", Members: []string{"a", "b", "c"}, MaxTTL: 10_000}
	next, other := first.Next(), first.Next()
	next.Quorum, other.Quorum = 2, 3
	type answer struct {
		keeps, taken *wire.Description
		promised     string
		lost         int64
	}
	yes, forgot := answer{first, next, mine, 0}, answer{first, next, mine, 1}
	for _, tt := range []struct {
		name    string
		answers []answer
		yes     int
	}{
		{"all say yes", []answer{yes, yes, yes}, 3},
		{"one may have forgotten what it took, and all say yes", []answer{yes, yes, forgot}, 3},
		{"the third has not answered", []answer{yes, forgot}, 1},
		{"the third has promised more", []answer{yes, forgot, {first, nil, higher, 0}}, 1},
		{"the third has taken another one", []answer{yes, forgot, {first, other, higher, 0}}, 1},
		{"the third keeps another one", []answer{yes, forgot, {other, nil, "", 0}}, 1},
		{"the third keeps the same", []answer{yes, forgot, {next, nil, "", 0}}, 3},
		{"the third keeps none", []answer{yes, forgot, {nil, nil, "", 0}}, 1},
		{"one keeps it, and nobody else shows it", []answer{{next, nil, "", 0}, {first, nil, higher, 0}, {first, nil, higher, 0}}, 0},
		{"one keeps it, and another one may have forgotten", []answer{{next, nil, "", 0}, {nil, nil, "", 0}, {first, nil, higher, 0}}, 1},
		{"one keeps it, and another one denies it", []answer{{next, nil, "", 0}, {nil, nil, "", 0}, {first, other, higher, 0}}, 0},
	} {
		p := &poll{asked: make([]*node, 3)}
		for _, a := range tt.answers {
			text := func(d *wire.Description) string {
				if d == nil {
					return ""
				}
				return d.Text()
			}
			taken := ""
			if a.taken != nil {
				taken = a.promised
			}
			p.by = append(p.by, nil)
			p.said = append(p.said, []any{wire.Kept{Self: "a", Description: a.keeps}.String(), a.promised, taken, text(a.taken), "", a.lost})
		}
		c := &choice{view: &View{Description: first}, set: "s", epoch: 2, need: 2}
		if got := c.count(p, mine, next); got.yes != tt.yes {
			t.Errorf("%s: %+v, want %d", tt.name, got, tt.yes)
		}
	}
}
