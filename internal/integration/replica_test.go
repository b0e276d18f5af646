package integration_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/redis/go-redis/v9"
)

// A switchboard is an address behind which the server can be exchanged. Clients keep their
// connections, as they do with proxies that speak Redis, and notice nothing.
type switchboard struct {
	listener net.Listener
	accepted atomic.Int64
	workers  sync.WaitGroup

	mu      sync.Mutex
	target  string
	clients []net.Conn
}

func newSwitchboard(t testing.TB, target string) *switchboard {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &switchboard{listener: listener, target: target}
	b.workers.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			b.accepted.Add(1)
			b.mu.Lock()
			b.clients = append(b.clients, client)
			b.mu.Unlock()
			b.workers.Go(func() { b.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		b.hangUp()
		b.workers.Wait()
	})
	return b
}

// serve carries requests to the server of that moment.
func (b *switchboard) serve(client net.Conn) {
	defer client.Close()
	var server net.Conn
	var of string
	for buf := make([]byte, 32<<10); ; {
		n, err := client.Read(buf)
		b.mu.Lock()
		target := b.target
		b.mu.Unlock()
		if server != nil && (err != nil || of != target) {
			_ = server.Close()
		}
		if err != nil {
			return
		}
		if of != target {
			if server, err = net.Dial("tcp", target); err != nil {
				return
			}
			of = target
			b.workers.Go(func() { _, _ = io.Copy(client, server) })
		}
		_, _ = server.Write(buf[:n])
	}
}

func (b *switchboard) connect(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.target = target
}

// hangUp ends all connections of the clients.
func (b *switchboard) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.clients {
		_ = c.Close()
	}
}

// replicate makes one server a replica of the server at the address, and waits until it has the data.
func replicate(t testing.TB, s *redisproc.Server, master string) {
	t.Helper()
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		t.Fatal(err)
	}
	ask(t, s, "REPLICAOF", host, port)
	eventually(t, 20*time.Second, "the replica to have the data", func() bool {
		return strings.Contains(fmt.Sprint(ask(t, s, "INFO", "replication")), "master_link_status:up")
	})
}

// atOnce makes a server send its data at once to a replica that asks for it, without a wait for other replicas.
var atOnce = []string{"--repl-diskless-sync-delay", "0"}

// TestPromotedReplica: a node dies, and its replica takes its place. The replica has been up for as
// long and has the node's marker, but not the last lock. A client that makes a new connection finds
// out, and so does one whose connection a proxy has kept.
func TestPromotedReplica(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		t.Run(fmt.Sprintf("connections kept %v", keeps), func(t *testing.T) {
			leaks.Check(t)
			const ttl = time.Second
			servers := redistest.Servers(t, 5, atOnce...)
			replica := redistest.Servers(t, 1)[0]
			// It has been a node itself, so it has the scripts.
			former := open(t, redistest.Clients(t, []*redisproc.Server{replica}), brief(ttl))
			released(t, acquired(t, former, "a"))
			_ = former.Close()
			link := redistest.Proxies(t, servers[:1])[0]
			replicate(t, replica, link.Addr())
			if copied, own := ask(t, replica, "GET", script.Marker), ask(t, servers[0], "GET", script.Marker); copied != own || own == nil {
				t.Fatalf("the replica has the marker %v of %v", copied, own)
			}

			board := newSwitchboard(t, servers[0].Addr)
			clients := func() []*redis.Client {
				first := redis.NewClient(&redis.Options{Addr: board.listener.Addr().String()})
				t.Cleanup(func() { _ = first.Close() })
				return append([]*redis.Client{first}, redistest.Clients(t, servers[1:])...)
			}
			holder, before := open(t, clients(), brief(ttl)), open(t, clients(), brief(ttl))
			link.Cut()
			l := heldBut(t, holder, servers, "a", []int{3, 4})
			servers[0].Kill()
			ask(t, replica, "REPLICAOF", "NO", "ONE")
			board.connect(replica.Addr)
			if !keeps {
				board.hangUp()
			}
			accepted := board.accepted.Load()
			refused := contest(t, l, board.listener.Addr().String(), before)
			if reconnected := board.accepted.Load() > accepted; reconnected == keeps {
				t.Errorf("the rival made a new connection: %v", reconnected)
			}
			if refused == 0 {
				t.Error("no rival asked the replica in time: this tests nothing")
			}
			allVote(t, before)
			newcomer := open(t, clients(), brief(ttl))
			released(t, acquired(t, newcomer, "b"))
		})
	}
}

// TestReplicaAndBack: a node is made a replica of an empty server, and then a master again. It is
// the same process, and no connection breaks; only its data is gone. As long as it is a replica it
// has no vote either.
func TestReplicaAndBack(t *testing.T) {
	leaks.Check(t)
	for _, asked := range []bool{false, true} {
		t.Run(fmt.Sprintf("asked meanwhile %v", asked), func(t *testing.T) {
			t.Parallel() // it mostly waits
			const ttl = 2 * time.Second
			servers := redistest.Servers(t, 5)
			holder := open(t, redistest.Clients(t, servers), brief(ttl))
			empty := redistest.NewServers(t, 1, atOnce...)[0]
			var heard told
			before := open(t, redistest.Clients(t, servers), heard.hearing(brief(ttl)))
			l := heldBut(t, holder, servers, "a", []int{3, 4})
			replicate(t, servers[0], empty.Addr)
			if asked {
				_, err := before.TryAcquire(t.Context(), "a")
				if n := nodeOf(err, servers[0].Addr); n == nil || n.Outcome != redlock.OutcomeReadOnly && n.Outcome != redlock.OutcomeIneligible {
					t.Errorf("a replica is asked for its vote: %v", err)
				}
			}
			ask(t, servers[0], "REPLICAOF", "NO", "ONE")
			newcomer := open(t, redistest.Clients(t, servers), brief(ttl))
			if contest(t, l, servers[0].Addr, before, newcomer) == 0 {
				t.Error("no rival asked the node in time: this tests nothing")
			}
			if !asked && len(heard.down) > 0 {
				t.Errorf("the connection was to stand, and the rival lost %v", heard.down)
			}
			allVote(t, before)
			nothingLeft(t, servers)
		})
	}
}
