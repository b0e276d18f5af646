package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// TestScriptFlushIsNoAmnesia: a server that drops its scripts still has its data. It is not quarantined.
func TestScriptFlushIsNoAmnesia(t *testing.T) {
	var heard told
	servers, lk := onServers(t, 3, heard.hearing(patient()))
	for range 20 {
		on(t, servers, "SCRIPT", "FLUSH")
		released(t, acquired(t, lk, "a"))
	}
	if got := heard.quarantines(); len(got) > 0 {
		t.Errorf("quarantined: %v", got)
	}
	nothingLeft(t, servers)
}

// TestQuarantineOff: with Options.Quarantine -1 every grant counts, as in other Redlock libraries:
// a node that has forgotten makes a second holder.
func TestQuarantineOff(t *testing.T) {
	servers, holder := onServers(t, 5, trusting())
	before := open(t, redistest.Clients(t, servers), trusting())
	l := heldBut(t, holder, servers, "a", []int{3, 4})
	if err := servers[0].Forget(); err != nil {
		t.Fatal(err)
	}
	for _, rival := range []*redlock.Locker{before, open(t, redistest.Clients(t, servers), trusting())} {
		var second *redlock.Lock
		eventually(t, 5*time.Second, "a second holder", func() bool {
			var err error
			second, err = rival.TryAcquire(t.Context(), "a")
			return err == nil
		})
		if left := time.Until(l.Until()); left <= 0 {
			t.Fatalf("the first lock had ended %v before", -left)
		}
		released(t, second)
	}
	_ = l.Release(t.Context())
	nothingLeft(t, servers)
}

