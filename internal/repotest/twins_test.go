package repotest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// twinsFiles say, for each claim of a document, which tests and schedules show it. The first one has the format.
var twinsFiles = []struct {
	name, doc string
	mark      string // what the bullets with claims begin with
	least     int    // headings that have claims
}{
	{"internal/repotest/testdata/twins.txt", "docs/safety.md", "- **redlock:** ", 20},
	{"internal/repotest/testdata/twins-security.txt", "SECURITY.md", "- ", 4},
}

// TestTwins: a file of twinsFiles has each claim of its document, and all that it names to show a claim exists.
func TestTwins(t *testing.T) {
	exists := twins(t)
	for _, file := range twinsFiles {
		t.Run(file.doc, func(t *testing.T) {
			says := bullets(readFile(t, file.doc), file.mark)
			if len(says) < file.least {
				t.Fatalf("only %d headings of %s have claims", len(says), file.doc)
			}
			claims := make(map[string][]string) // by heading
			heading, shown := "", true
			end := func(at int) {
				if !shown {
					t.Errorf("%s:%d: nothing shows the claim that ends here", file.name, at)
				}
				shown = true
			}
			lines := strings.Split(readFile(t, file.name), "\n")
			for i, line := range lines {
				switch text := strings.TrimLeft(line, " "); len(line) - len(text) {
				case 4:
					if shown = true; !exists(text) {
						t.Errorf("%s:%d: there is no such thing: %s", file.name, i+1, text)
					}
				case 2:
					end(i)
					claims[heading], shown = append(claims[heading], text), false
				case 0:
					if text == "" || text[0] == '#' {
						continue
					}
					end(i)
					if heading = text; claims[heading] != nil || says[heading] == "" {
						t.Errorf("%s:%d: %s has no claims under %q, or that was above", file.name, i+1, file.doc, heading)
					}
				default:
					t.Errorf("%s:%d: lines are indented by 0, 2 or 4", file.name, i+1)
				}
			}
			end(len(lines))
			for _, heading := range slices.Sorted(maps.Keys(says)) {
				if is, want := strings.Join(claims[heading], " "), says[heading]; is != want {
					t.Errorf("%q: %s says\n\t%s\nand %s\n\t%s\nDo the tests there show what it says now?", heading, file.doc, want, file.name, is)
				}
			}
		})
	}
}

// bullets returns the text of the bullets of a document that begin with mark, without links, by heading.
func bullets(text, mark string) map[string]string {
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	says, heading := make(map[string]string), ""
	for line := range strings.Lines(prose(text)) {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			heading = strings.TrimSpace(strings.TrimLeft(title, "#"))
		}
		if claim, ok := strings.CutPrefix(line, mark); ok {
			says[heading] = strings.TrimSpace(says[heading] + " " + strings.TrimSpace(link.ReplaceAllString(claim, "$1")))
		}
	}
	return says
}

// twins returns a function that reports whether what a line of a file of twinsFiles names exists.
func twins(t *testing.T) func(line string) bool {
	tests := make(map[string]bool)    // "DIRECTORY TestName"
	literals := make(map[string]bool) // "DIRECTORY text", of the strings and numbers in the tests: subtests have such names
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(path) + " "
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if strings.HasPrefix(n.Name.Name, "Test") && n.Recv == nil {
					tests[dir+n.Name.Name] = true
				}
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				if err != nil { // a number
					text = n.Value
				}
				literals[dir+text] = true
			}
			return true
		})
	})
	table := func(file, name string) string { // make tables writes it, and another test compares it with the source
		_, part, _ := strings.Cut(readFile(t, file), fmt.Sprintf("<!-- %s: generated -->", name))
		part, _, _ = strings.Cut(part, fmt.Sprintf("<!-- %s: end -->", name))
		return part
	}
	scenarios, mutants, searches := table("docs/chaos.md", "scenarios"), table("chaos/testdata/mutants.md", "mutants"), readFile(t, "docs/model/check.sh")
	return func(line string) bool {
		kind, name, _ := strings.Cut(line, " ")
		switch kind {
		case "test":
			dir, name, _ := strings.Cut(name, " ")
			test, sub, has := strings.Cut(name, "/")
			_, err := os.Stat(filepath.Join(dir, "testdata", sub+".txt")) // a script of TestScripts
			return tests[dir+" "+test] && (!has || literals[dir+" "+sub] || err == nil)
		case "mutant":
			return strings.Contains(mutants, "\n| "+name+" | ")
		case "scenario":
			return strings.Contains(scenarios, "\n| "+name+" | ")
		case "search":
			return regexp.MustCompile(`(?m)^(slow )?(holds|without) .*'` + regexp.QuoteMeta(name) + `'`).MatchString(searches)
		}
		return false
	}
}
