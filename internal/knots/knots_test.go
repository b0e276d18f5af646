package knots

import (
	"reflect"
	"strings"
	"testing"
)

// allowed are the largest knots that there may be: files that all reach each other can only
// be read together. A number goes down when a package is cut, and never up. A package that
// has no line here may have a knot of usual files.
var allowed = map[string]int{
	".": 6,
}

const usual = 6

func TestKnots(t *testing.T) {
	const module = "github.com/quorumlock/redlock"
	graphs, err := Load("../..", ".", "./cmd/redlock", "./chaos/...", "./internal/...")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range graphs {
		dir := strings.TrimPrefix(strings.TrimPrefix(g.Package, module), "/")
		if dir == "" {
			dir = "."
		}
		most, ok := allowed[dir]
		if !ok {
			most = usual
		}
		switch n := g.Largest(); {
		case n > most:
			t.Errorf("%s has a knot of %d files, and %d are allowed: %v", dir, n, most, g.Knots()[0])
		case ok && n < most:
			t.Logf("%s has no knot of more than %d files: its line here may say so", dir, n)
		}
		delete(allowed, dir)
	}
	for dir := range allowed {
		t.Errorf("there is no package %s", dir)
	}
}

// TestKnotsAreFound: two knots, one that leads to the other, and a file that is in none.
func TestKnotsAreFound(t *testing.T) {
	g := Graph{
		Files: []string{"a", "b", "c", "d", "e", "f"},
		Edges: map[string][]string{"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d", "f"}},
	}
	if got, want := g.Knots(), [][]string{{"a", "b", "c"}, {"d", "e"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := (Graph{Files: []string{"a"}}).Largest(); n != 1 {
		t.Errorf("one file is a knot of %d", n)
	}
}
