package repotest_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadmeCommands: the README has the two commands that must work in a fresh clone. CI runs them as
// they stand there.
func TestReadmeCommands(t *testing.T) {
	commands := blocks(readFile(t, "README.md"), "sh")
	for _, want := range []string{
		`go run ./cmd/redlock run --embedded --key demo -- sh -c 'echo "holding $REDLOCK_KEY"'`,
		`make test`,
	} {
		if !slices.Contains(commands, want+"\n") {
			t.Errorf("README.md has no block with just\n\t%s", want)
		}
	}
}

// TestDocumentedCode builds every program and every file in the documents. A block that does not begin
// with a package clause is a fragment, and is not built.
func TestDocumentedCode(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// An overlay makes the go command see files that are not in the module's directories, so nothing
	// can be left behind.
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	temp := t.TempDir()
	packages := map[string][]string{} // of a module
	for _, doc := range append(glob(t, "docs/*.md"), "README.md") {
		for i, code := range blocks(readFile(t, doc), "go") {
			if !strings.HasPrefix(code, "package ") && !strings.Contains(code, "\npackage ") {
				continue
			}
			dir := fmt.Sprintf("%s.%d", strings.ReplaceAll(doc, "/", "."), i)
			source := filepath.Join(temp, dir+".go")
			if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			module := "."
			if strings.Contains(code, `"github.com/lib/pq"`) {
				module = "recipes" // has it
			}
			overlay.Replace[filepath.Join(root, module, "internal", dir, "code.go")] = source
			packages[module] = append(packages[module], "./internal/"+dir)
		}
	}
	if len(overlay.Replace) == 0 {
		t.Fatal("the documents have no code, not even the README")
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	for module, packages := range packages {
		// It compiles them, and does not link them.
		run := exec.CommandContext(t.Context(), "go", append([]string{"list", "-overlay", file, "-export", "-f", "{{.ImportPath}}"}, packages...)...)
		run.Dir = module
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", run.Args, err, out)
		}
	}
}

// TestDocumentedCronLines: whatever the documents have people put in a crontab or in a timer's service runs a
// job once, on one of many machines. It does not wait, or the machines would run the job one after another; it
// keeps the lock for a while, for machines that begin later; and it says nothing of another holder.
func TestDocumentedCronLines(t *testing.T) {
	crontab := regexp.MustCompile(`(?m)^ *(?:@\w+|(?:[\d*/,-]+ ){5}) *(.*redlock run.*)$`)
	service := regexp.MustCompile(`(?m)^ *ExecStart=(.*redlock run.*)$`)
	var lines int
	for _, doc := range append(documents(t), append(glob(t, "cmd/redlock/usage/*.txt"), "recipes/compose.yaml")...) {
		text := readFile(t, doc)
		for _, m := range append(crontab.FindAllStringSubmatch(text, -1), service.FindAllStringSubmatch(text, -1)...) {
			lines++
			flags, _, _ := strings.Cut(m[1], " -- ")
			for _, flag := range []string{" -n ", " --quiet-busy ", " --min-hold "} { // all of which --once is
				if !strings.Contains(flags, " --once ") && !strings.Contains(flags+" ", flag) {
					t.Errorf("%s has a line without%s:\n%s", doc, flag, m[0])
				}
			}
		}
	}
	if lines < 3 {
		t.Errorf("%d lines of a crontab or a service in the documents", lines)
	}
}

// TestDocumentedLinks follows the links from one document to another, and to the
// headings there.
func TestDocumentedLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, doc := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(prose(readFile(t, doc)), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := doc
			if path != "" {
				target = filepath.Join(filepath.Dir(doc), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s: %v", doc, m[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(readFile(t, target)), anchor) {
				t.Errorf("%s: %s: no such heading", doc, m[1])
			}
		}
	}
}

// TestDocumentedNames looks for the files and functions that the documents name.
func TestDocumentedNames(t *testing.T) {
	files, functions := map[string]bool{}, map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?(\w+)[(\[]`)
	walk(t, func(path string) {
		files[filepath.Base(path)], files[path] = true, true
		if strings.HasSuffix(path, ".go") {
			for _, m := range declared.FindAllStringSubmatch(readFile(t, path), -1) {
				functions[m[1]] = true
			}
		}
	})
	file := regexp.MustCompile("`([\\w/.]+\\.(?:go|lua|txt))`")
	function := regexp.MustCompile("`(\\w+)\\(\\)`")
	for _, doc := range glob(t, "docs/*.md") {
		text := prose(readFile(t, doc))
		for _, m := range file.FindAllStringSubmatch(text, -1) {
			if !files[m[1]] {
				t.Errorf("%s names %s, which is not there", doc, m[1])
			}
		}
		for _, m := range function.FindAllStringSubmatch(text, -1) {
			if !functions[m[1]] {
				t.Errorf("%s names %s(), which is not there", doc, m[1])
			}
		}
	}
}

// blocks returns the fenced blocks of one language.
func blocks(text, language string) []string {
	var found []string
	for _, part := range strings.Split("\n"+text, "\n```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(part, "\n```")
		found = append(found, code+"\n")
	}
	return found
}

// prose is a document without its fenced blocks.
func prose(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
}

// anchors returns the names of a document's headings in links.
func anchors(text string) []string {
	var found []string
	for line := range strings.Lines(prose(text)) {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			title = strings.ToLower(strings.TrimSpace(strings.TrimLeft(title, "#")))
			title = regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(title, "")
			found = append(found, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return found
}

func documents(t *testing.T) (docs []string) {
	walk(t, func(path string) {
		if strings.HasSuffix(path, ".md") {
			docs = append(docs, path)
		}
	})
	return docs
}

// walk calls f with the files of the tree, except hidden ones.
func walk(t *testing.T, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir():
			f(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
