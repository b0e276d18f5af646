package recipes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/redlocktest"
)

// listed returns a closed channel with these jobs.
func listed(first, n int) <-chan int {
	jobs := make(chan int, n)
	for i := range n {
		jobs <- first + i
	}
	close(jobs)
	return jobs
}

// TestPool: three machines have jobs. At most two run at a time, and the first waits for a second; each runs once.
func TestPool(t *testing.T) {
	leaks.Check(t)
	nodes := redlocktest.New(t)
	const machines, each, most = 3, 6, 2
	var now, peak atomic.Int32
	var ran [machines * each]atomic.Int32
	var all sync.WaitGroup
	for m := range machines {
		locker := nodes.Locker(nil)
		all.Go(func() {
			Pool(t.Context(), locker, "exports", most, listed(m*each, each), func(_ context.Context, job int) error {
				n := now.Add(1)
				for was := peak.Load(); n > was && !peak.CompareAndSwap(was, n); was = peak.Load() {
				}
				ran[job].Add(1)
				for begun := time.Now(); peak.Load() < most && time.Since(begun) < patience; {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Millisecond) // so that a third one would be seen
				now.Add(-1)
				return nil
			}, func(job int, err error) { t.Errorf("job %d: %v", job, err) })
		})
	}
	all.Wait()
	if peak.Load() != most {
		t.Errorf("%d jobs ran at the same time, want %d", peak.Load(), most)
	}
	for job := range ran {
		if n := ran[job].Load(); n != 1 {
			t.Errorf("job %d ran %d times", job, n)
		}
	}
}

// TestPoolFails: a job that fails, one that loses its slot, and one that comes after the end are reported. One that is
// done at the end is not.
func TestPoolFails(t *testing.T) {
	leaks.Check(t)
	nodes := redlocktest.New(t)
	locker := nodes.Locker(nil)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	failed := make(map[int]error) // one worker, so one at a time
	Pool(ctx, locker, "exports", 1, listed(0, 5), func(ctx context.Context, job int) error {
		switch job {
		case 1:
			return errDies
		case 2:
			nodes.Lose("exports")
			return ctx.Err()
		case 3:
			end()
		}
		return nil
	}, func(job int, err error) { failed[job] = err })
	if len(failed) != 3 || !errors.Is(failed[1], errDies) || !errors.Is(failed[2], redlock.ErrLost) ||
		!errors.Is(failed[4], context.Canceled) {
		t.Errorf("failed: %v", failed)
	}
}
