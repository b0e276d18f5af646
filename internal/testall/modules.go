package main

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A module is one go.mod of the tree.
type module struct {
	dir      string
	packages []string // those with tests
}

// longest has the packages whose tests take longest, which begin first: what begins last and takes a minute
// would end alone.
var longest = []string{"/bench", "/internal/integration", "quorumlock/redlock", "/cmd/redlock", "/chaos", "/internal/repotest", "/internal/testbed/model", "/internal/listing", "/internal/recording"}

// listModules finds the modules of the tree in which it runs, the root's first, and their packages with
// tests whose path does not match except. left has the modules that need a newer Go.
func listModules(ctx context.Context, except *regexp.Regexp) (modules []module, left []string, err error) {
	var dirs []string
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err == nil && d.Name() == "go.mod" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(dirs) // "." comes first
	if len(dirs) == 0 || dirs[0] != "." {
		return nil, nil, fmt.Errorf("run it in the root of the repository")
	}
	for _, dir := range dirs {
		list := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
		list.Dir = dir
		var stderr strings.Builder
		list.Stderr = &stderr
		out, err := list.Output()
		switch {
		case err == nil:
		case strings.Contains(stderr.String(), "requires go >= "):
			_, version, _ := strings.Cut(stderr.String(), "requires go >= ")
			version, _, _ = strings.Cut(version, " ")
			left = append(left, fmt.Sprintf("the module %s (it needs Go %s)", dir, version))
			continue
		default:
			return nil, nil, fmt.Errorf("%s: go list: %w\n%s", dir, err, stderr.String())
		}
		m := module{dir: dir}
		for _, path := range strings.Fields(string(out)) {
			if !except.MatchString(path) {
				m.packages = append(m.packages, path)
			}
		}
		slices.SortStableFunc(m.packages, func(a, b string) int { return rank(a) - rank(b) })
		modules = append(modules, m)
	}
	slices.SortStableFunc(modules[1:], func(a, b module) int { return a.rank() - b.rank() })
	return modules, left, nil
}

// rank is that of the module's package that begins first.
func (m module) rank() int {
	if len(m.packages) == 0 {
		return len(longest)
	}
	return rank(m.packages[0])
}

func rank(path string) int {
	for i, suffix := range longest {
		if strings.HasSuffix(path, suffix) {
			return i
		}
	}
	return len(longest)
}
