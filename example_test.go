package redlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/integration"
	"github.com/quorumlock/redlock/internal/memredis"
	"github.com/redis/go-redis/v9"
)

// nodes gives the URLs of some Redis servers, here inside of the process, so that
// the examples run with nothing installed.
func nodes(n int) (urls []string, stop func()) {
	cluster, err := memredis.Start(n)
	if err != nil {
		log.Fatal(err)
	}
	return cluster.URLs(), cluster.Close
}

// connected gives a Locker for the examples that are about something else. It is
// patient, for the machines that run examples are busy.
func connected(opts redlock.Options) (lk *redlock.Locker, stop func()) {
	urls, stopNodes := nodes(5)
	opts.NodeTimeout = time.Second
	lk, err := redlock.Connect(urls, &opts)
	if err != nil {
		log.Fatal(err)
	}
	return lk, func() {
		_ = lk.Close()
		stopNodes()
	}
}

// Most programs need one verb: Do waits for the lock, renews it while the
// function runs, and releases it.
func Example() {
	urls, stop := nodes(5) // redis://redis-1:6379, redis://redis-2:6379, …
	defer stop()
	lk, err := redlock.Connect(urls, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer lk.Close()

	// Wait for the lock for ten seconds, no longer.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = lk.Do(ctx, "nightly-report", func(ctx context.Context, l *redlock.Lock) error {
		// ctx ends when the lock does: give it to whatever takes long.
		fmt.Println("holding", l.Name())
		return nil
	})
	fmt.Println(err)
	// Output:
	// holding nightly-report
	// <nil>
}

// New takes clients that the program has already. Their settings are used, but
// not their connections.
func ExampleNew() {
	urls, stop := nodes(3)
	defer stop()
	var clients []*redis.Client
	for _, url := range urls {
		opts, err := redis.ParseURL(url)
		if err != nil {
			log.Fatal(err)
		}
		client := redis.NewClient(opts)
		defer client.Close()
		clients = append(clients, client)
	}

	lk, err := redlock.New(clients, &redlock.Options{TTL: 30 * time.Second, Prefix: "lock:"})
	if err != nil {
		log.Fatal(err)
	}
	defer lk.Close()

	ctx := context.Background()
	l, err := lk.TryAcquire(ctx, "invoice-17")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Release(ctx)
	held := 0
	for _, client := range clients {
		if client.Get(ctx, "lock:invoice-17").Val() == l.Token() {
			held++
		}
	}
	fmt.Println("on a majority of the nodes:", held >= 2)
	// Output: on a majority of the nodes: true
}

// Connect makes the connections itself, from URLs.
func ExampleConnect() {
	urls, stop := nodes(5)
	defer stop()
	lk, err := redlock.Connect(urls, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer lk.Close()

	// The same server twice would make a majority out of a minority.
	_, err = redlock.Connect([]string{"redis://10.0.0.1:6379", "redis://10.0.0.2:6379", "redis://10.0.0.1:6379"}, nil)
	fmt.Println(err)
	// Output: redlock: nodes 0 and 2 are both 10.0.0.1:6379: each needs a server of its own
}

// TryAcquire asks once. That the lock is held is an answer, not a fault.
func ExampleLocker_TryAcquire() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()

	l, err := lk.TryAcquire(ctx, "import")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("importing")

	_, err = lk.TryAcquire(ctx, "import") // another process, say
	switch {
	case errors.Is(err, redlock.ErrHeld):
		fmt.Println("another process is importing already")
	case err != nil:
		log.Fatal(err)
	}
	if err := l.Release(ctx); err != nil {
		log.Print(err) // the work is done; the TTL will free the lock
	}
	// Output:
	// importing
	// another process is importing already
}

// Acquire waits. The context is the only bound: here it is ten seconds for
// getting the lock, which is free after a moment.
func ExampleLocker_Acquire() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()
	first, err := lk.TryAcquire(ctx, "import")
	if err != nil {
		log.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = first.Release(ctx) })

	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	l, err := lk.Acquire(wait, "import")
	switch {
	case errors.Is(err, redlock.ErrHeld): // and context.DeadlineExceeded
		fmt.Println("held by another for ten seconds")
	case err != nil:
		log.Fatal(err)
	default:
		defer l.Release(ctx)
		fmt.Println("importing")
	}
	// Output: importing
}

