//go:build unix

package redlock_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorumlock/redlock"
)

// A process that is told to end hands its locks on at once: Shutdown ends the contexts of the work, waits for it, and
// releases the locks.
func ExampleLocker_Shutdown() {
	urls, stop := nodes(5)
	defer stop()
	lk, err := redlock.Connect(urls, nil)
	if err != nil {
		log.Fatal(err)
	}
	told, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	go func() {
		_ = lk.Do(context.Background(), "leader", func(ctx context.Context, _ *redlock.Lock) error {
			fmt.Println("leading")
			terminate() // what a deployment does
			<-ctx.Done()
			fmt.Println("tidying up, under the lock")
			return context.Cause(ctx) // ErrClosed, and not ErrLost
		})
	}()

	<-told.Done()
	brief, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := lk.Shutdown(brief); err != nil {
		log.Print(err) // work goes on: nobody else has its locks until their TTL is over
	}

	// The successor does not wait for the TTL, which is 10 seconds.
	successor, err := redlock.Connect(urls, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer successor.Close()
	l, err := successor.TryAcquire(context.Background(), "leader")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the successor holds", l.Name())
	// Output:
	// leading
	// tidying up, under the lock
	// the successor holds leader
}

// terminate sends this process a SIGTERM.
func terminate() {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		log.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		log.Fatal(err)
	}
}
