package repotest_test

import (
	"cmp"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// allowed has the sizes of the largest knots that may exist: files that all reach each other can only be
// read together. A number goes down when a package is split, and never up. A package without a line here
// may have a knot of the usual size.
var allowed = map[string]int{
	".":                                 5, // Options have Hooks, which are given a Lock, which has a Locker, which has Options
	"chaos/internal/client":             6,
	"chaos/internal/realarena":          5,
	"chaos/internal/report":             5,
	"chaos/internal/scenario":           6,
	"cmd/redlock/internal/verb/operate": 6,
	"cmd/redlock/internal/verb/trial":   5,
}

const usual = 4

// graphs are those of the packages of the module, by their directories.
func graphs(t *testing.T) map[string]fileGraph {
	t.Helper()
	need.Full(t) // it checks the types of the whole module
	all, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var loaded = sync.OnceValues(func() (map[string]fileGraph, error) {
	all, err := loadGraphs(".", "./cmd/...", "./chaos/...", "./fence", "./internal/...")
	byDir := make(map[string]fileGraph)
	for _, g := range all {
		byDir[cmp.Or(strings.TrimPrefix(strings.TrimPrefix(g.Package, module), "/"), ".")] = g
	}
	return byDir, err
})

func TestKnots(t *testing.T) {
	for dir, g := range graphs(t) {
		most, ok := allowed[dir]
		if !ok {
			most = usual
		}
		switch n := g.largest(); {
		case n > most:
			t.Errorf("%s has a knot of %d files, and %d are allowed: %v", dir, n, most, g.knots()[0])
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
	g := fileGraph{
		Files: []string{"a", "b", "c", "d", "e", "f"},
		Edges: map[string][]string{"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d", "f"}},
	}
	if got, want := g.knots(), [][]string{{"a", "b", "c"}, {"d", "e"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := (fileGraph{Files: []string{"a"}}).largest(); n != 1 {
		t.Errorf("one file is a knot of %d", n)
	}
}
