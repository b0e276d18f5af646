package integration_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// inRealScene is inScene on real servers.
func inRealScene(t *testing.T, separator string, f func(*scene)) {
	leaks.Check(t)
	servers := redistest.Servers(t, 3)
	opts := patient()
	opts.Separator = separator
	one, other := open(t, redistest.Clients(t, servers), opts), open(t, redistest.Clients(t, servers), opts)
	f(&scene{T: t, separator: separator, one: one, other: other, clients: redistest.Clients(t, servers), left: func() []string {
		nothingLeft(t, servers)
		return nil
	}})
}

func TestKindsMatrixOnServers(t *testing.T) {
	for _, separator := range []string{"/", ""} {
		t.Run(fmt.Sprintf("separator %q", separator), func(t *testing.T) {
			inRealScene(t, separator, (*scene).all)
		})
	}
}

func TestKindsBesidePlainRedlockOnServers(t *testing.T) {
	inRealScene(t, "/", (*scene).beside)
}

// TestReadersAndWritersOnServers: they are served in turn, and readers that come one after another
// together; for a folder that has two of the names in it.
func TestReadersAndWritersOnServers(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 3)
	opts := &redlock.Options{TTL: 30 * time.Second, Separator: "/"}
	holder := open(t, redistest.Clients(t, servers), opts)
	first := acquired(t, holder, "p")
	var mu sync.Mutex
	var order []string
	var waiting sync.WaitGroup
	for i, who := range []string{"reader", "reader", "writer", "reader in A", "reader in B", "reader", "writer in A", "writer in B", "reader"} {
		lk := open(t, redistest.Clients(t, servers), opts)
		name, options := "p", []redlock.AcquireOption(nil)
		if kind, where, in := strings.Cut(who, " in "); in {
			name, who = "p/"+where, kind
		}
		if who == "reader" {
			options = append(options, redlock.Shared())
		}
		waiting.Go(func() {
			l, err := lk.Acquire(context.WithoutCancel(t.Context()), name, options...)
			if err != nil {
				t.Errorf("%s of %s, which came as number %d: %v", who, name, i, err)
				return
			}
			mu.Lock()
			order = append(order, who)
			mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			released(t, l)
		})
		queued(t, holder, "p", i+1, len(servers))
	}
	for _, s := range servers {
		subscribed(t, s, 9)
	}
	begin := time.Now()
	released(t, first)
	waiting.Wait()
	took := time.Since(begin)
	want := "reader reader writer reader reader reader writer writer reader"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("served as %s, want %s", got, want)
	}
	if took > 5*50*time.Millisecond+slack {
		t.Errorf("five turns took %v", took)
	}
	t.Logf("five turns in %v", took)
	nothingLeft(t, servers)
}

// TestSlotsOnServers: many waiters for one of three slots, each in a process of its own. There are
// never more than three holders, and all are served, by calls and not by heartbeats.
func TestSlotsOnServers(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 3)
	const slots, processes = 3, 8
	var mu sync.Mutex
	in := make(map[*redlock.Lock]bool)
	most := 0
	var calls sync.WaitGroup
	begin := time.Now()
	for range processes {
		lk := open(t, redistest.Clients(t, servers), &redlock.Options{TTL: 30 * time.Second})
		calls.Go(func() {
			for range cycles(50) {
				l, err := lk.Acquire(t.Context(), "jobs", redlock.Slots(slots))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				in[l] = true
				most = max(most, len(in))
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				delete(in, l)
				mu.Unlock()
				released(t, l)
			}
		})
	}
	calls.Wait()
	if most != slots {
		t.Errorf("%d had one of %d slots at once", most, slots)
	}
	t.Logf("%d served in %v", processes*cycles(50), time.Since(begin))
	nothingLeft(t, servers)
}
