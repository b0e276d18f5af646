package redistest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

func waitForRelease(release chan struct{}) { <-release }

// The tests run in bubbles, where patience takes no time.

func TestLeaksAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		go waitForRelease(release) // it was here before, so it is no leak
		synctest.Wait()

		p := &probe{}
		p.run(func() {
			leaks.Check(p)
			go waitForRelease(release)
		})
		if !p.failed || strings.Count(p.said, "waitForRelease(") != 1 {
			t.Errorf("failed %v: %s", p.failed, p.said)
		}
	})
}

func TestCheckWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe{}
		p.run(func() {
			leaks.Check(p)
			go time.Sleep(2500 * time.Millisecond) // on its way out
		})
		if p.failed {
			t.Error(p.said)
		}
	})
}
