package integration_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// TestHungMinority: two of five servers are stopped; the clients have default options. Locks are
// acquired and released as if all were well, without a goroutine for each, and when the servers go
// on nothing is left on them either (C1, C2).
func TestHungMinority(t *testing.T) {
	const nodeTimeout = 2 * time.Second // so long that a busy machine does not look like a wait
	servers, lk := onServers(t, 5, &redlock.Options{TTL: time.Minute, NodeTimeout: nodeTimeout})
	released(t, acquired(t, lk, "warm"))
	hang(t, servers[:2]...)

	goroutines := runtime.NumGoroutine()
	var slowest time.Duration
	most := 0
	for i := range cycles(10_000) {
		begin := time.Now()
		l, err := lk.TryAcquire(t.Context(), fmt.Sprint("job", i%100))
		if err != nil {
			t.Fatalf("cycle %d: %v", i, err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatalf("cycle %d: %v", i, err)
		}
		if i > 0 {
			slowest = max(slowest, time.Since(begin))
		}
		most = max(most, runtime.NumGoroutine())
	}
	if slowest > nodeTimeout/2 {
		t.Errorf("the slowest cycle took %v, half a NodeTimeout is %v", slowest, nodeTimeout/2)
	}
	if more := most - goroutines; more > 10 { // a lane that reconnects has some
		t.Errorf("%d goroutines more than before", more)
	}
	resume(t, servers[:2]...)
	nothingLeft(t, servers)
}

// TestHungMajority: three of five servers are stopped. The answer comes within NodeTimeout, or when
// ctx ends, and names the three.
func TestHungMajority(t *testing.T) {
	const nodeTimeout = 2 * time.Second
	servers, lk := besideOthers(t, 5, &redlock.Options{TTL: time.Minute, NodeTimeout: nodeTimeout})
	released(t, acquired(t, lk, "warm"))
	hang(t, servers[:3]...)

	ctx, cancel := context.WithTimeout(t.Context(), nodeTimeout/20)
	defer cancel()
	begin := time.Now()
	_, err := lk.TryAcquire(ctx, "a")
	if took := time.Since(begin); took > nodeTimeout/20+slack {
		t.Errorf("with %v to go it took %v", nodeTimeout/20, took)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v hides the context's error", err)
	}
	wantNodes(t, wantKind(t, err, redlock.ErrNoQuorum), redlock.OutcomeTimeout, addrs(servers[:3])...)

	for i := range 3 {
		begin = time.Now()
		_, err = lk.TryAcquire(t.Context(), "a")
		took := time.Since(begin)
		wantNodes(t, wantKind(t, err, redlock.ErrNoQuorum), redlock.OutcomeTimeout, addrs(servers[:3])...)
		if took > nodeTimeout+slack || i > 0 && took > slack {
			t.Errorf("attempt %d without a deadline took %v", i, took)
		}
	}
	nothingLeft(t, servers[3:])
	resume(t, servers[:3]...)
	nothingLeft(t, servers)
	lockAgain(t, lk)
}

// TestKilledMajority: three of five servers are killed. The error names them as unreachable, and
// they vote again soon after they were started.
func TestKilledMajority(t *testing.T) {
	servers, lk := onServers(t, 5, trusting())
	released(t, acquired(t, lk, "warm"))
	for _, s := range servers[:3] {
		s.Kill()
	}
	for range 10 {
		_, err := lk.TryAcquire(t.Context(), "a")
		wantNodes(t, wantKind(t, err, redlock.ErrNoQuorum), redlock.OutcomeUnreachable, addrs(servers[:3])...)
	}
	restart(t, servers[:3]...)
	lockAgain(t, lk)
	nothingLeft(t, servers)
}

// TestCallAfterARestartDoesNotFail: all servers were restarted while there was no call. The next call must not fail for it.
func TestCallAfterARestartDoesNotFail(t *testing.T) {
	servers, lk := besideOthers(t, 3, trusting())
	released(t, acquired(t, lk, "a"))
	used := time.Now()
	for _, s := range servers {
		s.Kill()
	}
	restart(t, servers...)
	// Longer than a lane uses a connection without a check.
	eventually(t, 10*time.Second, "idle for long enough", func() bool { return time.Since(used) > 1200*time.Millisecond })
	released(t, acquired(t, lk, "a"))
}

// TestNoOrphansAlone: a round ends with the third of five grants, and the release follows at once.
// It never overtakes the other two acquires (C3).
func TestNoOrphansAlone(t *testing.T) {
	servers, lk := onServers(t, 5, patient())
	for i := range cycles(5_000) {
		l, err := lk.TryAcquire(t.Context(), fmt.Sprint("job", i))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	nothingLeft(t, servers)
}

// TestNoOrphansContended: eight Lockers want one key at once, 300 times. At most one of them gets
// it, and the grants of the others are released (C3).
func TestNoOrphansContended(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 5)
	var lockers []*redlock.Locker
	for range 8 {
		lockers = append(lockers, open(t, redistest.Clients(t, servers), patient()))
	}
	rounds := 0
	for i := range cycles(300) {
		var mu sync.Mutex
		var winners []*redlock.Lock
		var all sync.WaitGroup
		begin := make(chan struct{})
		for _, lk := range lockers {
			all.Go(func() {
				<-begin
				l, err := lk.TryAcquire(t.Context(), "a")
				if err != nil {
					wantKind(t, err, redlock.ErrHeld)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, l)
			})
		}
		close(begin)
		all.Wait()
		if len(winners) > 1 {
			t.Fatalf("round %d has %d winners", i, len(winners))
		}
		for _, l := range winners {
			rounds++
			released(t, l)
		}
	}
	t.Logf("%d rounds had a winner", rounds)
	if rounds == 0 {
		t.Error("no Locker ever won")
	}
	nothingLeft(t, servers)
}

// TestHungNodeStock: one hung node of five, or three, with callers that set no timeouts (C1).
func TestHungNodeStock(t *testing.T) {
	servers, lk := besideOthers(t, 5, &redlock.Options{TTL: 4 * time.Second})
	patient := open(t, redistest.Clients(t, servers), &redlock.Options{TTL: 10 * time.Second, NodeTimeout: 5 * time.Second})
	hang(t, servers[0])
	for range 5 {
		begin := time.Now()
		l := acquired(t, lk, "free")
		released(t, l)
		if took := time.Since(begin); took > slack {
			t.Errorf("a free lock took %v", took)
		}
	}
	hang(t, servers[1:3]...)
	for name, acquire := range map[string]func(context.Context, string, ...redlock.AcquireOption) (*redlock.Lock, error){
		"TryAcquire": patient.TryAcquire, "Acquire": lk.Acquire,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		begin := time.Now()
		_, err := acquire(ctx, "free")
		took := time.Since(begin)
		cancel()
		if took > time.Second+slack || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s with a second to go returned after %v: %v", name, took, err)
		}
		wantKind(t, err, redlock.ErrNoQuorum)
	}
	resume(t, servers[:3]...)
	nothingLeft(t, servers)
}