// TestNewNodesHaveNoVotesForAQuarantine: brand-new nodes have no votes. The error says why, for how long and what to do; a
// call that waits gets the lock, and a later one need not wait.
func TestNewNodesHaveNoVotesForAQuarantine(t *testing.T) {
	t.Parallel()
	servers := redistest.NewServers(t, 3)
	opts := brief(1500 * time.Millisecond)
	begin := time.Now()
	lk := open(t, redistest.Clients(t, servers), opts)

	_, err := lk.TryAcquire(t.Context(), "a")
	named := wantKind(t, err, redlock.ErrNoQuorum).Nodes()
	if len(named) < 2 { // the round ends with the second
		t.Errorf("%v names %d nodes", err, len(named))
	}
	for _, n := range named {
		if n.Outcome != redlock.OutcomeQuarantined || n.TTL <= 0 || n.TTL > opts.Quarantine || !slices.Contains(addrs(servers), n.Node) {
			t.Errorf("%v, want a node that is quarantined for at most %v", n, opts.Quarantine)
		}
		if says := fmt.Sprintf("%s: quarantined for %s", n.Node, printable.Duration(n.TTL)); !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	if !strings.Contains(err.Error(), "Locker.WaitReady") {
		t.Errorf("%v does not name the way out", err)
	}

	hurry, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = lk.WaitReady(hurry)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Prepare in a hurry: %v", err)
	}
	for _, s := range servers {
		if says := s.Addr + ": quarantined for "; !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}

	// A client that comes in the middle waits for the rest.
	second := open(t, redistest.Clients(t, servers), opts)
	since := time.Since(begin)
	for _, n := range inspected(t, second, "a") {
		if n.Err == nil || n.Err.Outcome != redlock.OutcomeQuarantined || n.Err.TTL > opts.Quarantine-100*time.Millisecond {
			t.Errorf("%v after the first client came, the error of the second has for %s: %v", since, n.Node, n.Err)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	prepared := make(chan error, 1)
	go func() { prepared <- second.WaitReady(ctx) }()
	l, err := lk.Acquire(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(begin); waited < opts.Quarantine-5*time.Millisecond || waited > opts.Quarantine+slack {
		t.Errorf("the lock was acquired after %v, in a quarantine of %v", waited, opts.Quarantine)
	}
	released(t, l)
	if err := <-prepared; err != nil {
		t.Error(err)
	}
	if err := lk.WaitReady(ctx); err != nil {
		t.Error(err)
	}
	third := open(t, redistest.Clients(t, servers), opts)
	released(t, acquired(t, third, "a"))
	nothingLeft(t, servers)
}

// TestRenewedLockOutlivesARollingRestart: all five nodes are restarted without their data, one after another, each when
// the last one has a vote again. A holder that renews its lock keeps it, and gets it back on all
// nodes; no other client gets it.
func TestRenewedLockOutlivesARollingRestart(t *testing.T) {
	const ttl = 2 * time.Second // on a busy machine a renewal has taken a second
	servers, lk := besideOthers(t, 5, brief(ttl))
	rivals := open(t, redistest.Clients(t, servers), brief(ttl))
	l := acquired(t, lk, "a", redlock.AutoRenew())
	ctx := l.Context(t.Context())

	meanwhile, stop := context.WithCancel(t.Context())
	defer stop()
	var asking sync.WaitGroup
	t.Cleanup(asking.Wait)
	asking.Go(func() {
		for meanwhile.Err() == nil {
			time.Sleep(rand.N(100 * time.Millisecond)) // a rival's grant on a node prevents the refill
			if other, err := rivals.TryAcquire(t.Context(), "a"); err == nil {
				left := time.Until(l.Until())
				if left > 0 && ctx.Err() == nil {
					t.Errorf("a rival has the lock while its holder's is valid for %v", left)
				}
				_ = other.Release(t.Context())
			}
		}
	})
	for _, s := range servers {
		if err := s.Forget(); err != nil {
			t.Error(err)
			break
		}
		eventually(t, 20*time.Second, "all five to have the lock", func() bool {
			return ctx.Err() != nil || heldOn(t, servers, "a", l.Token()) == 5
		})
		allVote(t, lk)
		allVote(t, rivals)
	}
	stop()
	asking.Wait()
	if ctx.Err() != nil {
		t.Fatal(context.Cause(ctx))
	}
	released(t, l)
	nothingLeft(t, servers)
}

// TestLargerQuorum: if four votes of five are needed, two nodes that forget at once make no second
// holder, even for clients without quarantine.
func TestLargerQuorum(t *testing.T) {
	opts := trusting()
	opts.Quorum = 4
	servers, holder := besideOthers(t, 5, opts)
	before := open(t, redistest.Clients(t, servers), opts)
	for i := range 5 {
		name := fmt.Sprint(i)
		l := heldBut(t, holder, servers, name, []int{i})
		for _, s := range []*redisproc.Server{servers[(i+1)%5], servers[(i+3)%5]} {
			if err := s.Forget(); err != nil {
				t.Fatal(err)
			}
		}
		newcomer := open(t, redistest.Clients(t, servers), opts)
		for _, rival := range []*redlock.Locker{before, newcomer} {
			// The free node and the two that forgot vote for it. The call ends with the second refusal, when one of the
			// three may not have answered yet, and gives its vote back later: the next rival would find it held.
			allVote(t, rival)
			eventually(t, settleWithin, "three nodes without the lock", func() bool { return heldOn(t, servers, name, "") == 3 })
			second, err := rival.TryAcquire(t.Context(), name)
			if err == nil {
				t.Fatalf("%q has a second holder while the first is valid for %v", second.Name(), time.Until(l.Until()))
			}
			q := wantKind(t, err, redlock.ErrHeld)
			if q.Granted < 2 || q.Held != 2 || len(q.Nodes()) != 2 {
				t.Errorf("%d votes, held on %d nodes, not two or three votes and two nodes: %v", q.Granted, q.Held, err)
			}
		}
		_ = newcomer.Close()
		_ = l.Release(t.Context())
		lockAgain(t, holder)
	}
	nothingLeft(t, servers)
}
