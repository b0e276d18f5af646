package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestFailoverClientsAreNodesOfTheirOwn: clients that ask sentinels for their server have all the same address. They are the
// ways to different nodes all the same.
func TestFailoverClientsAreNodesOfTheirOwn(t *testing.T) {
	fences(t, func(f *fenced) {
		open := func() *redlock.Locker {
			f.Helper()
			var clients []*redis.Client
			for i := range 3 {
				o := f.Options(i)
				o.Addr = wire.AnyAddress
				clients = append(clients, redis.NewClient(o))
				f.Cleanup(func() { clients[i].Close() })
			}
			lk, err := redlock.New(clients, nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Cleanup(func() { lk.Close() })
			if err := lk.WaitReady(f.Context()); err != nil {
				f.Fatal(err)
			}
			return lk
		}
		lk := open()
		l := atRest(f.T, lk, "name")
		pass(time.Second)
		for i := range 3 {
			if got := f.Keys(i); len(got) != 1 {
				f.Errorf("node %d has %q", i, got)
			}
		}
		if _, err := open().TryAcquire(f.Context(), "name"); !errors.Is(err, redlock.ErrHeld) {
			f.Errorf("another program: %v", err)
		}
		_ = l.Release(f.Context())
		f.Kill(0)
		f.Kill(1)
		pass(time.Second)
		if _, err := lk.TryAcquire(f.Context(), "alone"); !errors.Is(err, redlock.ErrNoQuorum) {
			f.Errorf("with one node of three: %v", err)
		}
	})
}

// TestOtherAddressesAreTheSameNodes: a program that calls the nodes by other addresses than the set has is one of its
// programs, however late the nodes answer at one address or the other.
func TestOtherAddressesAreTheSameNodes(t *testing.T) {
	for slow := range 4 { // the node whose other address is slow; 3: none
		if !need.Sample(slow, 4) {
			continue
		}
		fences(t, func(f *fenced) {
			first, err := redlock.New(f.Clients()[:3], nil)
			if err == nil {
				err = f.ready(first)
			}
			if err != nil {
				f.Fatal(err)
			}
			defer first.Close()
			held := atRest(f.T, first, "held", redlock.AutoRenew())
			pass(time.Second)
			var clients []*redis.Client
			for i := range 3 {
				o := f.Options(i)
				o.Addr = fmt.Sprintf("10.9.9.%d:6379", i)
				dial := o.Dialer
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if i == slow && addr == o.Addr { // New waits for it, and the address that the set has comes first
						time.Sleep(30 * time.Millisecond)
					}
					for j := range 3 {
						if addr == f.Addr(j) {
							return f.Options(j).Dialer(ctx, network, addr)
						}
					}
					return dial(ctx, network, addr)
				}
				clients = append(clients, redis.NewClient(o))
				f.Cleanup(func() { clients[i].Close() })
			}
			for range 2 {
				lk, err := redlock.New(clients, nil)
				if err != nil {
					f.Fatalf("node %d is slow: %v", slow, err)
				}
				if _, err := lk.TryAcquire(f.Context(), "held"); !errors.Is(err, redlock.ErrHeld) {
					f.Errorf("node %d is slow: %v", slow, err)
				}
				pass(10 * time.Second)
				l, err := lk.TryAcquire(f.Context(), "free")
				if err != nil {
					f.Fatalf("node %d is slow: %v", slow, err)
				}
				pass(time.Second)
				for i := range 3 {
					if got := f.Keys(i); !slices.Contains(got, "free") {
						f.Errorf("node %d is slow: node %d has %q", slow, i, got)
					}
				}
				_ = l.Release(f.Context())
				lk.Close()
			}
			_ = held.Release(f.Context())
		})
	}
}
