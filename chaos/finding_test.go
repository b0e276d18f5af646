package chaos

import (
	"strings"
	"testing"
	"time"
)

// TestFindingTellsOfTheMachine: measurements before a violation are printed with it.
func TestFindingTellsOfTheMachine(t *testing.T) {
	h := &History{Run: Head{Arena: Real.Name, Idle: 5 * time.Second}, Events: []Event{
		{Kind: Ask, Client: 1, Op: 1, Name: "a", Verb: "acquire"},
		{At: 1 * time.Second, Kind: Measured, Error: "long-ago"},
		{At: 9 * time.Second, Kind: Measured, Error: "steal"},
		{At: 12 * time.Second, Kind: Stalled, Until: 13 * time.Second},
		{At: 30 * time.Second, Kind: Measured, Error: "later"},
	}}
	v := Violation{Rule: "idle", At: 15 * time.Second, Text: "too long"}
	f := Finding{ScenarioResult: ScenarioResult{Scenario: "s", Arena: Real.Name, Violations: 1, Schedules: 1}, Shown: []ShownRun{{History: h, Verdict: Verdict{Violations: []Violation{v}}}}}
	got := f.Tell()
	for text, want := range map[string]bool{"steal": true, "not run until 13s": true, "long-ago": false, "later": false} {
		if strings.Contains(got, text) != want {
			t.Errorf("%q: %v, in\n%s", text, !want, got)
		}
	}
}
