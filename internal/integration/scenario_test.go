package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/integration"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

func TestNineWorkers(t *testing.T) {
	servers, lk := onServers(t, 5, patient())
	stranger := open(t, redistest.Clients(t, servers), patient())
	for i := range cycles(50) {
		name := fmt.Sprint("job", i)
		winners, losers := integration.NineWorkers(t.Context(), lk, name)
		if len(winners) != 1 || len(losers) != 8 {
			t.Fatalf("%d winners and %d losers", len(winners), len(losers))
		}
		won := winners[0]
		for _, err := range losers {
			if got := integration.Holder(err); got != won.Token() {
				t.Errorf("a loser is told that %q has it, not %q: %v", got, won.Token(), err)
			}
		}
		// Only its owner can release it: the others do not have its token, and what their attempts release is
		// something else.
		_, err := stranger.TryAcquire(t.Context(), name)
		wantKind(t, err, redlock.ErrHeld)
		eventually(t, settleWithin, "the winner to have all nodes but for what losers gave back", func() bool {
			return heldOn(t, servers, name, won.Token()) >= 3
		})
		if err := won.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		released(t, won)
		released(t, acquired(t, stranger, name))
	}
	nothingLeft(t, servers)
}

// waitFor wants a lock whose holder never releases it, and waits no longer than patience.
func waitFor(ctx context.Context, lk *redlock.Locker, name string, patience time.Duration) (*redlock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return lk.Acquire(ctx, name)
}

// waitingIsBounded: a call that waits for less than the lock's TTL gets an error that says both
// that the time is up and that the lock is held; one that waits for longer gets the lock.
func waitingIsBounded(t *testing.T, lk *redlock.Locker, patience, ttl, precision time.Duration) {
	begin := time.Now()
	dead := acquired(t, lk, "a", redlock.TTL(ttl))
	_, err := waitFor(t.Context(), lk, "a", patience)
	if took := time.Since(begin); took < patience || took > patience+precision {
		t.Errorf("gave up after %v, not %v", took, patience)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v hides the context's error", err)
	}
	wantKind(t, err, redlock.ErrHeld)
	if got := integration.Holder(err); got != dead.Token() {
		t.Errorf("held by %q, not %q: %v", got, dead.Token(), err)
	}
	l, err := waitFor(t.Context(), lk, "a", ttl)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < ttl || took > ttl+precision {
		t.Errorf("got it after %v, not %v", took, ttl)
	}
	released(t, l)
}

func TestWaitTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		b := redistest.NewBubble(t, 5)
		lk := open(t, b.Clients(), &redlock.Options{TTL: 30 * time.Second})
		waitingIsBounded(t, lk, 10*time.Second, 30*time.Second, 10*time.Millisecond)
	})
}

func TestWaitOnServers(t *testing.T) {
	servers, lk := besideOthers(t, 5, patient())
	waitingIsBounded(t, lk, time.Second, 3*time.Second, slack)
	nothingLeft(t, servers)
}

func TestUnderLock(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
	got := integration.UnderLock(t.Context(), lk, "printer")
	want := []string{"error: <nil>, false", "error: out of paper, true", "panic: paper jam"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	nothingLeft(t, servers)
}
