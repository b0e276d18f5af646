package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

// inCluster runs a test with three nodes in a bubble, and a Locker on them.
func inCluster(t *testing.T, f func(*testing.T, *Cluster, *redlock.Locker)) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 3)
		lk, err := redlock.New(c.Clients(), &redlock.Options{TTL: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lk.Close() })
		f(t, c, lk)
	})
}

// outcomes lists the outcomes at the nodes that do not grant a lock.
func outcomes(lk *redlock.Locker, name string) map[string]redlock.Outcome {
	l, err := lk.TryAcquire(context.Background(), name)
	if err == nil {
		_ = l.Release(context.Background())
		return nil
	}
	all := make(map[string]redlock.Outcome)
	var quorum *redlock.QuorumError
	if errors.As(err, &quorum) {
		for _, n := range quorum.Nodes() {
			all[n.Node] = n.Outcome
		}
	}
	return all
}

// TestClusterFailsAndRecovers: faults that take a quorum away, and their ends, which give it back.
func TestClusterFailsAndRecovers(t *testing.T) {
	for _, tt := range []struct {
		name        string
		inject, end func(c *Cluster, i int)
	}{
		{"kill", (*Cluster).Kill, (*Cluster).Restart},
		{"kill, empty", (*Cluster).Kill, (*Cluster).RestartEmpty},
		{"hang", (*Cluster).Hang, (*Cluster).Resume},
		{"cut", (*Cluster).Cut, (*Cluster).Heal},
		{"slow", func(c *Cluster, i int) { c.Slow(i, time.Minute) }, func(c *Cluster, i int) { c.Slow(i, 0) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *Cluster, lk *redlock.Locker) {
				for i := range 2 {
					tt.inject(c, i)
				}
				got := outcomes(lk, "name")
				for i := range c.Len() {
					if got[c.Addr(i)] == redlock.OutcomeGranted != (i == 2) {
						t.Errorf("the nodes say %v", got)
					}
				}
				for i := range 2 {
					tt.end(c, i)
				}
				time.Sleep(2 * time.Minute) // until the Locker has looked again
				if got := outcomes(lk, "name"); got != nil {
					t.Errorf("after that the nodes say %v", got)
				}
			})
		})
	}
}

func TestClusterForgets(t *testing.T) {
	for _, tt := range []struct {
		name   string
		inject func(c *Cluster, i int)
		left   int
	}{
		{"restart", (*Cluster).Restart, 1},
		{"restart, empty", (*Cluster).RestartEmpty, 0},
		{"wipe", (*Cluster).Wipe, 0},
		{"step", func(c *Cluster, i int) { c.Step(i, 10*time.Second) }, 0},
		{"a smaller step", func(c *Cluster, i int) { c.Step(i, 9*time.Second) }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *Cluster, lk *redlock.Locker) {
				if _, err := lk.TryAcquire(t.Context(), "name"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for i := range c.Len() {
					tt.inject(c, i)
					if got := c.Keys(i); len(got) != tt.left {
						t.Errorf("node %d has %q", i, got)
					}
				}
			})
		})
	}
}

// TestClusterInject: a fault ends by itself, unless the test ends before it.
func TestClusterInject(t *testing.T) {
	inCluster(t, func(t *testing.T, c *Cluster, lk *redlock.Locker) {
		c.Inject(Fault{Kind: Busy, Node: 0, For: time.Second})
		c.Inject(Fault{Kind: Foreign, Node: 1, For: time.Hour}, "name")
		got, want := outcomes(lk, "name"), map[string]redlock.Outcome{c.Addr(0): redlock.OutcomeBusy, c.Addr(1): redlock.OutcomeNotALock}
		if !maps.Equal(got, want) {
			t.Errorf("the nodes say %v, want %v", got, want)
		}
		time.Sleep(3 * time.Second)
		if got := outcomes(lk, "name"); got != nil {
			t.Errorf("after that the nodes say %v", got)
		}
		c.Inject(Fault{Kind: Kill, Node: 1}) // for no time: killed and restarted
		if got := c.Keys(1); !slices.Equal(got, []string{"name"}) {
			t.Errorf("keys %q", got)
		}
	})
}

