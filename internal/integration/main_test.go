package integration_test

import (
	"flag"
	"os"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// TestMain has more tests run side by side than there are processors: those that do mostly wait. A -parallel
// on the command line counts.
func TestMain(m *testing.M) {
	runChild() // does not return in a child
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(leaks.Main(m))
}
