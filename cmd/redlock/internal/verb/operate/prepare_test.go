package operate

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// Without --timeout prepare waits for as long as a quarantine may take, and no longer.
func TestPrepareIsBounded(t *testing.T) {
	v := &voting{nodes: []string{"a", "b", "c"}, need: 2}
	if got, want := v.bound(&redlock.Options{TTL: 10 * time.Second}), 10102*time.Millisecond+grace; got != want {
		t.Errorf("%v, and not %v", got, want)
	}
	v.absent = []*redlock.NodeError{{Outcome: redlock.OutcomeQuarantined, TTL: time.Hour}}
	if got, want := v.bound(&redlock.Options{TTL: 10 * time.Second}), time.Hour+grace; got != want {
		t.Errorf("%v, and not %v", got, want)
	}
}
