package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) {
	ClientMain()
	redis.SetLogger(quiet{})
	code := m.Run()
	if left := children(); code == 0 && len(left) > 0 {
		fmt.Fprintf(os.Stderr, "left running by the tests: %s\n", strings.Join(left, ", "))
		code = 1
	}
	os.Exit(code)
}

// children lists the processes that this one has started and that have not ended.
func children() (all []string) {
	if runtime.GOOS != "linux" {
		return nil
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended meanwhile
		}
		// PID (program) state parent: the program may be called anything.
		end := strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text[end+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			all = append(all, string(text[:end+1]))
		}
	}
	return all
}
