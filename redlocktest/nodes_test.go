package redlocktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

// inBubbleWith runs a test with three nodes in a bubble, and a Locker on them.
func inBubbleWith(t *testing.T, f func(*testing.T, *Nodes, *redlock.Locker)) {
	synctest.Test(t, func(t *testing.T) {
		c := New(t)
		f(t, c, c.Locker(&redlock.Options{TTL: 10 * time.Second}))
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

// TestNodesFailsAndRecovers: faults that take a quorum away, and their ends, which give it back.
func TestNodesFailsAndRecovers(t *testing.T) {
	for _, tt := range []struct {
		name        string
		strike, end func(c *Nodes, i int)
	}{
		{"kill", (*Nodes).Kill, (*Nodes).Restart},
		{"kill, empty", (*Nodes).Kill, (*Nodes).RestartEmpty},
		{"hang", (*Nodes).Hang, (*Nodes).Resume},
		{"cut", (*Nodes).Cut, (*Nodes).Heal},
		{"slow", func(c *Nodes, i int) { c.Slow(i, time.Minute) }, func(c *Nodes, i int) { c.Slow(i, 0) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubbleWith(t, func(t *testing.T, c *Nodes, lk *redlock.Locker) {
				if got := outcomes(lk, "name"); got != nil {
					t.Fatalf("before that the nodes say %v", got)
				}
				for i := range 2 {
					tt.strike(c, i)
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

func TestNodesForgets(t *testing.T) {
	for _, tt := range []struct {
		name   string
		strike func(c *Nodes, i int)
		left   int
	}{
		{"restart", (*Nodes).Restart, 1},
		{"restart, empty", (*Nodes).RestartEmpty, 0},
		{"wipe", (*Nodes).Wipe, 0},
		{"step", func(c *Nodes, i int) { c.Step(i, 10*time.Second) }, 0},
		{"a smaller step", func(c *Nodes, i int) { c.Step(i, 9*time.Second) }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubbleWith(t, func(t *testing.T, c *Nodes, lk *redlock.Locker) {
				if _, err := lk.TryAcquire(t.Context(), "name"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for i := range c.Len() {
					tt.strike(c, i)
					if got := c.Keys(i); len(got) != tt.left {
						t.Errorf("node %d has %q", i, got)
					}
				}
			})
		})
	}
}

// TestNodesRefuse: a node that refuses says why, and stops when it is told to.
func TestNodesRefuse(t *testing.T) {
	inBubbleWith(t, func(t *testing.T, c *Nodes, lk *redlock.Locker) {
		if err := lk.WaitReady(t.Context()); err != nil { // the nodes keep the description of their set
			t.Fatal(err)
		}
		c.Refuse(0, "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
		c.Refuse(1, "OOM command not allowed when used memory > 'maxmemory'.")
		got, want := outcomes(lk, "name"), map[string]redlock.Outcome{c.Addr(0): redlock.OutcomeBusy, c.Addr(1): redlock.OutcomeOutOfMemory}
		if !maps.Equal(got, want) {
			t.Errorf("the nodes say %v, want %v", got, want)
		}
		c.Refuse(0, "")
		c.Refuse(1, "")
		c.Sleep(3 * time.Second)
		if got := outcomes(lk, "name"); got != nil {
			t.Errorf("after that the nodes say %v", got)
		}
	})
}

// The clients can be used for anything, and see that a node is away.
func TestNodesClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewN(t, 2)
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

// fails returns what the test says when it fails in f.
func (t *fakeTB) fails(f func()) (said string) {
	t.said = ""
	defer func() {
		if p := recover(); p != nil && p != any(t) {
			panic(p)
		}
		said = t.said
	}()
	f()
	return t.said
}

func TestMisuse(t *testing.T) {
	fake := &fakeTB{TB: t}
	c := New(fake)
	for _, tt := range []struct {
		use  func()
		want string
	}{
		{func() { NewN(fake, 0) }, "redlocktest: 0 nodes"},
		{func() { c.Kill(3) }, "redlocktest: there is no node 3: there are 3, counted from 0"},
		{func() { c.Restart(-1) }, "redlocktest: there is no node -1: there are 3, counted from 0"},
		{func() { c.RestartEmpty(3) }, "redlocktest: there is no node 3"},
		{func() { c.Wipe(3) }, "redlocktest: there is no node 3"},
		{func() { c.Hang(3) }, "redlocktest: there is no node 3"},
		{func() { c.Resume(3) }, "redlocktest: there is no node 3"},
		{func() { c.Cut(3) }, "redlocktest: there is no node 3"},
		{func() { c.Heal(3) }, "redlocktest: there is no node 3"},
		{func() { c.Slow(3, 1) }, "redlocktest: there is no node 3"},
		{func() { c.Refuse(3, "BUSY") }, "redlocktest: there is no node 3"},
		{func() { c.Step(3, 1) }, "redlocktest: there is no node 3"},
		{func() { c.Keys(3) }, "redlocktest: there is no node 3"},
		{func() { c.Addr(3) }, "redlocktest: there is no node 3"},
		{func() { c.Lose("name") }, `redlocktest: nobody holds "name"`},
		{func() { c.Hold("") }, "redlocktest: another process cannot have the lock: redlock: acquire: the name is empty"},
		{func() { c.Locker(&redlock.Options{TTL: -1}) }, "redlocktest: redlock: Options.TTL -1ns is not a time to live"},
	} {
		if said := fake.fails(tt.use); !strings.HasPrefix(said, tt.want) {
			t.Errorf("misuse says %q, want %q", said, tt.want)
		}
	}
}
