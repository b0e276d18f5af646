package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentedRecipes: docs/safety.md, docs/once.md or docs/kinds.md has a link to every file here.
func TestDocumentedRecipes(t *testing.T) {
	var pages strings.Builder
	for _, page := range []string{"safety.md", "once.md", "kinds.md"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(text)
	}
	var files []string
	for _, pattern := range []string{"*.go", "*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "recipes.go" { // which has no code
			continue
		}
		if !strings.Contains(pages.String(), "(../recipes/"+file+")") {
			t.Errorf("no page has a link to %s", file)
		}
	}
}
