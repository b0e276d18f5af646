package repotest_test

import (
	"regexp"
	"strings"
	"testing"
)

// mostIdeas is how many ideas the protocol may have: one engineer has to hold all of them in the head.
const mostIdeas = 36

// TestIdeas: docs/design.md has a table of the protocol's ideas, one in a line, and each line names what carries it: names
// that are declared in the files which it gives.
func TestIdeas(t *testing.T) {
	_, section, _ := strings.Cut(readFile(t, "docs/design.md"), "\n## The ideas\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	if len(rows) < 3 || len(rows)-2 > mostIdeas {
		t.Fatalf("%d lines, of which two are the table's head: wanted are 1 to %d ideas", len(rows), mostIdeas)
	}
	place := regexp.MustCompile("((?:`\\w+`, )*`\\w+`) in `([\\w/.]+)`")
	for _, row := range rows[2:] {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		if len(cells) != 3 {
			t.Errorf("%d cells: %s", len(cells), row)
			continue
		}
		places := place.FindAllStringSubmatch(cells[2], -1)
		if rest := place.ReplaceAllString(cells[2], ""); len(places) == 0 || strings.Trim(rest, ", ") != "" {
			t.Errorf("it does not say which names in which files: %s", row)
		}
		for _, p := range places {
			source := readFile(t, p[2])
			for _, name := range strings.Split(p[1], ", ") {
				name = strings.Trim(name, "`")
				if !regexp.MustCompile(`(?m)^\s*(func (\(\w+ \*?\w+\) )?|type |const |var |local function |)` + name + `\b( string|\(| struct| =|,|$)`).MatchString(source) {
					t.Errorf("%s declares no %s: %s", p[2], name, row)
				}
			}
		}
	}
}
