package main

import (
	"strings"
	"testing"
)

// TestRunRefuses: what names no arena, no scenario or no number is an error, so that a mutant is never acquitted for a typing
// mistake. TestMutants in package chaos has the convictions.
func TestRunRefuses(t *testing.T) {
	for _, tt := range []struct{ arena, scenario, first, last, want string }{
		{"nowhere", "calm", "1", "1", "no arena"},
		{"model", "nothing", "1", "1", "no scenario"},
		{"model", "calm", "one", "1", "invalid syntax"},
		{"model", "calm", "1", "", "invalid syntax"},
	} {
		if err := run(tt.arena, tt.scenario, tt.first, tt.last); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if err := run("model", "calm", "1", "1"); err != nil {
		t.Errorf("a schedule without a violation: %v", err)
	}
}
