package load

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
)

// Callers acquire and release locks again and again, each with a name of its own.
type Callers struct {
	Locker *redlock.Locker
	Names  []string // each caller's

	Cycles Histogram
	Took   time.Duration
	Faults
}

// Run runs all callers until ctx ends. Each finishes the cycle that it has begun.
func (c *Callers) Run(ctx context.Context) {
	var callers sync.WaitGroup
	begin := time.Now()
	for _, name := range c.Names {
		callers.Go(func() {
			for ctx.Err() == nil {
				c.cycle(name)
			}
		})
	}
	callers.Wait()
	c.Took = time.Since(begin)
}

func (c *Callers) cycle(name string) {
	begin := time.Now()
	lock, err := c.Locker.TryAcquire(context.Background(), name)
	if err == nil {
		err = lock.Release(context.Background())
	}
	if err != nil {
		c.note(err)
		return
	}
	c.Cycles.Add(time.Since(begin))
}
