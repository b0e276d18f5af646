package memredis_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

// Kill and Restart take turns, whoever calls them, and while the clock goes on.
func TestKillAndRestartTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memredis.NewNode(0)
		defer n.Close()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				time.Sleep(time.Duration(i % 3))
				if i%2 == 0 {
					n.Kill()
				} else {
					n.Restart(true)
				}
			})
		}
		all.Wait()
		n.Kill()
		if _, err := n.Dial(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a killed node says %v", err)
		}
		n.Restart(true)
		conn, err := n.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	})
}

// TestEachNodeHasAnAddressOfItsOwn: also where there are more nodes than a byte can count.
func TestEachNodeHasAnAddressOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(map[string]bool)
		for i := range 600 {
			n := memredis.NewNode(i)
			seen[n.Addr()] = true
			n.Close()
		}
		if len(seen) != 600 || !seen["10.0.0.1:6379"] {
			t.Errorf("600 nodes have %d addresses", len(seen))
		}
	})
}

// TestQuietDialerFailsAtTheFirstUse: a dialer that is made quiet returns a connection all the same, which fails with
// the error when it is used: go-redis logs failed dials.
func TestQuietDialerFailsAtTheFirstUse(t *testing.T) {
	down := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	dial := memredis.Quiet(func(context.Context, string, string) (net.Conn, error) { return nil, down })
	conn, err := dial(t.Context(), "tcp", "10.0.0.1:6379")
	if err != nil {
		t.Fatal(err)
	}
	_, reading := conn.Read(make([]byte, 1))
	_, writing := conn.Write([]byte("a"))
	if reading != down || writing != down {
		t.Errorf("reading says %v, writing %v", reading, writing)
	}
	if err := errors.Join(conn.SetDeadline(time.Now()), conn.SetReadDeadline(time.Now()), conn.SetWriteDeadline(time.Now()), conn.Close()); err != nil {
		t.Error(err)
	}
	if conn.LocalAddr() == nil || conn.RemoteAddr() == nil {
		t.Error("it has no address")
	}
}
