package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
)

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

// watch looks every now and then who leads, for those who want to know and cannot lead.
func watch(ctx context.Context, lk *redlock.Locker, name string, every time.Duration, do leaderCallbacks) {
	look := time.NewTicker(every)
	defer look.Stop()
	for last := ""; ; {
		s, err := lk.Inspect(ctx, name)
		if err != nil {
			return
		}
		if s.Verdict == redlock.Taken && s.Token != last {
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

// The holder shows its fence with each request, and the service refuses whoever comes
// with an older one: a holder that was stopped for longer than its lock lasted, and does
// not know it yet. A whole service, with reads: docs/safety.md.
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
		defer mu.Unlock() // nobody comes between the look at the number and the work
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
	_ = first.Release(ctx) // or its TTL ends, and nobody has told it yet

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
