package chaos_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos"
)

// A reporter is application code that must run on one machine only.
type reporter struct {
	locker *redlock.Locker
	rounds atomic.Int32
}

// run writes a report every second, for as long as its lock is valid.
func (r *reporter) run(ctx context.Context) error {
	return r.locker.Do(ctx, "reports", func(ctx context.Context, _ *redlock.Lock) error {
		for {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Second):
				r.rounds.Add(1)
			}
		}
	})
}

// This is what NewCluster is for: the lock of a worker is lost, because most of the nodes lose their data,
// and the worker has to stop before another one can begin. It takes a minute of virtual time, and hardly any
// real time.
func TestWorkerStopsWithItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := chaos.NewCluster(t, 3)
		locker, err := redlock.New(cluster.Clients(), &redlock.Options{TTL: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer locker.Close()

		worker := &reporter{locker: locker}
		stopped := make(chan error, 1)
		go func() { stopped <- worker.run(t.Context()) }()

		time.Sleep(time.Minute + time.Second/2)
		if n := worker.rounds.Load(); n != 60 {
			t.Errorf("in a minute it has written %d reports", n)
		}
		cluster.Kill(2) // one of three may fail
		time.Sleep(time.Minute)
		if n := worker.rounds.Load(); n != 120 {
			t.Errorf("in two minutes it has written %d reports", n)
		}
		cluster.Restart(2)

		cluster.Wipe(0) // two may not
		cluster.Wipe(1)
		wiped := time.Now()
		if err := <-stopped; !errors.Is(err, redlock.ErrLost) {
			t.Errorf("it stopped because of: %v", err)
		}
		if late := time.Since(wiped); late > 5*time.Second {
			t.Errorf("it went on for %v", late)
		}
	})
}
