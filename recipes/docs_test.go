package recipes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedRecipes: docs/safety.md quotes every file here, from its imports on.
func TestDocumentedRecipes(t *testing.T) {
	text, err := os.ReadFile("../docs/safety.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Fencing tokens\n")
	if !ok {
		t.Fatal("docs/safety.md has no section on fencing tokens")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)\n```go\n(.*?)```\n").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	head := regexp.MustCompile(`(?s)^.*?package recipes\n(\nimport (\(.*?\n\)|"[^"]*")\n)?\n`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code := head.ReplaceAllString(string(source), "")
		i := slices.Index(blocks, code)
		if i < 0 {
			t.Errorf("no block of docs/safety.md is what %s has after its imports:\n%s", file, code)
			continue
		}
		blocks = slices.Delete(blocks, i, i+1)
	}
	for _, block := range blocks {
		t.Errorf("docs/safety.md has a block that is no file's:\n%s", block)
	}
}
