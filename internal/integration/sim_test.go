package integration_test

import (
	"testing"

	"github.com/quorumlock/redlock/internal/sim"
)

// TestMade: the token of a lock that was handed over begins with the name of a waiter's process,
// which is a token.
func TestMade(t *testing.T) {
	for token, want := range map[string]bool{
		sim.Chance{}.Token():                   true,
		"5a2d8278-fa6d-492c-b716-bcafdf885c49": true,
		"5a2d8278-fa6d-492c-b716-bcafdf885c49.7.41d2a9f4-21b4-4d7e-9a52-a8f7e2a3c001": true,
		"q83vEjRWeJA=": false, // redsync
		"c3.17":        false,
		"":             false,
	} {
		if got := (sim.Chance{}).Made(token); got != want {
			t.Errorf("%q: %v", token, got)
		}
	}
}
