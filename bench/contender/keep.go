package contender

import (
	"context"
	"time"
)

// keep extends a lock from a goroutine of its own. It is what the documentation
// of libraries without renewal tells their users to write: a ticker beside the
// work, which stops when the work ends or an extension fails.
func keep(l Lock, every time.Duration, extend func(context.Context) error) Lock {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if extend(ctx) != nil {
					return
				}
			}
		}
	}()
	return &kept{Lock: l, stop: cancel}
}

type kept struct {
	Lock
	stop context.CancelFunc
}

func (k *kept) Release(ctx context.Context) error {
	k.stop()
	return k.Lock.Release(ctx)
}
