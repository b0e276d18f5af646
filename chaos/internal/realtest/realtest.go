// Package realtest has helpers for tests whose clients and servers are processes.
package realtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// Main runs a package's tests and ends the program. It fails if a process is left. The
// heap may be larger than Go makes it, as leaks.Main says.
func Main(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1000)
	}
	redis.SetLogger(quiet{})
	code := m.Run()
	if left := Children(); code == 0 && len(left) > 0 {
		fmt.Fprintf(os.Stderr, "left running by the tests: %s\n", strings.Join(left, ", "))
		code = 1
	}
	os.Exit(code)
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// NeedServer skips a test that the environment does not ask for, or that has no redis-server.
func NeedServer(t testing.TB) {
	t.Helper()
	need.Servers(t, redisproc.Available)
}

// Children lists the processes that this one has started and that have not ended.
func Children() (all []string) {
	if runtime.GOOS != "linux" {
		return nil
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended meanwhile
		}
		// PID (program) state parent: the program's name may contain anything.
		end := strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text[end+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			all = append(all, string(text[:end+1]))
		}
	}
	return all
}
