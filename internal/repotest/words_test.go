package repotest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// words has words that once meant several things in the core, and the types whose fields and methods may have them as their
// name, all in the one meaning that is said here. A word without types is not to be used at all.
var words = map[string]struct {
	meaning string
	types   []string
}{
	"told":   {"", nil},
	"handed": {"", nil},
	"silent": {"", nil},
	"heard":  {"", nil},
	"shown":  {"the marker that a node has shown", []string{"lane.Request"}},
	"mark":   {"a node's marker, as text", []string{"lane.Request", "lane.Before", "vote.Node", "wire.Reply"}},
	"kept":   {"what a node keeps of its set", []string{"wire.Witness", "wire.Mark", "wire.Chosen", "vote.Node", "vote.ForeignError", "lane.Before"}},
	"look":   {"the time between two looks at the clock", []string{"renew.Config"}},
}

// TestOneWordOneMeaning: a reader who has learned what a word means in one type of the core is right about it in the others.
func TestOneWordOneMeaning(t *testing.T) {
	for _, dir := range []string{".", "internal/lane", "internal/vote", "internal/set", "internal/wire", "internal/waitlist", "internal/renew"} {
		for _, path := range glob(t, filepath.Join(dir, "*.go")) {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			check := func(owner, name string) {
				w, listed := words[strings.ToLower(name)]
				if is := file.Name.Name + "." + owner; listed && !slices.Contains(w.types, is) {
					t.Errorf("%s: %s has %q, which is for %q alone: use another word, or list the type here", path, is, name, w.meaning)
				}
			}
			for _, d := range file.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Recv != nil {
						check(typeName(d.Recv.List[0].Type), d.Name.Name)
					}
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						ts, is := spec.(*ast.TypeSpec)
						if !is {
							continue
						}
						fields, is := ts.Type.(*ast.StructType)
						if !is {
							continue
						}
						for _, f := range fields.Fields.List {
							if len(f.Names) == 0 {
								check(ts.Name.Name, typeName(f.Type))
							}
							for _, name := range f.Names {
								check(ts.Name.Name, name.Name)
							}
						}
					}
				}
			}
		}
	}
}

// typeName is the name of a type, or of what a pointer leads to.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}
