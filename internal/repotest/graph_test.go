package repotest_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
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
)

// A fileGraph has the dependencies between the files of one package, without tests: which file uses
// declarations of which other file. Files that all reach each other that way are a knot.
type fileGraph struct {
	Package string
	Files   []string            // by name
	Edges   map[string][]string // file → the files whose declarations it uses
}

// loadGraphs makes the graphs of packages, which are named as for the go command. It reads the
// declarations of the module's packages from their source, and function bodies only of the named packages.
// For all other packages it uses the compiler's export data.
func loadGraphs(packages ...string) ([]fileGraph, error) {
	l := loader{fset: token.NewFileSet(), listed: make(map[string]*listedPackage), checked: make(map[string]*types.Package)}
	all, err := l.list(append([]string{"-deps"}, packages...)...)
	if err != nil {
		return nil, err
	}
	var outside []string
	for _, p := range all {
		if p.Module == nil || !p.Module.Main {
			outside = append(outside, p.ImportPath)
		}
	}
	compiled, err := l.list(append([]string{"-export"}, outside...)...)
	if err != nil {
		return nil, err
	}
	for _, p := range append(all, compiled...) {
		l.listed[p.ImportPath] = p
	}
	l.compiled = importer.ForCompiler(l.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(l.listed[path].Export) })
	var graphs []fileGraph
	for _, p := range all {
		if p.DepOnly {
			continue
		}
		g, err := l.graph(p)
		if err != nil {
			return nil, err
		}
		graphs = append(graphs, g)
	}
	return graphs, nil
}

// A listedPackage is the go command's description of a package.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
	Module                  *struct{ Main bool }
}

// A loader type-checks packages.
type loader struct {
	fset     *token.FileSet
	listed   map[string]*listedPackage
	checked  map[string]*types.Package
	compiled types.Importer
}

func (l *loader) list(args ...string) (all []*listedPackage, err error) {
	list := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,GoFiles,Export,DepOnly,Module"}, args...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("knots: go list: %w", err)
	}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listedPackage)
		if err := in.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("knots: go list: %w", err)
		}
		all = append(all, p)
	}
}

// Import loads a package that another one imports.
func (l *loader) Import(path string) (*types.Package, error) {
	p := l.listed[path]
	if p == nil || p.Module == nil || !p.Module.Main {
		return l.compiled.Import(path)
	}
	if pkg := l.checked[path]; pkg != nil {
		return pkg, nil
	}
	pkg, err := l.check(p, nil)
	l.checked[path] = pkg
	return pkg, err
}

// check type-checks a package, with its function bodies if a graph of it is wanted.
func (l *loader) check(p *listedPackage, info *types.Info) (*types.Package, error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(l.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("knots: %w", err)
		}
		files = append(files, f)
	}
	pkg, err := (&types.Config{Importer: l, IgnoreFuncBodies: info == nil}).Check(p.ImportPath, l.fset, files, info)
	if err != nil {
		return nil, fmt.Errorf("knots: %w", err)
	}
	return pkg, nil
}

// graph records each use of a declaration in another file of the package.
func (l *loader) graph(p *listedPackage) (fileGraph, error) {
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	pkg, err := l.check(p, &info)
	if err != nil {
		return fileGraph{}, err
	}
	file := func(pos token.Pos) string { return filepath.Base(l.fset.Position(pos).Filename) }
	uses := make(map[string]map[string]bool)
	for ident, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		if from, to := file(ident.Pos()), file(object.Pos()); from != to {
			if uses[from] == nil {
				uses[from] = make(map[string]bool)
			}
			uses[from][to] = true
		}
	}
	g := fileGraph{Package: p.ImportPath, Files: p.GoFiles, Edges: make(map[string][]string)}
	for from, to := range uses {
		g.Edges[from] = slices.Sorted(maps.Keys(to))
	}
	return g, nil
}

// knots gives the sets of files that all reach each other (the strongly connected
// components of more than one file), the largest first.
func (g fileGraph) knots() [][]string {
	t := tarjan{graph: g, number: make(map[string]int), low: make(map[string]int), open: make(map[string]bool)}
	for _, file := range g.Files {
		if t.number[file] == 0 {
			t.visit(file)
		}
	}
	slices.SortStableFunc(t.knots, func(a, b []string) int { return cmp.Compare(len(b), len(a)) })
	return t.knots
}

// largest is the size of the largest knot: 1 if no two files reach each other.
func (g fileGraph) largest() int {
	if knots := g.knots(); len(knots) > 0 {
		return len(knots[0])
	}
	return 1
}

// A tarjan is a run of Tarjan's algorithm for strongly connected components.
type tarjan struct {
	graph       fileGraph
	number, low map[string]int
	open        map[string]bool
	stack       []string
	knots       [][]string
}

func (t *tarjan) visit(file string) {
	t.number[file] = len(t.number) + 1
	t.low[file] = t.number[file]
	t.stack, t.open[file] = append(t.stack, file), true
	for _, next := range t.graph.Edges[file] {
		if t.number[next] == 0 {
			t.visit(next)
			t.low[file] = min(t.low[file], t.low[next])
		} else if t.open[next] {
			t.low[file] = min(t.low[file], t.number[next])
		}
	}
	if t.low[file] != t.number[file] {
		return
	}
	from := slices.Index(t.stack, file)
	knot := slices.Clone(t.stack[from:])
	t.stack = t.stack[:from]
	for _, f := range knot {
		t.open[f] = false
	}
	if len(knot) > 1 {
		slices.Sort(knot)
		t.knots = append(t.knots, knot)
	}
}