// A lock that is not renewed ends. Its context ends in time, by the local clock, with the cause.
func ExampleLock_Context() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	l, err := lk.TryAcquire(context.Background(), "import", redlock.TTL(500*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	ctx := l.Context(context.Background())
	select {
	case <-time.After(time.Minute): // the work
	case <-ctx.Done():
		fmt.Println(context.Cause(ctx))
		fmt.Println(errors.Is(context.Cause(ctx), redlock.ErrLost))
	}
	// Output:
	// redlock: "import": lock lost: validity ended, and it was not extended
	// true
}

// A lock that one process acquires and another one releases: a request that locks an
// order, say, and the job that carries it out later.
func ExampleLock_Detach() {
	web, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()

	l, err := web.TryAcquire(ctx, "order-17", redlock.TTL(9*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	handle, err := l.Detach() // this process renews it no more, and does not release it
	if err != nil {
		log.Fatal(err)
	}
	job, err := json.Marshal(handle) // into a queue
	if err != nil {
		log.Fatal(err)
	}

	var taken redlock.Handle // and out of it, elsewhere
	if err := json.Unmarshal(job, &taken); err != nil {
		log.Fatal(err)
	}
	worker := web // a Locker of its own
	again, err := worker.Attach(ctx, taken)
	switch {
	case errors.Is(err, redlock.ErrLost):
		log.Print("it took too long; another may have it: ", err)
	case err != nil:
		log.Print("worth another try: ", err)
	default:
		fmt.Println("the same lock:", again.Name(), again.Fence() == l.Fence())
		fmt.Println("released:", again.Release(ctx))
	}
	// Output:
	// the same lock: order-17 true
	// released: <nil>
}

// Errors are told apart by what to do next; the details name the nodes.
func ExampleQuorumError() {
	urls, stop := nodes(2)
	defer stop()
	urls = append(urls, "redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3") // no server there
	lk, err := redlock.Connect(urls, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer lk.Close()

	_, err = lk.TryAcquire(context.Background(), "import")
	var details *redlock.QuorumError
	switch {
	case errors.Is(err, redlock.ErrHeld):
		fmt.Println("come back later")
	case errors.Is(err, redlock.ErrNoQuorum) && errors.As(err, &details):
		fmt.Println("look at the nodes:")
		for _, n := range details.Nodes() {
			fmt.Println(n.Node, n.Outcome)
		}
	}
	// Output:
	// look at the nodes:
	// 127.0.0.1:1 unreachable
	// 127.0.0.1:2 unreachable
	// 127.0.0.1:3 unreachable
}

// Nine workers want one lock at once. One gets it; the others learn the holder's token.
func ExampleLocker_Acquire_nineWorkers() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	winners, losers := integration.NineWorkers(context.Background(), lk, "import")
	told := 0
	for _, err := range losers {
		if integration.Holder(err) == winners[0].Token() {
			told++
		}
	}
	fmt.Println(len(winners), "has the lock,", told, "know the holder")
	fmt.Println("released:", winners[0].Release(context.Background()))
	// Output:
	// 1 has the lock, 8 know the holder
	// released: <nil>
}

// A lock that lives for longer than we wait: the error says that the time is up,
// and that it was held. (Scaled down, so that the example does not take as long.)
func ExampleLocker_Acquire_bounded() {
	const second = 50 * time.Millisecond
	lk, stop := connected(redlock.Options{TTL: 30 * second})
	defer stop()
	if _, err := lk.TryAcquire(context.Background(), "import"); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*second)
	defer cancel()
	_, err := lk.Acquire(ctx, "import")
	fmt.Println(errors.Is(err, context.DeadlineExceeded), errors.Is(err, redlock.ErrHeld))
	// Output: true true
}

// A function under a lock: its error and its panic come through, and the lock is
// free again each time.
func ExampleLocker_Do() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	for _, said := range integration.UnderLock(context.Background(), lk, "printer") {
		fmt.Println(said)
	}
	// Output:
	// error: <nil>, false
	// error: out of paper, true
	// panic: paper jam
}
