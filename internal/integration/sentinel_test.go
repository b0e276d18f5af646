package integration_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/port"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/redis/go-redis/v9"
)

// A watched is three nodes, the first ones of which are masters with a replica each, and a Redis Sentinel that promotes a
// replica when its master has been silent for half a second.
type watched struct {
	*testing.T
	masters  []*redisproc.Server
	replicas []*redisproc.Server
	sentinel string // its address
}

// watch starts the nodes and the sentinel, and waits until it knows all replicas. The first n nodes have a replica.
func watch(t *testing.T, n int) *watched {
	t.Helper()
	t.Parallel() // it mostly waits
	w := &watched{T: t, masters: redistest.Servers(t, 3, atOnce...), replicas: redistest.NewServers(t, n)}
	claim, err := port.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Close)
	w.sentinel = claim.Addr
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\n", claim.Number)
	for i, replica := range w.replicas {
		replicate(t, replica, w.masters[i].Addr)
		if copied, own := ask(t, replica, "GET", script.Marker), ask(t, w.masters[i], "GET", script.Marker); copied != own || own == nil {
			t.Fatalf("a replica has the marker %v of %v", copied, own)
		}
		text += fmt.Sprintf("sentinel monitor node%d %s 1\n", i, strings.Replace(w.masters[i].Addr, ":", " ", 1))
		text += fmt.Sprintf("sentinel down-after-milliseconds node%d 500\nsentinel failover-timeout node%[1]d 5000\n", i)
	}
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := redisproc.StartChild(exec.Command("redis-server", config, "--sentinel"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	eventually(t, 10*time.Second, "the sentinel answers", func() bool {
		_, err := w.tell("DEBUG", "TILT-TRIGGER", 60_000) // else it does nothing for 30 s after a busy machine has kept it waiting
		return err == nil
	})
	for i, replica := range w.replicas {
		eventually(t, 10*time.Second, "the sentinel knows "+replica.Addr, func() bool {
			all, err := w.tell("REPLICAS", fmt.Sprint("node", i))
			return err == nil && strings.Contains(fmt.Sprint(all), " flags:slave ") && strings.Contains(fmt.Sprint(all), " master-link-status:ok ")
		})
	}
	return w
}

// tell gives the sentinel a command.
func (w *watched) tell(args ...any) (any, error) {
	c := redis.NewClient(&redis.Options{Addr: w.sentinel})
	defer c.Close()
	return c.Do(w.Context(), append([]any{"SENTINEL"}, args...)...).Result()
}

// clients returns a client for each node: a failover client where there is a replica.
func (w *watched) clients() []*redis.Client {
	var all []*redis.Client
	for i := range w.replicas {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: fmt.Sprint("node", i), SentinelAddrs: []string{w.sentinel}})
		w.Cleanup(func() { _ = c.Close() })
		all = append(all, c)
	}
	return append(all, redistest.Clients(w, w.masters[len(w.replicas):])...)
}

// promoted waits until the sentinel has promoted the replica of a node, and gives clients its address.
func (w *watched) promoted(node int) {
	w.Helper()
	eventually(w, 20*time.Second, "the sentinel promotes "+w.replicas[node].Addr, func() bool {
		at, err := w.tell("GET-MASTER-ADDR-BY-NAME", fmt.Sprint("node", node))
		return err == nil && fmt.Sprint(at) == "["+strings.Replace(w.replicas[node].Addr, ":", " ", 1)+"]"
	})
}

// failover has the sentinel promote the replica of a node whose master is well.
func (w *watched) failover(node int) {
	w.Helper()
	eventually(w, 10*time.Second, "the sentinel begins to switch", func() bool {
		_, err := w.tell("FAILOVER", fmt.Sprint("node", node))
		return err == nil
	})
	w.promoted(node)
}

// quarantined waits until lk has found out that the first node is another server now.
func (w *watched) quarantined(lk *redlock.Locker) {
	w.Helper()
	eventually(w, 10*time.Second, "the node has no vote", func() bool {
		err := inspected(w, lk, "a")[0].Err
		return err != nil && err.Outcome == redlock.OutcomeQuarantined
	})
}

