package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostInAKnot is how many files may refer to each other in a circle.
const mostInAKnot = 6

// TestVerbsKnowNoOther: the file of a verb refers to no file of another verb, nor to the
// table of them in main.go, and what verbs share refers to none of them.
func TestVerbsKnowNoOther(t *testing.T) {
	g := thisPackage(t)
	if len(g.verbs) < 10 {
		t.Errorf("the table has only %v", g.verbs)
	}
	for _, wrong := range g.wrong() {
		t.Error(wrong)
	}
	for file := range g.edges {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")); lines > 320 {
			t.Errorf("%s has %d lines: cut it along its ideas", file, lines)
		}
	}
}

// TestWrongEdges: the rules notice what they are there for.
func TestWrongEdges(t *testing.T) {
	table := "func verbs() []any { return []any{(*command).run, (*command).elect} }"
	sources := map[string]string{
		"main.go":    table,
		"console.go": "type command struct{}",
		"run.go":     "func (c *command) run() { shared() }",
		"run_how.go": "func how() {}",
		"elect.go":   "func (c *command) elect() { shared() }",
		"shared.go":  "func shared() {}",
	}
	for _, c := range []struct{ name, file, text, want string }{
		{"as it should be", "run.go", "func (c *command) run() { shared(); how() }", ""},
		{"another verb", "elect.go", "func (c *command) elect() { c.run() }", "elect.go refers to run in run.go"},
		{"a part of another verb", "elect.go", "func (c *command) elect() { how() }", "elect.go refers to how in run_how.go"},
		{"a verb that is shared", "shared.go", "func shared() { new(command).run() }", "shared.go refers to run in run.go"},
		{"the table", "run.go", "func (c *command) run() { verbs() }", "run.go refers to verbs in main.go"},
	} {
		edited := make(map[string]string)
		for file, text := range sources {
			edited[file] = "package main\n" + text
		}
		edited[c.file] = "package main\n" + c.text
		if got := strings.Join(graphOf(t, edited, nil).wrong(), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	ring := map[string]string{"main.go": "package main\nfunc verbs() {}"}
	for i := range mostInAKnot + 1 {
		ring[fmt.Sprintf("f%d.go", i)] = fmt.Sprintf("package main\nfunc f%d() { f%d() }", i, (i+1)%(mostInAKnot+1))
	}
	if got := graphOf(t, ring, nil).wrong(); len(got) != 1 || !strings.HasPrefix(got[0], "7 files are one knot: f0.go") {
		t.Errorf("a ring: %q", got)
	}
}

// A graph is which file refers to what in which other.
type graph struct {
	edges map[string]map[string]string // by file and the other file: the name
	verbs []string                     // the files that the table of verbs refers to
}

// thisPackage is the command's, without its tests.
func thisPackage(t *testing.T) *graph {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", `{{.ImportPath}} {{.Export}} {{.GoFiles}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	exports, files := make(map[string]string), ""
	for line := range strings.Lines(string(out)) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		exports[words[0]], files = words[1], words[2] // the last is the package itself
	}
	sources := make(map[string]string)
	for file := range strings.FieldsSeq(strings.Trim(files, "[]")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources[file] = string(text)
	}
	return graphOf(t, sources, func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}

func graphOf(t *testing.T, sources map[string]string, exports importer.Lookup) *graph {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for name, text := range sources {
		file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", exports)}
	pkg, err := config.Check("main", fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	g := &graph{edges: make(map[string]map[string]string)}
	in := func(at token.Pos) string { return filepath.Base(fset.Position(at).Filename) }
	for name := range sources {
		g.edges[name] = make(map[string]string)
	}
	table := pkg.Scope().Lookup("verbs").(*types.Func).Scope()
	for use, obj := range info.Uses {
		if obj.Pkg() != pkg {
			continue
		}
		from, to := in(use.Pos()), in(obj.Pos())
		if from != to {
			g.edges[from][to] = obj.Name()
		}
		method, ok := obj.(*types.Func)
		if ok && table.Contains(use.Pos()) && method.Signature().Recv() != nil && from != to && !slices.Contains(g.verbs, to) {
			g.verbs = append(g.verbs, to)
		}
	}
	slices.Sort(g.verbs)
	return g
}

// verb is the verb that a file is of, which has files NAME.go and NAME_more.go; "": none.
func (g *graph) verb(file string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(file, ".go"), "_")
	if slices.Contains(g.verbs, name+".go") {
		return name
	}
	return ""
}

// wrong says what must not be.
func (g *graph) wrong() (all []string) {
	for from, edges := range g.edges {
		for to, name := range edges {
			if from != "main.go" && (to == "main.go" || g.verb(to) != "" && g.verb(to) != g.verb(from)) {
				all = append(all, fmt.Sprintf("%s refers to %s in %s", from, name, to))
			}
		}
	}
	seen := make(map[string]bool)
	for _, file := range slices.Sorted(maps.Keys(g.edges)) {
		if seen[file] {
			continue
		}
		var knot []string
		for other := range g.edges {
			if other == file || g.reaches(file, other) && g.reaches(other, file) {
				knot, seen[other] = append(knot, other), true
			}
		}
		if len(knot) > mostInAKnot {
			slices.Sort(knot)
			all = append(all, fmt.Sprintf("%d files are one knot: %s", len(knot), strings.Join(knot, ", ")))
		}
	}
	slices.Sort(all)
	return all
}

// reaches reports whether one file refers to another, itself or through others.
func (g *graph) reaches(from, to string) bool {
	seen, next := make(map[string]bool), []string{from}
	for len(next) > 0 {
		file := next[0]
		next = next[1:]
		for other := range g.edges[file] {
			if other == to {
				return true
			}
			if !seen[other] {
				seen[other] = true
				next = append(next, other)
			}
		}
	}
	return false
}
