package recipes

import (
	"context"
	"sync"

	"github.com/quorumlock/redlock"
)

// Pool works on jobs, at most n at a time on all machines together. Each machine calls it with jobs of its own, and
// with the same name and n. It returns when jobs is closed and all of its jobs have been tried.
//
// A job waits for one of n slots, and has it while export runs. The context of export ends with ctx, or when the slot
// is lost: then another machine may begin a job while this one ends, so export must return soon. For each job that
// has an error, or that the end of ctx left without a slot, failed is called, perhaps from several goroutines at once.
func Pool[J any](ctx context.Context, locker *redlock.Locker, name string, n int, jobs <-chan J,
	export func(context.Context, J) error, failed func(J, error)) {
	var workers sync.WaitGroup
	for range n { // as many as could have a slot here
		workers.Go(func() {
			for job := range jobs {
				err := locker.Do(ctx, name, func(ctx context.Context, _ *redlock.Lock) error {
					return export(ctx, job)
				}, redlock.Slots(n))
				if err != nil {
					failed(job, err)
				}
			}
		})
	}
	workers.Wait()
}
