package integration_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// TestConnections: a client has one connection to a node, however far away that is and whatever it has under way, and
// another one when it has waited for a lock.
func TestConnections(t *testing.T) {
	leaks.Check(t)
	server := redistest.Servers(t, 1)
	proxies := redistest.Proxies(t, server)
	proxies[0].SetDelay(5 * time.Millisecond)
	admin := redistest.Clients(t, server)[0]
	connected := func() int {
		about := make(facts.Facts)
		about.Add(admin.Info(t.Context(), "clients").Val())
		n, err := strconv.Atoi(about["connected_clients"])
		if err != nil {
			t.Fatalf("%v: %v", about, err)
		}
		return n - 1 // the admin's
	}
	lk := open(t, redistest.ProxyClients(t, proxies), trusting())
	begin := time.Now()
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond / 4)
			for range 5 {
				released(t, acquired(t, lk, fmt.Sprint("a", i)))
			}
		})
	}
	calls.Wait()
	t.Logf("64 callers took %v for 5 locks each, one after another", time.Since(begin))
	if n := connected(); n != 1 {
		t.Errorf("%d connections", n)
	}
	waits(t, lk)
	if n := connected(); n != 2 {
		t.Errorf("%d connections of a client that has waited", n)
	}
}

// TestGoroutines: a Locker has three goroutines for each node, one of them when it has waited for a lock.
func TestGoroutines(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 5)
	running := func(n int) int {
		clients := redistest.Clients(t, servers[:n])
		before := leaks.Running()
		waits(t, open(t, clients, trusting()))
		return leaks.Running() - before
	}
	if one, five := running(1), running(5); five-one != 4*3 {
		t.Errorf("%d goroutines with one node, and %d with five", one, five)
	}
}

// waits has a Locker wait for a lock, and get it.
func waits(t *testing.T, lk *redlock.Locker) {
	t.Helper()
	held := acquired(t, lk, "held")
	time.AfterFunc(200*time.Millisecond, func() { released(t, held) })
	waited, err := lk.Acquire(t.Context(), "held")
	if err != nil {
		t.Fatal(err)
	}
	released(t, waited)
}

// TestRefusedForMaxClients: a server that has as many clients as it admits says so, and the error has its words.
func TestRefusedForMaxClients(t *testing.T) {
	leaks.Check(t)
	server := redistest.Servers(t, 1)
	admin := redistest.Clients(t, server)[0]
	if err := admin.ConfigSet(t.Context(), "maxclients", "1").Err(); err != nil {
		t.Fatal(err)
	}
	lk := open(t, redistest.Clients(t, server), trusting())
	_, err := lk.TryAcquire(t.Context(), "a")
	q := wantKind(t, err, redlock.ErrNoQuorum)
	if n := q.Nodes(); len(n) != 1 || n[0].Outcome != redlock.OutcomeBusy || !strings.Contains(err.Error(), "ERR max number of clients reached") {
		t.Error(err)
	}
	if err := admin.ConfigSet(t.Context(), "maxclients", "1000").Err(); err != nil {
		t.Fatal(err)
	}
	lockAgain(t, lk)
}
