package repotest_test

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// allowed has the sizes of the largest knots that may exist: files that all reach each other can only be
// read together. A number goes down when a package is split, and never up. A package without a line here
// may have a knot of the usual size.
var allowed = map[string]int{
	".": 6,
}

const usual = 6

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
	all, err := loadGraphs(".", "./cmd/...", "./chaos/...", "./internal/...")
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

// sharedByMain are the files of the command that main.go uses and that are no verbs.
var sharedByMain = []string{"console.go", "messages.go", "version.go"}

// TestVerbsKnowNoOther: a file of one of the command's verbs uses no file of another verb.
func TestVerbsKnowNoOther(t *testing.T) {
	g := graphs(t)["cmd/redlock"]
	if n := len(verbs(g)); n < 10 {
		t.Errorf("main.go has only %d verbs", n)
	}
	for _, wrong := range betweenVerbs(g) {
		t.Error(wrong)
	}
}

// verbs are the names of the verbs: of the files that main.go uses, less those that are shared.
func verbs(g fileGraph) (names []string) {
	for _, file := range g.Edges["main.go"] {
		if !slices.Contains(sharedByMain, file) {
			names = append(names, strings.TrimSuffix(file, ".go"))
		}
	}
	return names
}

// betweenVerbs are the uses that must not be: of a verb's files, which are NAME.go and
// NAME_more.go, by any other file but main.go, and of main.go by any file.
func betweenVerbs(g fileGraph) (wrong []string) {
	all := verbs(g)
	verb := func(file string) string {
		name, _, _ := strings.Cut(strings.TrimSuffix(file, ".go"), "_")
		if slices.Contains(all, name) {
			return name
		}
		return ""
	}
	for _, from := range slices.Sorted(maps.Keys(g.Edges)) {
		for _, to := range g.Edges[from] {
			if from != "main.go" && (to == "main.go" || verb(to) != "" && verb(to) != verb(from)) {
				wrong = append(wrong, fmt.Sprintf("%s uses %s", from, to))
			}
		}
	}
	return wrong
}

// TestBetweenVerbs: the rule notices what it is there for.
func TestBetweenVerbs(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"run.go", "run_how.go", ""},
		{"run.go", "lock.go", ""},
		{"elect.go", "run.go", "elect.go uses run.go"},
		{"elect.go", "run_how.go", "elect.go uses run_how.go"},
		{"lock.go", "run.go", "lock.go uses run.go"},
		{"run.go", "main.go", "run.go uses main.go"},
	} {
		g := fileGraph{Edges: map[string][]string{"main.go": {"console.go", "elect.go", "run.go"}, c.from: {"console.go", c.to}}}
		if got := strings.Join(betweenVerbs(g), "; "); got != c.want {
			t.Errorf("%s uses %s: %q", c.from, c.to, got)
		}
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
