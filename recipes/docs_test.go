package recipes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedRecipes: docs/safety.md and docs/once.md quote every file here, from its imports on, or have a link to it.
func TestDocumentedRecipes(t *testing.T) {
	safety, err := os.ReadFile("../docs/safety.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(safety), "\n## Fencing tokens\n")
	if !ok {
		t.Fatal("docs/safety.md has no section on fencing tokens")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	once, err := os.ReadFile("../docs/once.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)\n```go\n(.*?)```\n").FindAllStringSubmatch(section+string(once), -1) {
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
			if !strings.Contains(section+string(once), "(../recipes/"+file+")") {
				t.Errorf("docs/safety.md and docs/once.md have no link to %s, and no block is what it has after its imports:\n%s", file, code)
			}
			continue
		}
		blocks = slices.Delete(blocks, i, i+1)
	}
	for _, block := range blocks {
		t.Errorf("docs/safety.md or docs/once.md has a block that is no file's:\n%s", block)
	}
}
