package lane

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// TestWhatProvesNothing: a key that is no lock of this library, and a lock that is no longer than
// expected, make no quarantine longer.
func TestWhatProvesNothing(t *testing.T) {
	ours := wire.Sign("5a2d8278-fa6d-492c-b716-bcafdf885c49", time.UnixMilli(1795680000123), "", "", "o")
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
		{"5f0c7a1e9b3d4826a1c4e7d2f8b60913", time.Hour, false},       // node-redlock, redis-py: 32 hexadecimal digits
		{"5a2d8278-fa6d-492c-b716-bcafdf885c49", time.Hour, false},   // redlock-rb, RedLock.net: a UUID
		{"q83vEjRWeJASNFZ4kKvN7xI0Vng=", time.Hour, false},           // redsync: 20 bytes in base64
		{"5a2d8278-fa6d-492c-b716-bcafdf885c49.7", time.Hour, false}, // a UUID and a counter
		{ours, 25 * time.Hour, false},
		{ours, 2 * time.Minute, true},
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
