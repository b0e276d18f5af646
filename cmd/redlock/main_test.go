//go:build unix

package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quorumlock/redlock/cmd/redlock/internal/acquire"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/cmd/redlock/internal/verb/run"
	"github.com/quorumlock/redlock/cmd/redlock/internal/verb/trial"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestMain lets the test binary be redlock, or a command for redlock to run: testscript
// puts both into PATH.
func TestMain(m *testing.M) {
	testscript.Main(withoutLeaks{m}, programs)
}

var programs = map[string]func(){"redlock": main, "child": child}

type withoutLeaks struct{ *testing.M }

func (m withoutLeaks) Run() int {
	for _, name := range []string{reach.NodesVariable, reach.FilesVariable, reach.MaxTTLVariable, reach.PrefixVariable, reach.OwnerVariable, "TRACEPARENT", "XDG_CONFIG_HOME"} {
		os.Unsetenv(name)
	}
	os.Setenv(reach.ConfigVariable, os.DevNull) // not that of the user who runs the tests
	// Under nohup SIGHUP is ignored, and programs inherit that. Redlock leaves it so; the
	// scripts send it. A program inherits the default of a signal that its parent catches.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	// Scripts wait for most of their time, unless the race detector makes all of it slow. The
	// -parallel of the command line is parsed later, and replaces this.
	if !need.Raced {
		if err := flag.Set("test.parallel", strconv.Itoa(max(need.Sized(8, 4, 4), runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
	return leaks.Main(m.M)
}

// In a script with env PACE=quick redlock does not pause for a reader. In the others it must not
// report too early what it waits for: on a busy machine a node takes a while to answer.
func init() {
	if os.Getenv("PACE") == "quick" {
		acquire.NoticeAfter, run.Again, trial.Beat = 200*time.Millisecond, 200*time.Millisecond, 100*time.Millisecond
	}
}

// child prints that it is ready, and then each signal that it gets. SIGTERM ends it, unless it
// is a stubborn one. It also ends when it is orphaned, as by a failed test.
func child() {
	manner := os.Args[1]
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

// main1 leaves nothing running in the process; leaks.Main looks for goroutines.
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
	env := append(os.Environ(), "REDLOCK_FENCE=9", reach.NodesVariable+"="+strings.Join(nodes.URLs(), ","))
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
