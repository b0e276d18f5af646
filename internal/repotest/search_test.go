package repotest_test

import (
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// questions are what people type when they search for a library like this one. Each has a page or a section.
var questions = []struct {
	typed string
	here  string // words that the README and the package comment must have on the way to it
	doc   string // the page
	in    string // its heading there: the section has the answer
}{
	{"Redlock Go", "Redlock", "README.md", "# redlock"},
	{"distributed lock Redis Go", "distributed lock", "README.md", "# redlock"},
	{"distributed lock Redis fencing token", "fencing token", "docs/safety.md", "## Fencing tokens"},
	{"redsync alternative", "redsync alternative", "docs/from-redsync.md", "# From redsync"},
	{"leader election Redis Go", "leader election", "docs/kinds.md", "## Leader election"},
	{"distributed semaphore Redis", "distributed semaphore", "docs/kinds.md", "## Distributed semaphore"},
	{"reentrant lock", "reentrant lock", "docs/kinds.md", "## Reentrant lock"},
	{"read-write lock", "read-write lock", "docs/kinds.md", "## Read-write lock"},
	{"hierarchical lock", "hierarchical lock", "docs/kinds.md", "## Hierarchical lock"},
}

// TestSearchWords: each question has a section whose heading and first paragraph have all its words, to which
// the README links from a line with the words that matter; and the package comment has these, too.
func TestSearchWords(t *testing.T) {
	readme := readFile(t, "README.md")
	file, err := parser.ParseFile(token.NewFileSet(), "redlock.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	comment := file.Doc.Text()
	for _, q := range questions {
		_, answer, found := strings.Cut("\n"+readFile(t, q.doc), "\n"+q.in+"\n")
		if !found {
			t.Errorf("%q: %s has no heading %q", q.typed, q.doc, q.in)
			continue
		}
		first, _, _ := strings.Cut(strings.TrimSpace(answer), "\n\n")
		for _, word := range strings.Fields(q.typed) {
			if !contains(q.in+" "+first, word) {
				t.Errorf("%q: the heading and the first paragraph of %q in %s do not have %q", q.typed, q.in, q.doc, word)
			}
		}
		if !contains(comment, q.here) {
			t.Errorf("%q: the package comment does not have %q", q.typed, q.here)
		}
		if q.doc == "README.md" {
			continue
		}
		link := "(" + q.doc
		if strings.HasPrefix(q.in, "## ") {
			link += "#" + anchors(q.in)[0]
		}
		if !slices.ContainsFunc(strings.Split(readme, "\n"), func(line string) bool {
			return strings.Contains(line, link+")") && contains(line, q.here)
		}) {
			t.Errorf("%q: the README has no line with %q and a link to %s", q.typed, q.here, link)
		}
	}
}

// TestPackageComment: it begins with what the README begins with, and shows the same code.
func TestPackageComment(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "redlock.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	begins, _, found := strings.Cut(file.Doc.Text(), "# What it promises")
	if !found {
		t.Fatal("the package comment does not say what it promises")
	}
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	readme := words(readFile(t, "README.md"))
	for _, part := range strings.Split(begins, "\n\n") {
		part = strings.TrimPrefix(words(part), "Package redlock is ")
		if part = strings.TrimSuffix(part, ":"); !strings.Contains(readme, part) {
			t.Errorf("the README does not have this of the package comment: %s", part)
		}
	}
}

// contains says whether a text has these words in a row, in any case of letters and over line breaks; the
// last one may be a plural.
func contains(text, words string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(words), " ", `\s+`)
	return regexp.MustCompile(`(?i)\b` + pattern + `s?\b`).MatchString(text)
}
