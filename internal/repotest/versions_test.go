package repotest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/wire"
)

// TestVersionsPage: docs/versions.md and the README have the versions that go.mod has, all published modules allow the
// same Go, and the table of dependencies has each direct requirement and nothing else.
func TestVersionsPage(t *testing.T) {
	type modFile struct {
		Go      string
		Require []struct {
			Path, Version string
			Indirect      bool
		}
	}
	read := func(file string) (m modFile) {
		if err := json.Unmarshal([]byte(goCommand(t, "mod", "edit", "-json", file)), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	root, page, readme := read("go.mod"), readFile(t, "docs/versions.md"), readFile(t, "README.md")
	const redis = "github.com/redis/go-redis/v9"
	var direct []string
	version := make(map[string]string)
	for _, r := range root.Require {
		version[r.Path] = r.Version
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	for _, want := range []string{"Go " + root.Go, "At least " + version[redis], fmt.Sprintf("it is %d", wire.MarkerVersion)} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/versions.md does not say %q", want)
		}
	}
	for _, want := range []string{"Go " + strings.TrimSuffix(root.Go, ".0") + " or later", "go-redis " + version[redis] + " or later"} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
	adapters := glob(t, "adapters/*/go.mod")
	if len(adapters) == 0 {
		t.Error("no adapters")
	}
	for _, file := range adapters {
		if got := read(file); got.Go != root.Go {
			t.Errorf("%s requires Go %s, and the library %s: docs/versions.md says they are the same", file, got.Go, root.Go)
		}
	}
	_, table, _ := strings.Cut(page, "\n## Dependencies\n")
	var named []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z]\S*/\S+) \| \S`).FindAllStringSubmatch(table, -1) {
		named = append(named, row[1])
	}
	slices.Sort(direct)
	slices.Sort(named)
	if !slices.Equal(direct, named) {
		t.Errorf("docs/versions.md says what %q are for, and go.mod requires %q", named, direct)
	}
}
