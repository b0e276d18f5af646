package integration_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestCallRightAfterARestartDoesNotFail: all servers were restarted a moment ago. The first call finds that out, for
// the connections still looked intact; soon afterwards locks can be acquired again.
func TestCallRightAfterARestartDoesNotFail(t *testing.T) {
	servers, lk := onServers(t, 3, trusting())
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

// TestNobodyVotesUnasked: the connections were lost, and the servers reject new ones. Earlier
// replies are no answers to requests that were not sent.
func TestNobodyVotesUnasked(t *testing.T) {
	servers, lk := besideOthers(t, 3, patient())
	l := acquired(t, lk, "a")
	if err := l.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	used := time.Now()
	for _, c := range redistest.Clients(t, servers) {
		c.Ping(t.Context()) // the connection that stays
		if err := c.ConfigSet(t.Context(), "requirepass", "new").Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err(); err != nil {
			t.Fatal(err)
		}
	}
	// Longer than a lane uses a connection without a check, so that it makes a new one.
	eventually(t, 10*time.Second, "idle for long enough", func() bool { return time.Since(used) > 1200*time.Millisecond })
	for range 3 {
		if _, err := lk.TryAcquire(t.Context(), "b"); err == nil {
			t.Fatal("a lock for which no node was asked")
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
		if n.Outcome != redlock.OutcomeDenied {
			t.Errorf("%v, want it denied", n)
		}
	}
}

// TestReadOnlyExtends: two of three servers take no writes for a while, which an attempt for
// another lock finds out first. The holder's extensions fail then, and succeed again afterwards.
func TestReadOnlyExtends(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
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

// TestOwedReleaseOnBusyLane: a server refuses a release for a while (here by ACL). The lane repeats
// it, however much else it has to send.
func TestOwedReleaseOnBusyLane(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
	l := acquired(t, lk, "a")
	eventually(t, 2*time.Second, "all three to have the key", func() bool { return heldOn(t, servers, "a", l.Token()) == 3 })
	ask(t, servers[0], "ACL", "SETUSER", "default", "-evalsha")
	released(t, l)
	ask(t, servers[0], "ACL", "SETUSER", "default", "+evalsha")
	eventually(t, 3*time.Second, "the key of the lock that was released to go from all nodes", func() bool {
		other := acquired(t, lk, "other")
		gone := heldOn(t, servers, "a", l.Token()) == 0
		released(t, other)
		return gone
	})
}

// TestUncountedVoteIsNamed: a node that was refilled says yes and does not count yet. The error of
// a failed extension names it, too.
func TestUncountedVoteIsNamed(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
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
		t.Errorf("two of three votes are missing, and %d nodes are named: %v", named, q)
	}
	restart(t, servers[1])
	_ = l.Release(t.Context())
	nothingLeft(t, servers)
}

// TestOwedReleaseComesFirst: the only server has not carried out a release, since the connection
// broke or it refused to. The next call for the same lock is not told that another holds it: the
// owed release goes before the new request.
func TestOwedReleaseComesFirst(t *testing.T) {
	for _, rtt := range []time.Duration{0, 4 * time.Millisecond} { // one connection, and several
		t.Run(rtt.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaks.Check(t)
				b := redistest.NewBubble(t, 1)
				b.Path(0).SetDelay(rtt)
				lk := open(t, b.Clients(), patient())
				time.Sleep(time.Second) // until all connections are made
				for i := range need.Sized(5, 30, 2000) {
					l, err := lk.TryAcquire(t.Context(), "a")
					switch {
					case err == nil:
						cut := time.AfterFunc(time.Duration(i%10)*rtt/10, b.Path(0).ResetAll)
						_ = l.Release(t.Context())
						cut.Stop()
					case errors.Is(err, redlock.ErrHeld):
						t.Fatalf("attempt %d: %v", i, err)
					}
				}
				time.Sleep(time.Second)
				if keys := b.Keys(0); len(keys) > 0 {
					t.Errorf("left on the node: %v", keys)
				}
			})
		})
	}
}

// TestRefusedReleaseComesFirst: the same for a server that refuses a release, here by ACL, over a
// connection that stands. (If it denied only DEL, the script would delete in another way.)
func TestRefusedReleaseComesFirst(t *testing.T) {
	servers, lk := onServers(t, 1, patient())
	for range 3 {
		l := acquired(t, lk, "a", redlock.Shared()) // which no server releases without a script
		ask(t, servers[0], "ACL", "SETUSER", "default", "-evalsha")
		wantKind(t, l.Release(t.Context()), redlock.ErrNoQuorum)
		ask(t, servers[0], "ACL", "SETUSER", "default", "+evalsha")
		released(t, acquired(t, lk, "a"))
	}
}
