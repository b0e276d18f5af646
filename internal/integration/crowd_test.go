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
	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/redistest/leaks"
)

// TestFurtherConnectionsGiveWay: a client has up to eight connections to a node that is far away, and all but the
// first give way where half of the clients that the server admits are there. So a few programs do not shut out
// another one.
func TestFurtherConnectionsGiveWay(t *testing.T) {
	leaks.Check(t)
	server := redistest.Servers(t, 1, "--maxclients", "20")
	proxies := redistest.Proxies(t, server)
	proxies[0].SetDelay(2 * time.Millisecond) // each way
	connected := func() int {
		about := make(facts.Facts)
		about.Add(ask(t, server[0], "INFO", "clients").(string))
		n, err := strconv.Atoi(about["connected_clients"])
		if err != nil || about["maxclients"] != "20" {
			t.Fatalf("%v: %v", about, err)
		}
		return n
	}
	// On a busy computer, where round trips differ, a client gets its connections one at a time, when all are in use.
	first := open(t, redistest.ProxyClients(t, proxies), trusting())
	for until := time.Now().Add(20 * time.Second); connected() < 8; {
		if time.Now().After(until) {
			t.Fatal("this tests nothing: the first client has too few connections")
		}
		var calls sync.WaitGroup
		for i := range 8 {
			calls.Go(func() { released(t, acquired(t, first, fmt.Sprint("a", i))) })
		}
		calls.Wait()
	}
	lockers := []*redlock.Locker{first}
	for range 9 {
		lockers = append(lockers, open(t, redistest.ProxyClients(t, proxies), trusting()))
	}
	for _, lk := range lockers {
		released(t, acquired(t, lk, "a"))
	}
	t.Logf("%d connections of 20", connected())
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
