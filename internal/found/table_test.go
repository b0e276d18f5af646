package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

var update = flag.Bool("update", false, "write the table of docs/found.md anew")

// The tests run in the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestRows: each row says what a reader of docs/found.md needs, and what show does.
func TestRows(t *testing.T) {
	name, commit := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`), regexp.MustCompile(`^[0-9a-f]{7,40}$`)
	seen := make(map[string]bool)
	shown := 0
	for _, b := range bugs {
		problem := func(format string, args ...any) { t.Errorf("%s: %s", b.Name, fmt.Sprintf(format, args...)) }
		if !name.MatchString(b.Name) || seen[b.Name] {
			problem("a name is words with hyphens, and used once")
		}
		seen[b.Name] = true
		for field, text := range map[string]string{"What": b.What, "Since": b.Since, "By": b.By, "Mend": b.Mend} {
			if text == "" || strings.ContainsAny(text, "|\n") {
				problem("%s is %q; a cell of a table has no line breaks and no |", field, text)
			}
		}
		if !commit.MatchString(b.Mend) {
			problem("Mend is %q, not a commit", b.Mend)
		}
		if (b.Run == "") == (b.Not == "") {
			problem("one of Run and Not says how it is shown, or why it cannot be")
		}
		if b.Run == "" {
			continue
		}
		shown++
		if !strings.HasPrefix(b.Run, "go test ") || test(b.Run) == "" {
			problem("Run is %q, not go test with -run", b.Run)
		}
		if _, err := regexp.Compile(b.failure()); err != nil {
			problem("Says: %v", err)
		}
		if len(b.Files) == 0 {
			problem("no Files have the test")
		}
		for _, path := range b.Files {
			if b.Kept {
				if _, err := b.file(t.Context(), path); err != nil {
					problem("%v", err)
				}
			}
		}
	}
	if shown < 12 {
		t.Errorf("%d bugs can be shown again", shown)
	}
}

// TestCommits: the commits of the rows are those of this history, and have the tests that show the bugs.
func TestCommits(t *testing.T) {
	history(t)
	hash := regexp.MustCompile(`^[0-9a-f]{7,40}\b`)
	for _, b := range bugs {
		if _, err := git(t.Context(), "merge-base", "--is-ancestor", b.Mend, "HEAD"); err != nil {
			t.Errorf("%s: Mend: %v", b.Name, err)
			continue
		}
		if since := hash.FindString(b.Since); since != "" {
			if _, err := git(t.Context(), "merge-base", "--is-ancestor", since, b.Mend+"^"); err != nil {
				t.Errorf("%s: Since is no commit before the mend: %v", b.Name, err)
			}
		}
		var code strings.Builder
		for _, path := range b.Files {
			text, err := b.file(t.Context(), path)
			if err != nil {
				t.Errorf("%s: %v", b.Name, err)
			}
			code.Write(text)
		}
		if b.Run == "" {
			continue
		}
		for name := range strings.SplitSeq(test(b.Run), "|") {
			name, _, _ = strings.Cut(name, "/")
			if !strings.Contains(code.String(), "func "+strings.Trim(name, "^$")+"(") {
				t.Errorf("%s: %q have no %s", b.Name, b.Files, name)
			}
		}
	}
}

// TestAgain shows the two bugs again that take the least, and in a long run all.
func TestAgain(t *testing.T) {
	need.Full(t)
	history(t)
	for _, b := range bugs {
		if b.Run == "" || !slices.Contains([]string{"marker-again", "tls-silence"}, b.Name) && need.Sized(true, true, false) {
			continue
		}
		t.Run(b.Name, func(t *testing.T) {
			if err := b.show(t.Context(), t.Output()); err != nil {
				t.Error(err)
			}
		})
	}
}

// history skips the test where the repository has no earlier commits.
func history(t *testing.T) {
	t.Helper()
	if shallow, err := git(t.Context(), "rev-parse", "--is-shallow-repository"); err != nil || strings.TrimSpace(string(shallow)) != "false" {
		need.Skip(t, "of earlier commits", "this copy of the repository has none")
	}
}

// TestDocument: docs/found.md has the table. With -update it is written anew.
func TestDocument(t *testing.T) {
	const doc, begin, end = "docs/found.md", "<!-- found: generated -->\n", "<!-- found: end -->\n"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no lines %q and %q", doc, begin, end)
	}
	want := before + begin + "\n" + table() + "\n" + end + after
	if *update {
		if err := os.WriteFile(doc, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Errorf("%s does not have the table of internal/found/bugs.go: go test ./internal/found -update writes it", doc)
	}
}

// table has a short row for each bug: the rest is in bugs.go, which make found NAME prints.
func table() string {
	var out strings.Builder
	out.WriteString("| Bug | What went wrong | Found by |\n|---|---|---|\n")
	for _, b := range bugs {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", b.Name, b.symptom(), b.finder())
	}
	return out.String()
}

// TestShow: a bug is shown where its test fails before the mend and passes with it, and nowhere else. It runs in a
// repository of three commits: a bug, a mend with its test, and a change.
func TestShow(t *testing.T) {
	need.Full(t)
	if _, err := exec.LookPath("git"); err != nil {
		need.Skip(t, "of earlier commits", err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	commit := func(files map[string]string) (hash string) {
		t.Helper()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "one"}} {
			if _, err := git(t.Context(), args...); err != nil {
				t.Fatal(err)
			}
		}
		out, err := git(t.Context(), "rev-parse", "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if _, err := git(t.Context(), "init", "-q"); err != nil {
		t.Fatal(err)
	}
	commit(map[string]string{"go.mod": "module example.com/a\n", "a.go": "package a\n\nfunc One() int { return 2 }\n"})
	mend := commit(map[string]string{
		"a.go":      "package a\n\nfunc One() int { return 1 }\n",
		"a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Error(One())\n\t}\n}\n\nfunc TestFine(*testing.T) {}\n",
	})
	later := commit(map[string]string{"b.go": "package a\n", "b_test.go": "package a\n\nimport \"testing\"\n\nfunc TestNew(t *testing.T) { t.Error(New()) }\n"})
	for _, c := range []struct{ mend, file, run, says, want string }{
		{mend, "a_test.go", "go test . -run TestOne", "", ""},
		{mend, "a_test.go", "go test . -run TestOne", "another failure", "it fails otherwise"},
		{mend, "a_test.go", "go test . -run TestFine", "", "it passes, but should fail"},
		{mend, "a_test.go", "go test . -run TestNone", "", "there is no such test"},
		{later, "b_test.go", "go test . -run TestNew", "", "it is not compiled"},
		{later, "c_test.go", "go test . -run TestNew", "", "c_test.go"},
	} {
		var out strings.Builder
		b := bug{Name: "one", What: "One is two.", Mend: c.mend, Files: []string{c.file}, Run: c.run, Says: c.says}
		err := b.show(t.Context(), &out)
		if c.want == "" && (err != nil || !strings.HasSuffix(out.String(), "\nshown: one\n")) {
			t.Errorf("%s: %v\n%s", c.run, err, out.String())
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(out.String(), "shown")) {
			t.Errorf("%s: %v, want %s\n%s", c.run, err, c.want, out.String())
		}
	}
}
