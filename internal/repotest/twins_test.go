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

// twinsFile says, for each claim of docs/safety.md about what redlock does, which tests and schedules show it. Its comment
// has the format.
const twinsFile = "internal/repotest/testdata/twins.txt"

// TestTwins: twinsFile has each claim of docs/safety.md, and all that it names to show a claim exists.
func TestTwins(t *testing.T) {
	says := bullets(readFile(t, "docs/safety.md"))
	if len(says) < 20 {
		t.Fatalf("only %d headings of docs/safety.md say what redlock does", len(says))
	}
	exists := twins(t)
	claims := make(map[string][]string) // by heading
	heading, shown := "", true
	end := func(at int) {
		if !shown {
			t.Errorf("%s:%d: nothing shows the claim that ends here", twinsFile, at)
		}
		shown = true
	}
	lines := strings.Split(readFile(t, twinsFile), "\n")
	for i, line := range lines {
		switch text := strings.TrimLeft(line, " "); len(line) - len(text) {
		case 4:
			if shown = true; !exists(text) {
				t.Errorf("%s:%d: there is no such thing: %s", twinsFile, i+1, text)
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
				t.Errorf("%s:%d: docs/safety.md does not say what redlock does under %q, or that was above", twinsFile, i+1, heading)
			}
		default:
			t.Errorf("%s:%d: lines are indented by 0, 2 or 4", twinsFile, i+1)
		}
	}
	end(len(lines))
	for _, heading := range slices.Sorted(maps.Keys(says)) {
		if is, want := strings.Join(claims[heading], " "), says[heading]; is != want {
			t.Errorf("%q: docs/safety.md says\n\t%s\nand %s\n\t%s\nDo the tests there show what it says now?", heading, want, twinsFile, is)
		}
	}
}

// bullets returns what docs/safety.md says that redlock does, without links, by heading.
func bullets(text string) map[string]string {
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	says, heading := make(map[string]string), ""
	for line := range strings.Lines(prose(text)) {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			heading = strings.TrimSpace(strings.TrimLeft(title, "#"))
		}
		if _, does, ok := strings.Cut(line, "- **redlock:** "); ok {
			says[heading] = strings.TrimSpace(link.ReplaceAllString(does, "$1"))
		}
	}
	return says
}

// twins returns a function that reports whether what a line of twinsFile names exists.
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
	table := func(name string) string { // make tables writes it, and another test compares it with the source
		_, part, _ := strings.Cut(readFile(t, "docs/chaos.md"), fmt.Sprintf("<!-- %s: generated -->", name))
		part, _, _ = strings.Cut(part, fmt.Sprintf("<!-- %s: end -->", name))
		return part
	}
	scenarios, mutants, searches := table("scenarios"), table("mutants"), readFile(t, "docs/model/check.sh")
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
