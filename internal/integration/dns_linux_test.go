package integration_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// A zone is a DNS server that has one address for all names.
type zone struct {
	conn    net.PacketConn
	last    atomic.Int32 // byte of the address 127.0.0.x
	answers atomic.Int64
}

// useZone makes this process ask a zone for the addresses of hosts until the test ends.
func useZone(t *testing.T) *zone {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z, was, done := &zone{conn: conn}, net.DefaultResolver, make(chan struct{})
	go func() { defer close(done); z.serve() }()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = was; _ = conn.Close(); <-done })
	return z
}

// serve answers a question for an IPv4 address with the present one, and any other with none.
func (z *zone) serve() {
	for buf := make([]byte, 1500); ; {
		n, from, err := z.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		end := 12 // of the header; the name follows, its type and its class
		for end < n && buf[end] != 0 {
			end += 1 + int(buf[end])
		}
		if end += 5; end > n {
			continue
		}
		reply := append([]byte(nil), buf[:end]...)
		reply[2], reply[3] = 0x84, 0 // an answer, with authority
		clear(reply[6:12])           // no records
		if binary.BigEndian.Uint16(reply[end-4:]) == 1 {
			reply[7] = 1 // one: of the name at byte 12, an address, for 0 seconds
			reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, byte(z.last.Load()))
			z.answers.Add(1)
		}
		_, _ = z.conn.WriteTo(reply, from)
	}
}

// TestHostThatMoves: a node is given by the name of its host, which dies, and the name is given to another host with an
// empty server. Clients find that by themselves, the lock that is held stays, and the server has a vote for the next one
// when its quarantine is over, and not before.
func TestHostThatMoves(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 4)
	z := useZone(t)
	z.last.Store(1)
	_, port, err := net.SplitHostPort(servers[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.2:"+port)
	forwards(t, other, err, servers[3].Addr)
	nodes := []string{"redis://moves.test:" + port, servers[1].URL(), servers[2].URL()}
	opts := brief(time.Second)
	connect := func() *redlock.Locker {
		t.Helper()
		lk, err := redlock.Connect(nodes, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lk.Close() })
		return lk
	}
	lk := connect()
	held := acquired(t, lk, "held", redlock.AutoRenew())

	if err := servers[3].Forget(); err != nil { // or it would count as one that is known
		t.Fatal(err)
	}
	servers[0].Kill()
	z.last.Store(2)
	moved := time.Now()
	eventually(t, 10*time.Second, "the name to lead to the other server", func() bool {
		n := inspected(t, lk, "held")[0]
		return n.Err != nil && n.Err.Outcome == redlock.OutcomeQuarantined
	})
	if err := held.Extend(t.Context()); err != nil {
		t.Errorf("by the nodes that have not moved: %v", err)
	}
	released(t, held)
	servers[1].Kill() // now no quorum is left without the server
	for _, each := range []*redlock.Locker{lk, connect()} {
		switch l, err := each.TryAcquire(t.Context(), "other"); {
		case err == nil && time.Since(moved) < opts.Quarantine:
			t.Error("a server without a past votes at once")
		case err == nil: // the machine is slow
			released(t, l)
		default:
			wantKind(t, err, redlock.ErrNoQuorum)
		}
	}
	restart(t, servers[1])
	eventually(t, 10*time.Second, "all votes", func() bool {
		n := inspected(t, lk, "any")
		return n[0].Err == nil && n[1].Err == nil && n[2].Err == nil
	})
	servers[1].Kill()
	released(t, acquired(t, lk, "other"))
	if z.answers.Load() < 2 {
		t.Errorf("the zone was asked %d times", z.answers.Load())
	}
}
