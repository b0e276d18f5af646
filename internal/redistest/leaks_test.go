package redistest

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMain(m *testing.M) { os.Exit(NoLeaksMain(m)) }

func waitForRelease(release chan struct{}) { <-release }

// The tests run in bubbles, where patience takes no time.

func TestNoLeaksFindsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		go waitForRelease(release) // it was here before, so it is no leak
		synctest.Wait()

		p := &probe{}
		NoLeaks(p)
		go waitForRelease(release)
		p.run(func() {})
		if !p.failed || strings.Count(p.said, "waitForRelease(") != 1 {
			t.Errorf("failed %v: %s", p.failed, p.said)
		}
	})
}

func TestNoLeaksWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe{}
		NoLeaks(p)
		go time.Sleep(leakPatience / 2) // on its way out
		p.run(func() {})
		if p.failed {
			t.Error(p.said)
		}
	})
}
