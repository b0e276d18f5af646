package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/chaos/internal/judge"
)

// document compares a table in docs/chaos.md, or that of the mutants, with the present one, or writes it.
func document(t *testing.T, name, table string) {
	t.Helper()
	file := filepath.Join("..", "docs", "chaos.md")
	if name == "mutants" {
		file = mutantsFile
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- %s: generated -->\n", name), fmt.Sprintf("<!-- %s: end -->", name)
	before, rest, ok1 := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	switch {
	case !ok1 || !ok2:
		t.Errorf("%s has no place for the table of %s", file, name)
	case strings.TrimSpace(old) == strings.TrimSpace(table):
	case *update:
		text := before + begin + "\n" + strings.TrimSpace(table) + "\n\n" + end + after
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of %s in %s is out of date: make tables writes it anew. It should be\n%s", name, file, table)
	}
}

// TestScenarioTable: the document's tables have the descriptions of the scenarios and rules.
func TestScenarioTable(t *testing.T) {
	var kept, broken strings.Builder
	for _, s := range Scenarios {
		if s.Fails == nil {
			fmt.Fprintf(&kept, "| %s | %s |\n", s.Name, s.About)
		} else {
			fmt.Fprintf(&broken, "| %s | %s | %s | %s |\n", s.Name, s.About, strings.Join(s.Fails, ", "), s.Because)
		}
	}
	document(t, "scenarios", "| Scenario | What happens |\n|---|---|\n"+kept.String())
	document(t, "weaknesses", "| Scenario | What happens | Rules that it breaks | Why |\n|---|---|---|---|\n"+broken.String())
	var says strings.Builder
	for _, r := range judge.Rules {
		fmt.Fprintf(&says, "| %s | %s |\n", r.Name, r.Says)
	}
	document(t, "rules", "| Rule | It says |\n|---|---|\n"+says.String())
}
