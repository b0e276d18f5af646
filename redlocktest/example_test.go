package redlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktest"
)

// Work under a lock ends when the lock is lost.
func Example() {
	t := newT() // your test has a t already
	defer t.end()

	nodes := redlocktest.New(t)
	locker := nodes.Locker(nil)
	err := locker.Do(t.Context(), "report", func(ctx context.Context, l *redlock.Lock) error {
		nodes.Lose("report")
		<-ctx.Done() // the work stops here
		return context.Cause(ctx)
	})
	fmt.Println("lost:", errors.Is(err, redlock.ErrLost))
	// Output: lost: true
}

// A lock that another process releases goes to the call that waits for it, with a larger fencing token.
func ExampleNodes_Hold() {
	t := newT() // your test has a t already
	defer t.end()

	nodes := redlocktest.New(t)
	other := nodes.Hold("report") // another process has it
	locker := nodes.Locker(nil)
	if _, err := locker.TryAcquire(t.Context(), "report"); errors.Is(err, redlock.ErrHeld) {
		fmt.Println("held")
	}
	go other.Release(t.Context())
	lock, err := locker.Acquire(t.Context(), "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("larger:", lock.Fence() > other.Fence())
	// Output:
	// held
	// larger: true
}

// One of three nodes may hang. With two, there is no quorum.
func ExampleNodes_Hang() {
	t := newT() // your test has a t already
	defer t.end()

	nodes := redlocktest.New(t)
	locker := nodes.Locker(&redlock.Options{NodeTimeout: 200 * time.Millisecond})
	for i := range 2 {
		nodes.Hang(i)
		_, err := locker.TryAcquire(t.Context(), fmt.Sprint("report ", i))
		fmt.Println("no quorum:", errors.Is(err, redlock.ErrNoQuorum))
	}
	// Output:
	// no quorum: false
	// no quorum: true
}

// An exampleT is what an example, which has none, has for a testing.TB.
type exampleT struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
}

func newT() *exampleT { return &exampleT{ctx: context.Background()} }

func (t *exampleT) Helper() {}

func (t *exampleT) Context() context.Context { return t.ctx }

func (t *exampleT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *exampleT) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}
