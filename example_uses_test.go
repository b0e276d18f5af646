package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
)

// Many readers may hold the lock at once, while there is no writer. All have the fence of the
// last writer.
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

// With Reentrant, a call under the context of the lock joins it.
func ExampleReentrant() {
	lk, stop := connected(redlock.Options{})
	defer stop()

	save := func(ctx context.Context) error {
		return lk.Do(ctx, "document", func(context.Context, *redlock.Lock) error {
			fmt.Println("saving")
			return nil
		}, redlock.Reentrant())
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

// leaderCallbacks are called as client-go's leaderelection calls those of its own.
type leaderCallbacks struct {
	OnStartedLeading func(context.Context) // ends when its context does, which is when the lock ends
	OnStoppedLeading func()
	OnNewLeader      func(token string) // a lock has a token, and no identity
}

// elect stands for election until ctx ends: it waits to be the leader, is it for as long as
// OnStartedLeading runs and the lock lasts, and waits anew.
func elect(ctx context.Context, lk *redlock.Locker, name string, do leaderCallbacks) {
	for ctx.Err() == nil {
		err := lk.Do(ctx, name, func(ctx context.Context, l *redlock.Lock) error {
			defer do.OnStoppedLeading() // before the lock is free for the next one
			do.OnStartedLeading(ctx)
			return nil
		})
		if err != nil && !errors.Is(err, redlock.ErrLost) && ctx.Err() == nil {
			log.Print(err) // what no waiting helps: a closed Locker, say
			return
		}
	}
}

// watch looks every now and then which process leads, for processes that cannot lead.
func watch(ctx context.Context, lk *redlock.Locker, name string, every time.Duration, do leaderCallbacks) {
	look := time.NewTicker(every)
	defer look.Stop()
	for last := ""; ; {
		s, err := lk.Inspect(ctx, name)
		if err != nil {
			return
		}
		if s.State == redlock.StateHeld && s.Token != last {
			last = s.Token
			do.OnNewLeader(last)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// Leader election, with the callbacks that controllers for Kubernetes have. One that
// resigns hands over at once; from one that dies the next takes over when the TTL is over.
func ExampleLocker_Do_election() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx, end := context.WithCancel(context.Background())
	defer end()

	leaders := make(chan string)
	go watch(ctx, lk, "controller", 10*time.Millisecond, leaderCallbacks{
		OnNewLeader: func(token string) { leaders <- token },
	})
	var both sync.WaitGroup
	candidate := func(ctx context.Context, name string) {
		both.Go(func() {
			elect(ctx, lk, "controller", leaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					fmt.Println(name, "leads")
					<-ctx.Done() // the controller's work
				},
				OnStoppedLeading: func() { fmt.Println(name, "has stopped") },
			})
		})
	}

	first, resign := context.WithCancel(ctx)
	candidate(first, "a")
	was := <-leaders
	candidate(ctx, "b")
	resign()
	fmt.Println("a new leader:", <-leaders != was)
	end()
	both.Wait()
	// Unordered output:
	// a leads
	// a has stopped
	// b leads
	// a new leader: true
	// b has stopped
}

// A service that cannot have the lock tells its caller when to come back: 409 Conflict if others have
// it, 503 Service Unavailable if too few nodes answer, with Retry-After by what the nodes said.
func ExampleQuorumError_RetryAfter() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	down, err := redlock.Connect([]string{"redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"}, nil) // nobody there
	if err != nil {
		log.Fatal(err)
	}
	defer down.Close()

	handler := func(lk *redlock.Locker) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			l, err := lk.TryAcquire(r.Context(), "order-17", redlock.TTL(10*time.Second))
			var why *redlock.QuorumError
			switch {
			case errors.As(err, &why):
				status := http.StatusServiceUnavailable
				if errors.Is(err, redlock.ErrHeld) {
					status = http.StatusConflict
				}
				seconds := math.Ceil(max(why.RetryAfter(), time.Second).Seconds())
				w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
				w.WriteHeader(status) // the error names the nodes, and is for the log
				return
			case err != nil:
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			defer l.Release(context.WithoutCancel(r.Context()))
			w.WriteHeader(http.StatusNoContent) // the work
		}
	}
	ask := func(lk *redlock.Locker) {
		w := httptest.NewRecorder()
		handler(lk)(w, httptest.NewRequest(http.MethodPost, "/orders/17", nil))
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Retry-After"))
	}

	ask(lk)
	held, err := lk.TryAcquire(context.Background(), "order-17", redlock.TTL(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	ask(lk)
	ask(down)
	_ = held.Release(context.Background())
	// Output:
	// 204 ""
	// 409 "10"
	// 503 "1"
}

// The holder sends its fence with each request, and the service rejects an older one: that of a
// holder that was stopped for longer than its lock lasted, and does not know it yet. docs/safety.md
// has a complete service, with reads.
func ExampleLock_Fence_http() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()

	var mu sync.Mutex
	var largest int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fence, err := strconv.ParseInt(r.Header.Get("X-Fence"), 10, 64)
		if err != nil {
			http.Error(w, "X-Fence is required: the fence of the lock", http.StatusPreconditionRequired)
			return
		}
		mu.Lock()
		defer mu.Unlock() // no other request comes between the check of the fence and the work
		if fence < largest {
			http.Error(w, "stale fence: a later holder has been here", http.StatusPreconditionFailed)
			return
		}
		largest = fence
		w.WriteHeader(http.StatusNoContent)
	}))
	defer service.Close()
	put := func(l *redlock.Lock, body string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, service.URL, strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("X-Fence", strconv.FormatInt(l.Fence(), 10))
		resp, err := service.Client().Do(req)
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		said, _ := io.ReadAll(resp.Body)
		fmt.Println(strings.TrimSpace(body + ": " + resp.Status + " " + string(said)))
	}

	first, err := lk.Acquire(ctx, "document")
	if err != nil {
		log.Fatal(err)
	}
	put(first, "the first")
	_ = first.Release(ctx) // or its TTL ends, and it has not been told yet

	second, err := lk.Acquire(ctx, "document")
	if err != nil {
		log.Fatal(err)
	}
	defer second.Release(ctx)
	put(second, "the second")
	put(first, "the first, late")
	// Output:
	// the first: 204 No Content
	// the second: 204 No Content
	// the first, late: 412 Precondition Failed stale fence: a later holder has been here
}
