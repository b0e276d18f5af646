//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"

	"github.com/quorumlock/redlock/internal/memredis"
	"github.com/quorumlock/redlock/internal/redistest"
)

// TestMain lets the test binary be redlock, or a command for redlock to run: it
// goes by the name under which it is called, and there are links to it in PATH.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "redlock":
		main()
	case "child":
		child(os.Args[1])
		return
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	bin, err := os.MkdirTemp("", "redlock")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(bin)
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"redlock", "child"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			panic(err)
		}
	}
	os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	os.Unsetenv(nodesVariable)
	return redistest.NoLeaksMain(m)
}

// child says when it is ready, and then each signal that it gets. SIGTERM ends
// it, unless it is a stubborn one; and so does being orphaned, which a failed test
// may do to it.
func child(manner string) {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, proc.Forwarded...)
	fmt.Println("ready", os.Getpid())
	for parent := os.Getppid(); os.Getppid() == parent; {
		select {
		case sig := <-ch:
			fmt.Println("got", sig)
			if sig == syscall.SIGTERM && manner != "stubborn" {
				os.Exit(map[string]int{"polite": 0, "rude": 3}[manner])
			}
		case <-time.After(time.Second):
		}
	}
}

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{t: t, programs: make(map[string]*program), env: map[string]string{
				"PATH":   os.Getenv("PATH"),
				"TMP":    t.TempDir(),
				"GORACE": "atexit_sleep_ms=0", // or each program takes a second longer under -race
			}}
			s.run(string(text))
		})
	}
}

// Nothing of ours is left running in the process; NoLeaksMain looks for
// goroutines.
func TestNothingIsLeftInTheProcess(t *testing.T) {
	var stdout, stderr strings.Builder
	code := main1([]string{"run", "--embedded", "--key", "k", "--", "cat"}, os.Environ(), strings.NewReader("through"), &stdout, &stderr)
	if code != 0 || stdout.String() != "through" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, &stdout, &stderr)
	}
}

// The child's fence grows from lock to lock, and replaces what the environment has.
func TestFence(t *testing.T) {
	nodes, err := memredis.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	env := append(os.Environ(), "REDLOCK_FENCE=9", nodesVariable+"="+strings.Join(nodes.URLs(), ","))
	var before int64
	for range 3 {
		var stdout, stderr strings.Builder
		if code := main1([]string{"run", "--key", "k", "--", "env"}, env, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Fatalf("exit code %d, stderr %q", code, &stderr)
		}
		found := regexp.MustCompile(`(?m)^REDLOCK_FENCE=(.*)$`).FindAllStringSubmatch(stdout.String(), -1)
		if len(found) != 1 {
			t.Fatalf("found %q in %q", found, &stdout)
		}
		fence, err := strconv.ParseInt(found[0][1], 10, 64)
		if err != nil || fence <= before || fence == 9 {
			t.Errorf("fence %q after %d: %v", found[0][1], before, err)
		}
		before = fence
	}
}

// A buffer can be read while a program still writes to it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
