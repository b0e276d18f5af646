package redistest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/redistest/leaks"
)

// A probe takes the place of a testing.T, to show what Check does to a test.
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

func waitForRelease(release chan struct{}) { <-release }

// The tests run in bubbles, where patience takes no time.

func TestLeaksAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		go waitForRelease(release) // it was here before, so it is no leak
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

func TestCheckWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe{}
		leaks.Check(p)
		go time.Sleep(time.Second) // on its way out
		p.end()
		if p.failed {
			t.Error(p.said)
		}
	})
}
