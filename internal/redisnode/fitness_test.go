package redisnode

import (
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestScriptsThatAreKept: a server whose scripts reach other processes is recognised by what it
// does, whatever version it claims.
func TestScriptsThatAreKept(t *testing.T) {
	r := NewRegistry(func(error) {})
	about := facts.Facts{"redis_version": "7.2.4", "run_id": "a"}
	if err := r.Admit(0, "one", about); err != nil {
		t.Error(err)
	}
	about.Probed(int64(0), nil)
	if err := r.Admit(0, "one", about); wire.Classify(err) != wire.Unfit || !strings.Contains(err.Error(), "it is Redis 7.2.4, which replicates and persists scripts") {
		t.Error(err)
	}
}

// TestServerThatSaysNothing: a server that says nothing about itself may vote, with a warning.
func TestServerThatSaysNothing(t *testing.T) {
	var told []string
	r := NewRegistry(func(err error) { told = append(told, err.Error()) })
	for range 3 {
		for i := range 2 {
			if err := r.Admit(i, []string{"one", "two"}[i], facts.Facts{}); err != nil {
				t.Error(err)
			}
		}
	}
	if got := strings.Count(strings.Join(told, "\n"), "INFO server"); got != 2 {
		t.Errorf("warned %q, want once for each", strings.Join(told, "\n"))
	}
	if err := r.Admit(0, "one", facts.Facts{"role": "slave"}); wire.Classify(err) != wire.Unfit {
		t.Error(err)
	}
}
