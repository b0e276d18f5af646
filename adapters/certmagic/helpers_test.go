package certmagicredlock_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/quorumlock/redlock"
	certmagicredlock "github.com/quorumlock/redlock/adapters/certmagic"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// inBubble runs a test in virtual time, with three nodes that have votes.
func inBubble(t *testing.T, f func(t *testing.T, nodes *redistest.Bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		nodes := redistest.NewBubble(t, 3)
		if err := locker(t, nodes).WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		f(t, nodes)
	})
}

// locker is what one process has.
func locker(t *testing.T, nodes *redistest.Bubble) *redlock.Locker {
	t.Helper()
	lk, err := redlock.New(nodes.Clients(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lk.Close() })
	return lk
}

// instance is a process' storage; where those of several are the same directory, they
// are a cluster.
func instance(t *testing.T, nodes *redistest.Bubble, dir string) *certmagicredlock.Storage {
	t.Helper()
	return certmagicredlock.New(&certmagic.FileStorage{Path: dir}, locker(t, nodes))
}

func lock(t *testing.T, s *certmagicredlock.Storage, name string) {
	t.Helper()
	if err := s.Lock(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

func unlock(t *testing.T, s *certmagicredlock.Storage, name string) {
	t.Helper()
	if err := s.Unlock(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// locking begins to lock a name, and returns when it waits for it.
func locking(ctx context.Context, s *certmagicredlock.Storage, name string) (locked chan error) {
	locked = make(chan error, 1)
	go func() { locked <- s.Lock(ctx, name) }()
	synctest.Wait()
	time.Sleep(time.Second) // virtual: long enough for any round trip
	return locked
}

func waits(t *testing.T, locked chan error) {
	t.Helper()
	select {
	case err := <-locked:
		t.Fatalf("Lock has returned %v, and should wait", err)
	default:
	}
}
