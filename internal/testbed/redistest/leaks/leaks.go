// Package leaks checks that tests leave no goroutines of the library running. It is a package of its own
// for the tests of what redistest is built on.
package leaks

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// patience is how long goroutines may take to end after a test; in a bubble
// it is virtual.
const patience = 5 * time.Second

// Check fails the test if goroutines of the library or of go-redis that the test has started are still
// there at its end. Call it first: cleanup runs backwards, so it then checks last, when clients and
// servers are closed.
//
// In a bubble it checks the bubble's goroutines only. Elsewhere it cannot tell one test's goroutines from
// another's, so it is not for parallel tests.
func Check(t testing.TB) {
	t.Helper()
	before := map[string]bool{}
	for _, g := range goroutines() {
		before[g.id] = true
	}
	t.Cleanup(func() {
		if left := waitForEnd(before); len(left) > 0 {
			t.Errorf("%d goroutines left:\n\n%s", len(left), strings.Join(left, "\n\n"))
		}
	})
}

// Main runs the tests of a package and then checks what they have left:
//
//	func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }
//
// The tests run with a larger heap than Go gives such a small program. Most of what they allocate soon is
// garbage, such as the Lua state that miniredis makes for each script. With the default, 4 MB of it start
// a collection, and collections are a third of the tests' work.
func Main(m *testing.M) int {
	_, _ = net.LookupHost("localhost") // the resolver makes a channel at its first use: if that were in a bubble, no other could use it
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1000)
	}
	code := m.Run()
	if code != 0 {
		return code // a failed test often leaves goroutines; reporting them would distract from its failure
	}
	if left := waitForEnd(nil); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "%d goroutines left by the tests:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
		return 1
	}
	return 0
}

// waitForEnd returns the stacks of the goroutines of the library that are new, and still there when
// patience ends.
func waitForEnd(before map[string]bool) []string {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var left []string
		all := goroutines()
		self := all[0]
		for _, g := range all[1:] {
			if g.ours && g.bubble == self.bubble && !before[g.id] {
				left = append(left, g.stack)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// Running is how many goroutines of the library there are in the caller's bubble, or outside of bubbles, besides the
// caller. runtime.NumGoroutine counts others, too: that of the runtime while it runs a finalizer, say.
func Running() (n int) {
	all := goroutines()
	for _, g := range all[1:] {
		if g.ours && g.bubble == all[0].bubble {
			n++
		}
	}
	return n
}

type goroutine struct {
	id     string
	bubble string // empty outside of a bubble
	ours   bool
	stack  string
}

var bubbleName = regexp.MustCompile(`synctest bubble \d+`)

// goroutines lists all goroutines, the caller first.
func goroutines() []goroutine {
	if inBubble() {
		// Let the other goroutines come to rest: some are about to end, and one that has just
		// started a garbage collection does not show as one of the bubble meanwhile.
		synctest.Wait()
	}
	var all []goroutine
	for stack := range bytes.SplitSeq(allStacks(), []byte("\n\n")) {
		text := string(stack)
		header, _, _ := strings.Cut(text, "\n")
		id, _, _ := strings.Cut(strings.TrimPrefix(header, "goroutine "), " ")
		all = append(all, goroutine{
			id:     id,
			bubble: bubbleName.FindString(header),
			ours:   strings.Contains(text, "quorumlock/redlock") || strings.Contains(text, "go-redis"),
			stack:  text,
		})
	}
	return all
}

func inBubble() bool {
	header := make([]byte, 200)
	return bubbleName.Match(header[:runtime.Stack(header, false)])
}

func allStacks() []byte {
	for size := 64 << 10; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return buf[:n]
		}
	}
}
