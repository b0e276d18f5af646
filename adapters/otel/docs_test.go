package otelredlock_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestReadmeCode builds the programs in README.md, each in a directory of this module
// that only the go command sees.
func TestReadmeCode(t *testing.T) {
	need.Unraced(t)
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	temp := t.TempDir()
	args := []string{"build", "-o", os.DevNull, "-overlay", filepath.Join(temp, "overlay.json")}
	for i, m := range regexp.MustCompile("(?s)\n```go\n(.*?)```\n").FindAllStringSubmatch(readme(t), -1) {
		source := filepath.Join(temp, strconv.Itoa(i)+".go")
		if err := os.WriteFile(source, []byte(m[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		dir := "README." + strconv.Itoa(i)
		overlay.Replace[filepath.Join(root, dir, "main.go")] = source
		args = append(args, "./"+dir)
	}
	if len(overlay.Replace) == 0 {
		t.Fatal("README.md has no code")
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(temp, "overlay.json"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "go", args...)
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", run.Args, err, out)
	}
}

// TestReadmeMetrics: the table has the metrics that there are, with their labels.
func TestReadmeMetrics(t *testing.T) {
	exposed := exposition(t)
	rows := regexp.MustCompile("(?m)^\\| `([\\w.]+)` \\| `(\\w+)` \\|").FindAllStringSubmatch(readme(t), -1)
	for _, row := range rows {
		if exposed[row[2]] == nil && exposed[row[2]+"_bucket"] == nil {
			t.Errorf("README.md: there is no metric %s", row[2])
		}
		if !strings.HasPrefix(row[2], strings.ReplaceAll(row[1], ".", "_")) {
			t.Errorf("README.md: %s is no %s", row[2], row[1])
		}
	}
	if len(rows) != 15 {
		t.Errorf("README.md has %d metrics", len(rows))
	}
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
