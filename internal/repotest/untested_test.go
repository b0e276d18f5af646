package repotest_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoPackageWithoutTests: each package below internal has tests beside it. A fault in a package without tests shows only
// where another package uses it, as a failure of something else.
func TestNoPackageWithoutTests(t *testing.T) {
	tested := make(map[string]bool) // by directory with Go files
	if err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		switch dir := filepath.Dir(path); {
		case err != nil:
			return err
		case d.Name() == "testdata":
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			tested[dir] = tested[dir] || strings.HasSuffix(path, "_test.go")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(tested) < 20 {
		t.Errorf("there are only %d packages below internal", len(tested))
	}
	for dir, is := range tested {
		if !is {
			t.Errorf("%s has no tests: write a small one beside it that notices when it does not do what its comment says", dir)
		}
	}
}
