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

// In bubbles, since patience costs nothing there.

func TestNoLeaksFindsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		go waitForRelease(release) // was here before, so is not to be blamed
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
