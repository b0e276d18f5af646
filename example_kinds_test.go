package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/quorumlock/redlock"
)

// Many may read at once, while nobody writes. All have the number of the last one who
// wrote.
func ExampleShared() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()

	first, err := lk.TryAcquire(ctx, "prices", redlock.Shared())
	if err != nil {
		log.Fatal(err)
	}
	second, err := lk.TryAcquire(ctx, "prices", redlock.Shared())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the same fence:", first.Fence() == second.Fence())

	_, err = lk.TryAcquire(ctx, "prices") // to write
	fmt.Println("to write them:", errors.Is(err, redlock.ErrHeld))

	_ = first.Release(ctx)
	_ = second.Release(ctx)
	writer, err := lk.Acquire(ctx, "prices")
	fmt.Println("when all have read:", err)
	_ = writer.Release(ctx)
	// Output:
	// the same fence: true
	// to write them: true
	// when all have read: <nil>
}

// All names are locked, or none.
func ExampleAlso() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()

	transfer, err := lk.TryAcquire(ctx, "account-17", redlock.Also("account-4"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = lk.TryAcquire(ctx, "account-4", redlock.Also("account-9"))
	fmt.Println("one of them, and another:", errors.Is(err, redlock.ErrHeld))
	other, err := lk.TryAcquire(ctx, "account-9")
	fmt.Println("the other alone:", err)

	_ = transfer.Release(ctx)
	_ = other.Release(ctx)
	// Output:
	// one of them, and another: true
	// the other alone: <nil>
}

// At most three exports run at a time, wherever they run.
func ExampleSlots() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()

	for n := range 4 {
		l, err := lk.TryAcquire(ctx, "export", redlock.Slots(3))
		if errors.Is(err, redlock.ErrHeld) {
			fmt.Println("no slot for number", n+1)
			continue
		} else if err != nil {
			log.Fatal(err)
		}
		defer l.Release(ctx)
	}
	// Output: no slot for number 4
}

// A lock on a folder takes in all that is in it, and nothing else.
func ExampleOptions_folders() {
	lk, stop := connected(redlock.Options{Separator: "/"})
	defer stop()
	ctx := context.Background()

	l, err := lk.TryAcquire(ctx, "project/A")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Release(ctx)
	for _, name := range []string{"project", "project/A/C", "project/A1", "project/B"} {
		other, err := lk.TryAcquire(ctx, name)
		fmt.Println(name, "is free:", err == nil)
		if err == nil {
			_ = other.Release(ctx)
		}
	}
	// Output:
	// project is free: false
	// project/A/C is free: false
	// project/A1 is free: true
	// project/B is free: true
}

// Under a lock's context the lock is had already.
func ExampleLocker_Do_again() {
	lk, stop := connected(redlock.Options{})
	defer stop()

	save := func(ctx context.Context) error {
		return lk.Do(ctx, "document", func(context.Context, *redlock.Lock) error {
			fmt.Println("saving")
			return nil
		})
	}
	err := lk.Do(context.Background(), "document", func(ctx context.Context, _ *redlock.Lock) error {
		fmt.Println("editing")
		return save(ctx) // joins, and does not wait for itself
	})
	fmt.Println(err)
	// Output:
	// editing
	// saving
	// <nil>
}