// TestClusterOutsideOfABubble: in real time it is the same.
func TestClusterOutsideOfABubble(t *testing.T) {
	c := NewCluster(t, 3)
	lk, err := redlock.New(c.Clients(), &redlock.Options{TTL: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer lk.Close()
	l, err := lk.Acquire(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	lost := l.Context(t.Context())
	for i := range c.Len() {
		for len(c.Keys(i)) == 0 { // the last grant may still be under way
			time.Sleep(time.Millisecond)
		}
	}
	c.Wipe(1)
	c.Wipe(2)
	c.Inject(Fault{Kind: Slow, Node: 2, By: 5 * time.Millisecond, For: time.Millisecond})
	c.Inject(Fault{Kind: Hang, Node: 0, For: time.Hour}) // ends with the test
	if err := l.Extend(t.Context()); !errors.Is(err, redlock.ErrLost) {
		t.Errorf("extending what two nodes have forgotten: %v", err)
	}
	<-lost.Done()
}

// The clients can be used for anything, and see that a node is away.
func TestClusterClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 2)
		first, second := c.Clients(), c.Clients()
		if err := first[1].Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if v, err := second[1].Get(t.Context(), "k").Result(); v != "v" || err != nil {
			t.Errorf("the other client sees %q, %v", v, err)
		}
		if err := second[0].Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("the other node says %v", err)
		}
		c.Kill(1)
		if err := first[1].Get(t.Context(), "k").Err(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a killed node says %v", err)
		}
	})
}

// A fakeTB is a test that may fail without failing this one.
type fakeTB struct {
	testing.TB
	said string
}

func (t *fakeTB) Helper() {}

func (t *fakeTB) Fatalf(format string, args ...any) {
	t.said = fmt.Sprintf(format, args...)
	panic(t)
}

func TestClusterMisuse(t *testing.T) {
	fake := &fakeTB{TB: t}
	c := NewCluster(fake, 3)
	for _, tt := range []struct {
		use  func()
		want string
	}{
		{func() { NewCluster(fake, 0) }, "chaos: a cluster of 0 nodes"},
		{func() { c.Kill(3) }, "chaos: there is no node 3: the cluster has 3, counted from 0"},
		{func() { c.Restart(-1) }, "chaos: there is no node -1: the cluster has 3, counted from 0"},
		{func() { c.RestartEmpty(3) }, "chaos: there is no node 3"},
		{func() { c.Wipe(3) }, "chaos: there is no node 3"},
		{func() { c.Hang(3) }, "chaos: there is no node 3"},
		{func() { c.Resume(3) }, "chaos: there is no node 3"},
		{func() { c.Cut(3) }, "chaos: there is no node 3"},
		{func() { c.Heal(3) }, "chaos: there is no node 3"},
		{func() { c.Slow(3, 1) }, "chaos: there is no node 3"},
		{func() { c.Step(3, 1) }, "chaos: there is no node 3"},
		{func() { c.Keys(3) }, "chaos: there is no node 3"},
		{func() { c.Addr(3) }, "chaos: there is no node 3"},
		{func() { c.Inject(Fault{Kind: Kill, Node: 3}) }, "chaos: there is no node 3"},
		{func() { c.Inject(Fault{Kind: Crash}) }, `chaos: "crash" is no fault of a node`},
		{func() { c.Inject(Fault{}) }, `chaos: "" is no fault of a node`},
	} {
		fake.said = ""
		func() {
			defer func() {
				if p := recover(); p != nil && p != any(fake) {
					t.Errorf("panic: %v", p)
				}
			}()
			tt.use()
		}()
		if !strings.HasPrefix(fake.said, tt.want) {
			t.Errorf("misuse says %q, want %q", fake.said, tt.want)
		}
	}
}
