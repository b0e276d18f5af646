package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/chaos/internal/coverage"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

const (
	fewSchedules   = 200 // of light scenarios
	nightSchedules = 20_000

	// A situation is to be reached where so many schedules of a run are expected to reach it: of schedules that were
	// drawn anew, a run in a thousand has none.
	expected = 7
)

// counted runs schedules, counts the situations that they reach, and wants no violation.
func counted(t *testing.T, scenarios []*Scenario, schedules int) *Coverage {
	t.Helper()
	c := &Campaign{Arena: Model, Scenarios: scenarios, Schedules: schedules, Seed: 1, Coverage: new(Coverage)}
	for _, f := range c.Run(t.Context()) {
		if f.Violations > 0 || f.Error != nil {
			t.Errorf("%s: %s; %s", f.Scenario, f.Outcome(), f.Replay)
		}
	}
	return c.Coverage
}

// TestSituationsAreReached: few schedules reach all situations of the written list that are marked soon, those of a night
// also those marked night, and none reaches what is said to be impossible. With -update and REDLOCK_LONG=1 it writes the
// list anew, but for the lines with reasons.
func TestSituationsAreReached(t *testing.T) {
	need.Unraced(t)
	list, err := coverage.Written()
	if err != nil {
		t.Fatal(err)
	}
	light := slices.DeleteFunc(Model.Scenarios(), func(s *Scenario) bool { return s.Weight > 6 })
	long := need.Sized(false, false, true)
	if *update && long {
		writeSituations(t, counted(t, light, 10*fewSchedules), counted(t, nil, nightSchedules))
		return
	}
	scenarios, schedules := light, fewSchedules
	if long {
		scenarios, schedules = nil, nightSchedules
	}
	c := counted(t, scenarios, schedules)
	for _, s := range coverage.Situations() {
		class, reason := list.Of(s)
		switch n := c.Of(s); {
		case n > 0 && class == coverage.Never:
			t.Errorf("%v: %d schedules reach it, and the list says that none can, since %s", s, n, reason)
		case n == 0 && (class == coverage.Soon || class == coverage.Night && long):
			t.Errorf("%v: none of %d schedules reaches it", s, c.Schedules())
		}
	}
}

// writeSituations writes the list: its comments and the lines with reasons as they were, and all others anew.
func writeSituations(t *testing.T, few, night *Coverage) {
	t.Helper()
	name := filepath.Join("internal", "coverage", "situations.txt")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.Contains(line, " | "+string(coverage.Never)+": ") {
			out.WriteString(line)
		}
	}
	for _, table := range coverage.Tables {
		for _, row := range table.Rows {
			by := make(map[coverage.Class][]string)
			for _, column := range table.Columns {
				s := coverage.Situation{Table: table.Name, Row: row, Column: column}
				switch {
				case few.Of(s)*fewSchedules >= expected*few.Schedules():
					by[coverage.Soon] = append(by[coverage.Soon], column)
				case night.Of(s) >= expected:
					by[coverage.Night] = append(by[coverage.Night], column)
				}
			}
			for _, class := range []coverage.Class{coverage.Soon, coverage.Night} {
				if len(by[class]) > 0 {
					fmt.Fprintln(&out, coverage.Line{Table: table.Name, Row: row, Columns: by[class], Class: class})
				}
			}
		}
	}
	if err := os.WriteFile(name, []byte(out.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestCoverageChangesNothing: a schedule whose situations are counted has the same history, and each time the same situations.
func TestCoverageChangesNothing(t *testing.T) {
	need.Unraced(t)
	for i, s := range Model.Scenarios() {
		if s.Weight > 8 || !need.Sample(i, 8) {
			continue
		}
		h, _, err := Model.Replay(s, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		var counts [2]*Coverage
		for n := range counts {
			counts[n] = new(Coverage)
			counted, _, err := (&Campaign{Arena: Model, Coverage: counts[n]}).one(s, 3)
			if err != nil {
				t.Fatal(err)
			}
			if counted.Digest() != h.Digest() {
				t.Errorf("%s: the digest is %s, and %s when situations are counted", s.Name, h.Digest(), counted.Digest())
			}
		}
		for _, of := range coverage.Situations() {
			if counts[0].Of(of) != counts[1].Of(of) {
				t.Errorf("%s: %v is reached by one of two runs of the same schedule", s.Name, of)
			}
		}
	}
}

// TestCoverageTable: docs/chaos.md says how many situations there are, and how many of them are reached.
func TestCoverageTable(t *testing.T) {
	list, err := coverage.Written()
	if err != nil {
		t.Fatal(err)
	}
	none := new(Coverage) // schedules of all scenarios in which nothing happens
	for _, s := range Model.Scenarios() {
		none.Add(coverage.NewSheet(s.Faults(Model.limits()), s.Steps()))
	}
	report, err := none.Report()
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, table := range report.Tables {
		by := make(map[coverage.Class]int)
		for _, l := range list {
			if l.Table == table.Name {
				by[l.Class] += len(l.Columns)
			}
		}
		reached := by[coverage.Soon] + by[coverage.Night]
		fmt.Fprintf(&rows, "| %s: %s | %d | %d | %d | %d | %d |\n", table.Name, table.About, by[coverage.Soon], reached, table.Missed-reached, table.Unmade, table.Never)
	}
	document(t, "coverage", fmt.Sprintf("| Situations | Reached by %d schedules | %d | Hardly, or not | No scenario | Impossible |\n|---|---|---|---|---|---|\n%s", fewSchedules, nightSchedules, &rows))
}
