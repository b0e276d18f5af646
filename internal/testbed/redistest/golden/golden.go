// Package golden compares what a program says with a file in which all of it can be read.
package golden

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Compare fails the test at the first line in which the file is not as got. With update it writes the
// file first. The command is the one that does so.
func Compare(t *testing.T, file, got string, update bool, command string) {
	t.Helper()
	want, is := strings.Split(read(t, file, got, update), "\n"), strings.Split(got, "\n")
	for i := range max(len(want), len(is)) {
		if i >= len(want) || i >= len(is) || want[i] != is[i] {
			t.Fatalf("%s:%d differs; %s writes it anew\n got %s\nwant %s", file, i+1, command, strings.Join(is[min(i, len(is)):min(i+3, len(is))], "\n     "), strings.Join(want[min(i, len(want)):min(i+3, len(want))], "\n     "))
		}
	}
}

// Lines reports each line of the file that got does not have, and the other way round, as an error of the
// test, and whether there was none and the lines are in the same order, too. With update it writes the file
// first.
func Lines(t *testing.T, file, got string, update bool) (same bool) {
	t.Helper()
	want := read(t, file, got, update)
	was, is := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range was {
		if !slices.Contains(is, line) {
			t.Errorf("%s: gone or changed: %s", file, line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			t.Errorf("%s: new: %s", file, line)
		}
	}
	return want == got
}

func read(t *testing.T, file, got string, update bool) string {
	t.Helper()
	if update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Section is the section of the file that begins with this heading, "## HEADING", up to the next one, and the whole file.
func Section(t *testing.T, file, heading string) (section, whole string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole = string(text)
	begin := strings.Index(whole, "\n## "+heading+"\n")
	if begin < 0 {
		t.Fatalf("%s has no section %q", file, heading)
	}
	if next := strings.Index(whole[begin+1:], "\n## "); next >= 0 {
		return whole[begin : begin+1+next], whole
	}
	return whole[begin:], whole
}

// EachSource calls f for each source in these directories that is no test.
func EachSource(t *testing.T, dirs []string, f func(name string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			f(name, fset, file)
		}
	}
}

// Called is the name of the function that is called, without its package.
func Called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
