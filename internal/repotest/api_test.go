package repotest_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/golden"
)

var update = flag.Bool("update", false, "write docs/api and docs/life.svg anew")

// TestAPI: docs/api lists every exported declaration, so that a change of the interface shows in the diff.
// With -update it is written anew.
func TestAPI(t *testing.T) {
	for dir, file := range map[string]string{
		".": "redlock.txt", "chaos": "chaos.txt", "chaos/history": "history.txt", "fence": "fence.txt", "redlocktrace": "redlocktrace.txt", "redlocktest": "redlocktest.txt",
		"adapters/certmagic": "certmagic.txt", "adapters/gocron": "gocron.txt", "adapters/grpc": "grpc.txt", "adapters/otel": "otel.txt",
	} {
		golden.Lines(t, filepath.Join("docs", "api", file), exported(t, dir), *update)
		if t.Failed() {
			t.Log("go test ./internal/repotest -run TestAPI -update writes it anew")
		}
	}
}

// exported lists a package's exported declarations, without bodies and comments.
func exported(t *testing.T, dir string) string {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var decls []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !ast.FileExports(file) {
			continue
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				if fn.Recv != nil && !ast.IsExported(strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*")) {
					continue
				}
				fn.Body = nil
			}
			var text bytes.Buffer
			if err := (&printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}).Fprint(&text, fset, decl); err != nil {
				t.Fatal(err)
			}
			decls = append(decls, text.String())
		}
	}
	slices.Sort(decls)
	return strings.Join(decls, "\n\n") + "\n"
}
