package integration_test

import (
	"strings"
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
	var lockers []*redlock.Locker
	for range 10 {
		lockers = append(lockers, open(t, redistest.ProxyClients(t, proxies), trusting()))
	}
	for _, lk := range lockers {
		released(t, acquired(t, lk, "a"))
	}
	about := make(facts.Facts)
	about.Add(ask(t, server[0], "INFO", "clients").(string))
	t.Logf("%s connections of %s", about["connected_clients"], about["maxclients"])
	if about["maxclients"] != "20" || about["connected_clients"] < "12" { // the first one has eight
		t.Errorf("this tests nothing: %v", about)
	}
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
