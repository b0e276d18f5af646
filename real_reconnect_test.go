package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redistest"
)

// TestRestartJustNow: all servers were restarted a moment ago. The first to want a
// lock finds that out, for the connections still looked well; soon after locks are
// to be had again.
func TestRestartJustNow(t *testing.T) {
	servers, lk := onServers(t, 3, nil)
	for range 5 {
		for _, s := range servers {
			s.Kill()
		}
		restart(t, servers...)
		var l *redlock.Lock
		eventually(t, 3*time.Second, "a lock", func() (ok bool) {
			var err error
			l, err = lk.TryAcquire(t.Context(), "a")
			return err == nil
		})
		released(t, l)
	}
}

// TestNobodyVotesUnasked: the connections have been lost, and the servers do not
// let us in again. What they said before is no answer to what they have not been
// asked.
func TestNobodyVotesUnasked(t *testing.T) {
	servers, lk := onServers(t, 3, &redlock.Options{TTL: time.Minute})
	l := acquired(t, lk, "a")
	if err := l.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	used := time.Now()
	for _, c := range redistest.Clients(t, servers) {
		c.Ping(t.Context()) // the connection that is let in
		if err := c.ConfigSet(t.Context(), "requirepass", "new").Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err(); err != nil {
			t.Fatal(err)
		}
	}
	// Longer than a lane trusts a connection unseen, so that it makes a new one.
	eventually(t, 10*time.Second, "idle for long enough", func() bool { return time.Since(used) > 1200*time.Millisecond })
	for range 3 {
		if _, err := lk.TryAcquire(t.Context(), "b"); err == nil {
			t.Fatal("a lock that no node was asked for")
		}
		if err := l.Extend(t.Context()); err == nil {
			t.Fatal("an extension that no node was asked for")
		}
		if err := l.Extend(t.Context()); err == nil {
			t.Fatal("an extension that no node was asked for")
		}
	}
	_, err := lk.TryAcquire(t.Context(), "b")
	for _, n := range wantKind(t, err, redlock.ErrNoQuorum).Nodes() {
		if n.Outcome != redlock.Denied {
			t.Errorf("%v, want it denied", n)
		}
	}
}

// TestReadOnlyExtends: two of three servers take no writes for a while, which an
// attempt for another lock finds out first. The holder's extensions are no
// success then, and are again afterwards.
func TestReadOnlyExtends(t *testing.T) {
	servers, lk := onServers(t, 3, &redlock.Options{TTL: time.Minute})
	l := acquired(t, lk, "a")
	if err := l.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	until := l.Until()
	on(t, servers[:2], "REPLICAOF", "127.0.0.1", "1")
	_, err := lk.TryAcquire(t.Context(), "b")
	wantKind(t, err, redlock.ErrNoQuorum)
	for range 3 {
		wantKind(t, l.Extend(t.Context()), redlock.ErrNoQuorum)
	}
	if moved := l.Until().Sub(until); moved != 0 {
		t.Errorf("the end of validity has moved by %v", moved)
	}
	on(t, servers[:2], "REPLICAOF", "NO", "ONE")
	eventually(t, 2*time.Second, "an extension", func() bool { return l.Extend(t.Context()) == nil })
	released(t, l)
	nothingLeft(t, servers)
}

// TestOwedReleaseOnBusyLane: a server refuses a release for a while (here by ACL).
// It is told again when it can be, however much else there is to tell it.
func TestOwedReleaseOnBusyLane(t *testing.T) {
	servers, lk := onServers(t, 3, &redlock.Options{TTL: time.Minute})
	l := acquired(t, lk, "a")
	eventually(t, 2*time.Second, "all three to have the key", func() bool { return heldOn(t, servers, "a", l.Token()) == 3 })
	ask(t, servers[0], "ACL", "SETUSER", "default", "-del")
	released(t, l)
	ask(t, servers[0], "ACL", "SETUSER", "default", "+del")
	eventually(t, 3*time.Second, "the key of the lock that was released to go from all nodes", func() bool {
		other := acquired(t, lk, "other")
		gone := heldOn(t, servers, "a", l.Token()) == 0
		released(t, other)
		return gone
	})
}

// TestUncountedVoteIsNamed: a node that was filled up anew says yes and is not
// counted yet. Whoever reads why an extension failed is told of it, too.
func TestUncountedVoteIsNamed(t *testing.T) {
	servers, lk := onServers(t, 3, &redlock.Options{TTL: time.Minute})
	l := acquired(t, lk, "a")
	eventually(t, 2*time.Second, "all three to have the key", func() bool { return heldOn(t, servers, "a", l.Token()) == 3 })
	ask(t, servers[0], "DEL", "a")
	if err := l.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Second, "the first to be filled up", func() bool { return heldOn(t, servers, "a", l.Token()) == 3 })
	servers[1].Kill()
	q := wantKind(t, l.Extend(t.Context()), redlock.ErrNoQuorum)
	if named := len(q.Nodes()); named != 2 {
		t.Errorf("two of three votes were not to be had, and %d nodes are named: %v", named, q)
	}
	restart(t, servers[1])
	_ = l.Release(t.Context())
	nothingLeft(t, servers)
}
