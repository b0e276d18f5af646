package redlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/internal/integration"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
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

// A process that is told to end hands its locks on at once: Shutdown ends the contexts of the work, waits for it, and
// releases the locks.
func ExampleLocker_Shutdown() {
	urls, stop := nodes(5)
	defer stop()
	lk, err := redlock.Connect(urls, nil)
	if err != nil {
		log.Fatal(err)
	}
	told, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer end()
	go func() {
		_ = lk.Do(context.Background(), "leader", func(ctx context.Context, _ *redlock.Lock) error {
			fmt.Println("leading")
			end() // SIGTERM does the same
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

// Acquire waits: here for ten seconds at most, and the lock is free after a moment.
func ExampleLocker_Acquire() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()
	first, err := lk.TryAcquire(ctx, "import")
	if err != nil {
		log.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = first.Release(ctx) })

	l, err := lk.Acquire(ctx, "import", redlock.Wait(10*time.Second))
	switch {
	case errors.Is(err, redlock.ErrHeld):
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
	l, err := lk.TryAcquire(context.Background(), "import", redlock.TTL(200*time.Millisecond))
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
			if n.Outcome == redlock.OutcomeUnreachable { // the others may have answered by now that they have no vote without these
				fmt.Println(n.Node, n.Outcome)
			}
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

// Wait bounds the waiting and not the work.
func ExampleWait() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()
	held, err := lk.TryAcquire(ctx, "import")
	if err != nil {
		log.Fatal(err)
	}
	work := func() {
		err := lk.Do(ctx, "import", func(context.Context, *redlock.Lock) error {
			time.Sleep(200 * time.Millisecond) // for longer than Wait
			fmt.Println("imported")
			return nil
		}, redlock.Wait(100*time.Millisecond))
		fmt.Println("held:", errors.Is(err, redlock.ErrHeld))
	}
	work()
	_ = held.Release(ctx)
	work()
	// Output:
	// held: true
	// imported
	// held: false
}

// A lock that lives for longer than the context: the error says that the time is up, and that it was held.
func ExampleLocker_Acquire_bounded() {
	lk, stop := connected(redlock.Options{TTL: 30 * time.Second})
	defer stop()
	if _, err := lk.TryAcquire(context.Background(), "import"); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
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

// Many readers may hold the lock at once, while there is no writer. All have the fence of the
// last writer.
func ExampleShared() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()

	writer, err := lk.Acquire(ctx, "prices")
	if err != nil {
		log.Fatal(err)
	}
	_ = writer.Release(ctx)

	first, err := lk.TryAcquire(ctx, "prices", redlock.Shared())
	if err != nil {
		log.Fatal(err)
	}
	second, err := lk.TryAcquire(ctx, "prices", redlock.Shared())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the writer's fence:", first.Fence() == writer.Fence() && second.Fence() == writer.Fence())

	_, err = lk.TryAcquire(ctx, "prices") // to write
	fmt.Println("to write them:", errors.Is(err, redlock.ErrHeld))

	_ = first.Release(ctx)
	_ = second.Release(ctx)
	writer, err = lk.Acquire(ctx, "prices")
	fmt.Println("when all have read:", err)
	_ = writer.Release(ctx)
	// Output:
	// the writer's fence: true
	// to write them: true
	// when all have read: <nil>
}

// Many machines begin the same job. One does it; MinHold keeps out a machine that begins a little later, when the work
// is done already.
func ExampleMinHold() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	for _, machine := range []string{"a", "b"} { // b's clock is behind
		err := lk.Do(context.Background(), "nightly-report", func(context.Context, *redlock.Lock) error {
			fmt.Println(machine, "reports")
			return nil
		}, redlock.Wait(0), redlock.MinHold(5*time.Second))
		if errors.Is(err, redlock.ErrHeld) {
			fmt.Println(machine, "leaves it to another machine")
		}
	}
	// Output:
	// a reports
	// b leaves it to another machine
}

// The lock is renewed while the request lives. A handler that hangs after that does not keep it.
func ExampleRenewWhile() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	request, hangUp := context.WithCancel(context.Background()) // http.Request.Context
	defer hangUp()
	l, err := lk.TryAcquire(request, "document", redlock.RenewWhile(request), redlock.TTL(500*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	hangUp()
	ctx := l.Context(context.Background())
	<-ctx.Done()
	fmt.Println("ended:", errors.Is(context.Cause(ctx), redlock.ErrLost))
	// Output: ended: true
}

// A process that does not lead knows who does.
func ExampleLocker_Watch() {
	lk, stop := connected(redlock.Options{Owner: "a"})
	defer stop()
	term, resign := context.WithCancel(context.Background())
	var candidate sync.WaitGroup
	defer candidate.Wait()
	defer resign()
	candidate.Go(func() {
		_ = lk.Do(term, "leader", func(ctx context.Context, _ *redlock.Lock) error {
			<-ctx.Done()
			return nil
		})
	})

	leader := ""
	for s, err := range lk.Watch(context.Background(), "leader", 10*time.Millisecond) {
		switch {
		case err != nil:
			log.Fatal(err)
		case s.State == redlock.StateHeld:
			leader = s.By.Owner
			fmt.Println(leader, "leads")
			resign()
		case s.State == redlock.StateFree && leader != "":
			fmt.Println("nobody leads")
			return // ends the watching
		}
	}
	// Output:
	// a leads
	// nobody leads
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

// Leader election, with the callbacks that controllers for Kubernetes have. One that
// resigns hands over at once; from one that dies the next takes over when the TTL is over.
func ExampleLocker_Do_election() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx, end := context.WithCancel(context.Background())
	defer end()

	leaders := make(chan string)
	var both sync.WaitGroup
	both.Go(func() {
		last := ""
		for s := range lk.Watch(ctx, "controller", 10*time.Millisecond) {
			if s != nil && s.Token != "" && s.Token != last { // OnNewLeader
				last = s.Token
				leaders <- last
			}
		}
	})
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
// holder that was stopped for longer than its lock lasted, and does not know it yet.
func ExampleLock_Fence_http() {
	lk, stop := connected(redlock.Options{})
	defer stop()
	ctx := context.Background()

	service := httptest.NewServer(&fence.Handler{Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent) // it has read or written the resource
	})})
	defer service.Close()
	put := func(l *redlock.Lock, body string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, service.URL+"/document", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		resp, err := fence.Send(service.Client(), req, l.Fence())
		if errors.Is(err, fence.ErrStale) {
			fmt.Println(body+":", fence.ErrStale)
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		fmt.Println(body+":", resp.Status)
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
	// the first, late: stale fence: a later holder of the lock has been here
}

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }
