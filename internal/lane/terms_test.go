package lane

import (
	"testing"
	"time"
)

// TestWhatProvesNothing: a key that is no lock of this library, and a lock that is no longer than
// expected, make no quarantine longer.
func TestWhatProvesNothing(t *testing.T) {
	const ours = "5a2d8278-fa6d-492c-b716-bcafdf885c49"
	cfg := testConfig()
	cfg.TTL, cfg.MaxTTL, cfg.Quarantine = 2*time.Second, time.Minute, time.Minute+cfg.DriftOf(time.Minute)
	m := testIncarnation(&cfg)
	for _, tt := range []struct {
		token string
		rest  time.Duration
		want  bool
	}{
		{ours, 59 * time.Second, false},
		{ours, time.Minute + 600*time.Millisecond, false},
		{"another's", time.Hour, false},
		{ours, 25 * time.Hour, false},
		{ours + ".7", 2 * time.Minute, true},
		{ours, 3 * time.Minute, false}, // as before
		{ours, 4 * time.Minute, true},
	} {
		before := m.terms.quarantine()
		if got := m.terms.shown(m, tt.token, tt.rest); got != tt.want || got != (m.terms.quarantine() > before) {
			t.Errorf("%s for %v: %v, and the quarantine goes from %v to %v", tt.token, tt.rest, got, before, m.terms.quarantine())
		}
	}
	if got := m.terms.announces(); got != time.Minute {
		t.Errorf("announced: %v", got)
	}
}
