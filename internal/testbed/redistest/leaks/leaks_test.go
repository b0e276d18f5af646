package leaks_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// A probe takes the place of a testing.T. It records whether Check fails the test, and runs the clean-up when end says so.
type probe struct {
	testing.TB
	cleanups []func()
	failed   bool
	said     string
}

func (p *probe) Helper()          {}
func (p *probe) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

func (p *probe) Errorf(format string, args ...any) {
	p.failed, p.said = true, fmt.Sprintf(format, args...)
}

func (p *probe) end() {
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
}

// waitForRelease is the leak: its name must be in what Check reports.
func waitForRelease(release chan struct{}) { <-release }

// The tests run in bubbles, where the seconds that Check waits take no time.

// TestCheckReportsWhatTheTestStarted: Check fails the test for a goroutine that the test started and left behind, and not
// for one that was there before.
func TestCheckReportsWhatTheTestStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		go waitForRelease(release)
		synctest.Wait()

		p := &probe{}
		leaks.Check(p)
		go waitForRelease(release)
		p.end()
		if !p.failed || strings.Count(p.said, "waitForRelease(") != 1 {
			t.Errorf("failed %v: %s", p.failed, p.said)
		}
	})
}

// TestCheckWaitsForGoroutinesThatEnd: a goroutine that needs a moment to end is no leak.
func TestCheckWaitsForGoroutinesThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe{}
		leaks.Check(p)
		go time.Sleep(2500 * time.Millisecond)
		p.end()
		if p.failed {
			t.Error(p.said)
		}
	})
}

// TestRunningCountsTheBubblesOwn: Running counts the goroutines of the caller's bubble, without the caller.
func TestRunningCountsTheBubblesOwn(t *testing.T) {
	outside := make(chan struct{})
	defer close(outside)
	go waitForRelease(outside)
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		before := leaks.Running()
		go waitForRelease(release)
		go waitForRelease(release)
		if got := leaks.Running() - before; got != 2 {
			t.Errorf("%d more are running, want 2", got)
		}
	})
}