// TestSentinelFailover: a master dies, and its replica is promoted. A lock is renewed all the time, and the promoted node gets
// it, so that it survives when another node dies. For a new lock the promoted node has no vote until its quarantine is over.
func TestSentinelFailover(t *testing.T) {
	w := watch(t, 1)
	opts := brief(5 * time.Second)
	quarantined, votes := make(chan string, 100), make(chan string, 100)
	opts.Hooks = &redlock.Hooks{
		Quarantined: func(node string, _ time.Duration, _ error) { quarantined <- node },
		Votes:       func(node string) { votes <- node },
	}
	lk := open(t, w.clients(), opts)
	l := acquired(t, lk, "a", redlock.AutoRenew())
	lost := l.Context(t.Context())
	killed := time.Now()
	w.masters[0].Kill()
	eventually(t, settleWithin, "the node is down", func() bool { return inspected(t, lk, "a")[0].Err != nil })
	if err := inspected(t, lk, "a")[0].Err; !strings.HasPrefix(err.Error(), "FailoverClient#0: unreachable: ") {
		t.Errorf("the master is dead, and the error is %v", err)
	}
	eventually(t, settleWithin, "the error names the dead master's address", func() bool {
		err := inspected(t, lk, "a")[0].Err
		return err != nil && strings.HasPrefix(err.Error(), "FailoverClient#0: unreachable: dial "+w.masters[0].Addr+": ")
	})
	w.quarantined(lk)
	for range 3 { // the first one fills the node if it lacks the lock, and the second one shows that it keeps it
		eventually(t, settleWithin, "the promoted node has the lock", func() bool {
			return l.Extend(t.Context()) == nil && inspected(t, lk, "a")[0].Token == l.Token()
		})
	}
	w.masters[2].Kill()
	if err := l.Extend(t.Context()); err != nil {
		t.Errorf("two of three nodes have the lock, and the holder cannot extend it: %v", err)
	}
	_, err := lk.TryAcquire(t.Context(), "b")
	wantKind(t, err, redlock.ErrNoQuorum)
	if n := nodeOf(err, "FailoverClient#0"); n == nil || n.Outcome != redlock.OutcomeQuarantined {
		t.Errorf("%v does not name the promoted node as quarantined", err)
	}
	var other *redlock.Lock
	eventually(t, opts.Quarantine+5*time.Second, "the vote of the promoted node", func() (ok bool) {
		other, err = lk.TryAcquire(t.Context(), "b")
		return err == nil
	})
	if after := time.Since(killed); after < opts.Quarantine {
		t.Errorf("it votes after %v, in a quarantine of %v", after, opts.Quarantine)
	}
	for _, told := range []chan string{quarantined, votes} {
		if node := <-told; node != "FailoverClient#0" || len(told) > 0 {
			t.Errorf("a hook was told of %s, and %d more", node, len(told))
		}
	}
	if lost.Err() != nil {
		t.Error(context.Cause(lost))
	}
	restart(t, w.masters[2])
	released(t, other)
	released(t, l)
	nothingLeft(t, append(w.replicas, w.masters[1:]...))
}

// TestSentinelFailoverLosesALock: two masters of three die, and their replicas have not heard of the lock that the two had
// granted. No other client gets the lock before its holder's is over, and none before the quarantine of the two is.
func TestSentinelFailoverLosesALock(t *testing.T) {
	t.Parallel() // so are its parts
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprint("one after the other ", apart), func(t *testing.T) {
			w := watch(t, 2)
			opts := brief(7 * time.Second)
			holder, before := open(t, w.clients(), opts), open(t, w.clients(), opts)
			on(t, w.replicas, "REPLICAOF", "127.0.0.1", "1") // nothing reaches them any more
			l := acquired(t, holder, "a")
			killed := time.Now()
			for i, s := range w.masters[:2] {
				s.Kill()
				if apart {
					w.promoted(i)
				}
			}
			w.promoted(0)
			w.promoted(1)
			if n := heldOn(t, w.replicas, "a", l.Token()); n > 0 {
				t.Fatalf("%d replicas have the lock: this tests nothing", n)
			}
			newcomer := open(t, w.clients(), opts)
			if contest(t, l, "FailoverClient#0", before, newcomer) == 0 {
				t.Error("no rival asked the promoted nodes in time: this tests nothing")
			}
			if after := time.Since(killed); after < opts.Quarantine {
				t.Errorf("a second client has the lock after %v, in a quarantine of %v", after, opts.Quarantine)
			}
			allVote(t, before)
		})
	}
}

