package gocronredlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/quorumlock/redlock"
	gocronredlock "github.com/quorumlock/redlock/adapters/gocron"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

// Two schedulers, and a job that is due at both at once. They have a process each, as a
// rule, and a Locker each.
func Example() {
	nodes, err := memredis.Start(3) // redis://redis-1:6379, …
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()

	done, skipped := make(chan struct{}), make(chan error)
	for range 2 {
		locker, err := redlock.Connect(nodes.URLs(), nil)
		if err != nil {
			log.Fatal(err)
		}
		defer locker.Close()
		if err := locker.WaitReady(context.Background()); err != nil { // before the first job is due
			log.Fatal(err)
		}
		locks := gocronredlock.NewLocker(locker, &gocronredlock.Options{
			MinHold: 2 * time.Second, // the clocks differ by less than that
		})
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locks))
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = s.Shutdown() }()
		_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
			gocron.NewTask(locks.Task("report", func(ctx context.Context, l *redlock.Lock) error {
				// ctx ends when the lock does; l.Fence() is for what is written to.
				fmt.Println("reporting under the lock on", l.Name())
				fmt.Println("skipped by the other:", errors.Is(<-skipped, redlock.ErrHeld)) // when it is due there, too
				defer close(done)
				return context.Cause(ctx)
			})),
			gocron.WithName("report"),
			gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { skipped <- err })),
		)
		if err != nil {
			log.Fatal(err)
		}
		s.Start()
	}
	<-done
	// Output:
	// reporting under the lock on report
	// skipped by the other: true
}
