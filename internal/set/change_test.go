package set

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
)

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// TestKeep: what a change waits for is that nodes keep its description, or one that follows it; and not just one of a
// later epoch.
func TestKeep(t *testing.T) {
	first := &wire.Description{MaxTTL: 10_000, Epoch: 1, Set: "s", Members: []string{"a:1"}}
	second := first.Next()
	third, wrong := second.Next(), second.Next()
	wrong.Past = nil
	cfg := vote.Config{
		Config: lane.Config{Clock: systemClock{}}, TTL: time.Second, MaxTTL: time.Second, DriftOf: func(time.Duration) time.Duration { return 0 },
	}
	for _, tt := range []struct {
		name  string
		keeps *wire.Description
		want  int
	}{
		{"none", nil, 0}, {"the one before", first, 0}, {"it", second, 1}, {"the next one", third, 1}, {"the one after that", third.Next(), 1},
		{"another one of the next epoch", wrong, 0}, {"what follows that", wrong.Next(), 0},
	} {
		m := vote.NewNode("a:1", &cfg, vote.NewGroup(&cfg))
		m.Keep(wire.Kept{Self: "a:1", Description: tt.keeps}, wire.Marker{})
		if got := new(Set).keep([]*node{{vote: m}}, second); got != tt.want {
			t.Errorf("a node keeps %s: %d keep the second one, want %d", tt.name, got, tt.want)
		}
	}
}