// TestSentinelPlannedSwitch: an operator has a node's replica promoted while all servers are well. The lock that is renewed
// stays, and the waiter gets it when it is released.
func TestSentinelPlannedSwitch(t *testing.T) {
	w := watch(t, 1)
	opts := brief(5 * time.Second)
	lk, other := open(t, w.clients(), opts), open(t, w.clients(), opts)
	if _, err := w.tell("DEBUG", "INFO-PERIOD", 200, "PUBLISH-PERIOD", 200); err != nil { // else it leaves the former master as it is for 8 s and more
		t.Fatal(err)
	}
	l := acquired(t, lk, "a", redlock.AutoRenew())
	type result struct {
		l   *redlock.Lock
		err error
	}
	got := make(chan result, 1)
	go func() {
		next, err := other.Acquire(t.Context(), "a")
		got <- result{next, err}
	}()
	eventually(t, 5*time.Second, "a waiter", func() bool {
		s, err := lk.Inspect(t.Context(), "a")
		return err == nil && len(s.Waiting) == 1
	})
	w.failover(0)
	eventually(t, 10*time.Second, "the former master is a replica", func() bool {
		return strings.Contains(ask(t, w.masters[0], "INFO", "replication").(string), "role:slave")
	})
	w.quarantined(lk)
	w.quarantined(other)
	until := l.Until()
	eventually(t, opts.TTL, "the lock is renewed", func() bool { return l.Until().After(until) })
	if err := l.Context(t.Context()).Err(); err != nil || len(got) > 0 {
		t.Fatalf("the holder's context: %v, and %d waiters have the lock", err, len(got))
	}
	released(t, l)
	select {
	case next := <-got:
		if next.err != nil {
			t.Fatal(next.err)
		}
		if next.l.Fence() <= l.Fence() {
			t.Errorf("the fence went from %d to %d", l.Fence(), next.l.Fence())
		}
		released(t, next.l)
	case <-time.After(opts.TTL):
		t.Error("the waiter does not get the lock")
	}
	allVote(t, lk)
	nothingLeft(t, append(w.replicas, w.masters[1:]...))
}

// TestSentinelSwitchOfTwoNodes: an operator has the replicas of two nodes promoted while all servers are well. The sentinel
// makes a former master a replica after 8 s at the earliest, and until then it serves the clients that are connected to it.
// Each of the two nodes is two servers meanwhile. Both vote when the quarantine is over, and the lock has two holders, whom
// only their fences tell apart.
func TestSentinelSwitchOfTwoNodes(t *testing.T) {
	w := watch(t, 2)
	opts := brief(3 * time.Second)
	holder := open(t, w.clients(), opts)
	l := acquired(t, holder, "a", redlock.AutoRenew())
	lost := l.Context(t.Context())
	begin := time.Now()
	w.failover(0)
	w.failover(1)
	second, err := open(t, w.clients(), opts).Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if after := time.Since(begin); after < opts.Quarantine {
		t.Errorf("a second client has the lock after %v, in a quarantine of %v", after, opts.Quarantine)
	}
	if left := time.Until(l.Until()); left <= 0 || lost.Err() != nil {
		t.Errorf("the first lock has ended %v before: %v", -left, context.Cause(lost))
	}
	if second.Fence() <= l.Fence() {
		t.Errorf("the fence went from %d to %d", l.Fence(), second.Fence())
	}
	released(t, second)
	released(t, l)
}
