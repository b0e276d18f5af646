package repotest_test

import (
	"os"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// The tests run in the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(leaks.Main(m))
}
