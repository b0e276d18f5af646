// Package redlocktest is for tests of code that uses locks: Redis nodes in the test's own process, and a
// line for each thing that can go wrong with a lock.
//
// There is nothing to install, to start or to wait for: the nodes vote at once. They work inside a
// testing/synctest bubble, where nothing uses the network and a minute takes no time, and outside of
// one, where they have addresses, too ([Nodes.URLs]).
//
//	nodes := redlocktest.New(t)
//	locker := nodes.Locker(nil)     // or nodes.Clients(), nodes.URLs()
//
//	nodes.Hang(0)                   // this node hangs
//	nodes.Lose("report")            // the lock is lost now
//	other := nodes.Hold("report")   // another process has it
//	other.Release(ctx)              // and releases it
//	nodes.Sleep(time.Minute)        // time passes
//
// This is a whole test file. It takes two minutes of virtual time, and a fraction of a second of real time:
//
//	package report_test
//
//	import (
//		"context"
//		"errors"
//		"testing"
//		"testing/synctest"
//		"time"
//
//		"github.com/quorumlock/redlock"
//		"github.com/quorumlock/redlock/redlocktest"
//	)
//
//	// run is the code under test: it writes a report every second, on one machine of many.
//	func run(ctx context.Context, locker *redlock.Locker, write func(fence int64)) error {
//		return locker.Do(ctx, "report", func(ctx context.Context, l *redlock.Lock) error {
//			for {
//				select {
//				case <-ctx.Done(): // the lock is lost, or the program ends
//					return context.Cause(ctx)
//				case <-time.After(time.Second):
//					write(l.Fence())
//				}
//			}
//		})
//	}
//
//	// A worker that has lost its lock stops, and writes nothing after that.
//	func TestLostLock(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			nodes := redlocktest.New(t)
//			locker := nodes.Locker(nil)
//			written := 0
//			ended := make(chan error, 1)
//			go func() { ended <- run(t.Context(), locker, func(int64) { written++ }) }()
//
//			nodes.Sleep(time.Minute) // the lock is renewed all the time
//			if written != 60 {
//				t.Errorf("%d reports in a minute", written)
//			}
//			nodes.Lose("report")
//			if err := <-ended; !errors.Is(err, redlock.ErrLost) {
//				t.Errorf("the worker ended with %v", err)
//			}
//			if written != 60 {
//				t.Errorf("%d reports, some of them without a lock", written)
//			}
//		})
//	}
//
//	// A worker that waits continues when the lock is released, and its fence is larger.
//	func TestHandover(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			nodes := redlocktest.New(t)
//			locker := nodes.Locker(nil)
//			other := nodes.Hold("report") // another process was first
//			var fence int64
//			go run(t.Context(), locker, func(f int64) { fence = f })
//
//			nodes.Sleep(time.Minute)
//			if fence != 0 {
//				t.Error("two processes had the lock")
//			}
//			nodes.Hang(0) // one of three nodes may fail
//			other.Release(t.Context())
//			nodes.Sleep(2 * time.Second)
//			if fence <= other.Fence() {
//				t.Errorf("fence %d after %d", fence, other.Fence())
//			}
//		})
//	}
//
// # Quarantine
//
// A node that is restarted or wiped has no vote for Options.Quarantine, like a real one. If a test does so to
// a majority, the next lock waits that long. [Nodes.Lose] takes a lock away without a quarantine.
//
// # What it is not
//
// The nodes are [miniredis]: they do all that redlock needs of a Redis, and are neither fast nor durable.
// Package chaos has the whole range of faults, with a judge of the outcome. For tests against real servers,
// see [Fresh] and docs/testing.md.
//
// [miniredis]: https://github.com/alicebob/miniredis
package redlocktest
