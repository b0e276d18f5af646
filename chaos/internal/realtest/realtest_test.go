package realtest_test

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"github.com/quorumlock/redlock/chaos/internal/realtest"
)

// child is the environment variable by which this test program, started again, waits until its input ends.
const child = "REALTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	realtest.Main(m)
}

// TestChildrenAreThoseThatRun: a process that this one has started is listed until it has ended, and no other one is.
func TestChildrenAreThoseThatRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the list comes from /proc")
	}
	before := realtest.Children()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), child+"=1")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := realtest.Children(); len(got) != len(before)+1 {
		t.Errorf("with one more process there are %q, before %q", got, before)
	}
	input.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got := realtest.Children(); !slices.Equal(got, before) {
		t.Errorf("after it has ended there are %q, before %q", got, before)
	}
}
