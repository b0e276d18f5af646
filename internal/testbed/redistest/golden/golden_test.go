package golden_test

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/golden"
)

const want = "a\nb\nc\n"

// child is the environment variable with what a child process of this test compares. A helper that fails its test needs
// one that may fail.
const child = "GOLDEN_CHILD"

// write makes a file, and gives its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInChild is what the other tests run in a child: by itself it does nothing.
func TestInChild(t *testing.T) {
	how, text, is := strings.Cut(os.Getenv(child), " ")
	if !is {
		return
	}
	file := write(t, "golden", want)
	switch how {
	case "compare":
		golden.Compare(t, file, text, false, "make golden")
	case "lines":
		golden.Lines(t, file, text, false)
	}
}

// fails runs a comparison in a child, and gives what the child says; "": its test has passed.
func fails(t *testing.T, how, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInChild$")
	cmd.Env = append(os.Environ(), child+"="+how+" "+text)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	return string(out)
}

// TestComparisonsFail: Compare fails at the first line that differs and says how to write the file anew. Lines names each line
// that is only on one side, and takes no offence at the order.
func TestComparisonsFail(t *testing.T) {
	for _, tt := range []struct {
		how, text string
		says      []string // none: it passes
		not       string
	}{
		{"compare", want, nil, ""},
		{"compare", "a\nx\ny\n", []string{"golden:2 differs", "make golden", "x", "b"}, "golden:3"},
		{"compare", "a\nb\n", []string{"golden:3 differs"}, ""},
		{"compare", want + "d\n", []string{"golden:4 differs"}, ""},
		{"lines", want, nil, ""},
		{"lines", "c\nb\na\n", nil, ""},
		{"lines", "a\nc\nd\n", []string{"gone or changed: b", "new: d"}, ": a"},
	} {
		said := fails(t, tt.how, tt.text)
		if (said == "") != (tt.says == nil) || tt.not != "" && strings.Contains(said, tt.not+"\n") {
			t.Errorf("%s of %q says %q", tt.how, tt.text, said)
		}
		for _, s := range tt.says {
			if !strings.Contains(said, s) {
				t.Errorf("%s of %q does not say %q: %s", tt.how, tt.text, s, said)
			}
		}
	}
}

// TestUpdateWritesTheFile: with update the file has what the program says, and the comparison passes.
func TestUpdateWritesTheFile(t *testing.T) {
	for name, compare := range map[string]func(file string) bool{
		"Compare": func(file string) bool { golden.Compare(t, file, "new\n", true, ""); return true },
		"Lines":   func(file string) bool { return golden.Lines(t, file, "new\n", true) },
	} {
		file := write(t, "golden", want)
		same := compare(file)
		if text, err := os.ReadFile(file); string(text) != "new\n" || !same {
			t.Errorf("%s has written %q, %v; same %v", name, text, err, same)
		}
	}
}

// TestLinesTellsTheOrder: the same lines in another order are no failure, and not the same text.
func TestLinesTellsTheOrder(t *testing.T) {
	file := write(t, "golden", want)
	if !golden.Lines(t, file, want, false) || golden.Lines(t, file, "c\nb\na\n", false) {
		t.Error("the result is not whether both are the same")
	}
}

// TestEachSource: f sees the sources in the directories, without tests, and Called names what a call calls.
func TestEachSource(t *testing.T) {
	dir := filepath.Dir(write(t, "a.go", "package a\nfunc f() { g(); fmt.Errorf(\"x\"); func() {}() }\n"))
	for name, text := range map[string]string{"a_test.go": "package a\n", "b.txt": "no Go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var files, calls []string
	golden.EachSource(t, []string{dir}, func(name string, fset *token.FileSet, file *ast.File) {
		files = append(files, filepath.Base(name)+" "+file.Name.Name)
		ast.Inspect(file, func(n ast.Node) bool {
			if c, is := n.(*ast.CallExpr); is {
				calls = append(calls, golden.Called(c))
			}
			return true
		})
	})
	if got := strings.Join(files, ", "); got != "a.go a" {
		t.Errorf("the sources are %q", got)
	}
	if got := strings.Join(calls, ", "); got != "g, Errorf, " {
		t.Errorf("called are %q", got)
	}
}