// TestNewWithHungNode: New waits for at most a NodeTimeout for nodes that do not answer, and goes
// on without them.
func TestNewWithHungNode(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 5)
	hang(t, servers[:2]...)
	begin := time.Now()
	lk := open(t, redistest.Clients(t, servers), patient())
	released(t, acquired(t, lk, "a"))
	if took := time.Since(begin); took > patient().NodeTimeout+slack {
		t.Errorf("the first lock took %v", took)
	}
	resume(t, servers[:2]...)
	nothingLeft(t, servers)
}

// TestFloodWithHungNode: 200 callers at once, with one hung node of five, need no goroutines but
// their own (C2).
func TestFloodWithHungNode(t *testing.T) {
	const callers = 200
	servers, lk := onServers(t, 5, patient())
	hang(t, servers[4])
	goroutines := runtime.NumGoroutine()
	var locks atomic.Int64
	var all sync.WaitGroup
	stop := time.Now().Add(time.Second)
	for i := range callers {
		all.Go(func() {
			for time.Now().Before(stop) {
				l, err := lk.TryAcquire(t.Context(), fmt.Sprint("job", i))
				if err != nil {
					t.Error(err)
					return
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
					return
				}
				locks.Add(1)
			}
		})
	}
	most := 0
	eventually(t, 5*time.Second, "the end of the flood", func() bool {
		most = max(most, runtime.NumGoroutine())
		return time.Now().After(stop)
	})
	all.Wait()
	if more := most - goroutines; more > callers+5*8 { // on a busy machine a link seems to be far, and a lane has up to eight connections
		t.Errorf("%d goroutines for %d callers", more, callers)
	}
	t.Logf("%d locks", locks.Load())
	resume(t, servers[4])
	nothingLeft(t, servers)
}
