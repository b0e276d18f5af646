package repotest_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redistest/need"
)

// TestRedlocktestInAFreshModule: the test file on redlocktest's page passes in a module that has nothing
// else, in less than two seconds, with a lock that is lost and one that is handed over.
func TestRedlocktestInAFreshModule(t *testing.T) {
	need.Full(t) // it builds the example
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := parser.ParseFile(token.NewFileSet(), "redlocktest/doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	code := indented(doc.Doc.Text(), "package ")
	for _, line := range []string{"nodes.Lose(", "nodes.Hold(", "other.Release("} {
		if !strings.Contains(code, line) {
			t.Errorf("the example does not call %s", line)
		}
	}
	dir := t.TempDir()
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go .*$`).FindString(string(mod))
	for name, text := range map[string]string{
		"go.mod":         fmt.Sprintf("module example.com/report\n\n%s\n\nrequire %s v0.0.0\n\nreplace %s => %s\n", version, module, module, root),
		"go.sum":         readFile(t, "go.sum"),
		"report_test.go": code,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The dependencies come from the cache: this test runs without a network.
	run := exec.CommandContext(t.Context(), "go", "test", "-count=1", ".")
	run.Dir = dir
	run.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := run.CombinedOutput()
	m := regexp.MustCompile(`(?m)^ok\s+example\.com/report\s+(\S+)$`).FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v: %v\n%s", run.Args, err, out)
	}
	took, err := time.ParseDuration(string(m[1]))
	if err != nil || took > 2*time.Second {
		t.Errorf("it took %s, of 2s: %v", m[1], err)
	}
	t.Logf("%v", took)
}

// indented returns the code block of a comment that begins with this text.
func indented(comment, with string) string {
	var code strings.Builder
	for line := range strings.Lines(comment) {
		text, in := strings.CutPrefix(line, "\t")
		switch {
		case in && (code.Len() > 0 || strings.HasPrefix(text, with)):
			code.WriteString(text)
		case code.Len() > 0 && strings.TrimSpace(line) == "":
			code.WriteString(line)
		case code.Len() > 0:
			return code.String()
		}
	}
	return code.String()
}
