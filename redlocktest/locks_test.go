package redlocktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// TestVoteAtOnce: the first lock on the nodes waits for no quarantine, and one that is restarted has one.
func TestVoteAtOnce(t *testing.T) {
	inBubbleWith(t, func(t *testing.T, n *Nodes, lk *redlock.Locker) {
		begun := time.Now()
		l, err := lk.TryAcquire(t.Context(), "name")
		if err != nil || time.Since(begun) > 0 {
			t.Fatalf("after %v: %v", time.Since(begun), err)
		}
		_ = l.Release(t.Context())
		n.Restart(0)
		n.Restart(1)
		outcomes(lk, "name") // its connections are broken
		n.Sleep(time.Second)
		got := outcomes(lk, "name")
		if got[n.Addr(0)] != redlock.OutcomeQuarantined || got[n.Addr(1)] != redlock.OutcomeQuarantined {
			t.Errorf("the nodes say %v", got)
		}
		n.Sleep(time.Minute)
		if got := outcomes(lk, "name"); got != nil {
			t.Errorf("a minute later the nodes say %v", got)
		}
	})
}

// TestLose: every holder has been told when Lose returns, whatever the lock is, and the lock is free.
func TestLose(t *testing.T) {
	for _, tt := range []struct {
		name    string
		opts    redlock.Options
		lock    string
		options []redlock.AcquireOption
		holders int
	}{
		{"exclusive", redlock.Options{}, "a", nil, 1},
		{"renewed", redlock.Options{}, "a", []redlock.AcquireOption{redlock.AutoRenew()}, 1},
		{"with a prefix", redlock.Options{Prefix: "app:"}, "a", nil, 1},
		{"shared", redlock.Options{}, "a", []redlock.AcquireOption{redlock.Shared()}, 3},
		{"slots", redlock.Options{}, "a", []redlock.AcquireOption{redlock.Slots(3)}, 3},
		{"several", redlock.Options{}, "a", []redlock.AcquireOption{redlock.Also("b")}, 1},
		{"a path", redlock.Options{Separator: "/"}, "a/b", nil, 1},
		{"a larger quorum", redlock.Options{Quorum: 3}, "a", nil, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := New(t)
				lk := n.Locker(&tt.opts)
				if n.Held(tt.lock) {
					t.Error("it is held before anybody has asked for it")
				}
				var contexts []context.Context
				for range tt.holders {
					l, err := lk.Acquire(t.Context(), tt.lock, tt.options...)
					if err != nil {
						t.Fatal(err)
					}
					contexts = append(contexts, l.Context(t.Context()))
				}
				kept, err := lk.Acquire(t.Context(), "z")
				if err != nil {
					t.Fatal(err)
				}
				n.Sleep(time.Second)
				if !n.Held(tt.lock) {
					t.Error("it is not held")
				}
				begun := time.Now()
				n.Lose(tt.lock)
				if took := time.Since(begun); took > 0 {
					t.Errorf("it took %v", took)
				}
				for _, ctx := range contexts {
					if cause := context.Cause(ctx); !errors.Is(cause, redlock.ErrLost) {
						t.Errorf("a context's cause: %v", cause)
					}
				}
				if err := kept.Extend(t.Context()); err != nil {
					t.Errorf("another lock: %v", err)
				}
				n.Sleep(0)
				if n.Held(tt.lock) {
					t.Error("it is held after Lose")
				}
				l, err := n.Locker(&tt.opts).TryAcquire(t.Context(), tt.lock, tt.options...)
				if err != nil {
					t.Fatalf("the next holder: %v", err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestLoseWithNodesAway: the holder goes on for as long as its lock is valid.
func TestLoseWithNodesAway(t *testing.T) {
	for away := 1; away <= 3; away++ {
		inBubbleWith(t, func(t *testing.T, n *Nodes, lk *redlock.Locker) {
			l, err := lk.Acquire(t.Context(), "name", redlock.AutoRenew())
			if err != nil {
				t.Fatal(err)
			}
			for i := range away {
				n.Hang(i)
			}
			n.Sleep(time.Second)
			begun := time.Now()
			n.Lose("name")
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			if cause := context.Cause(l.Context(t.Context())); !errors.Is(cause, redlock.ErrLost) {
				t.Errorf("a context's cause: %v", cause)
			}
		})
	}
}

// TestLoseOfAStranger: a holder on the clients learns of it when it next extends its lock.
func TestLoseOfAStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(t)
		lk, err := redlock.New(n.Clients(), &redlock.Options{Prefix: "app:"})
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		l, err := lk.Acquire(t.Context(), "name", redlock.AutoRenew())
		if err != nil {
			t.Fatal(err)
		}
		ctx := l.Context(t.Context())
		n.Lose("app:name")
		if err := ctx.Err(); err != nil {
			t.Errorf("already: %v", context.Cause(ctx))
		}
		n.Sleep(4 * time.Second)
		if cause := context.Cause(ctx); !errors.Is(cause, redlock.ErrLost) {
			t.Errorf("a context's cause: %v", cause)
		}
	})
}

// TestHold: another process has the lock for as long as the test wants, with the options of the code
// under test; and Lose takes it away.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(t)
		warn := func(err error) { t.Errorf("warning: %v", err) }
		lk := n.Locker(&redlock.Options{Prefix: "app:", TTL: 3 * time.Second, Hooks: &redlock.Hooks{Warning: warn}})
		other := n.Hold("name")
		n.Sleep(time.Minute)
		if _, err := lk.TryAcquire(t.Context(), "name"); !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("a lock that another process has: %v", err)
		}
		got := make(chan *redlock.Lock)
		go func() {
			l, err := lk.Acquire(t.Context(), "name", redlock.AutoRenew())
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		n.Sleep(time.Second)
		if err := other.Release(t.Context()); err != nil {
			t.Error(err)
		}
		first := <-got
		if first.Fence() <= other.Fence() {
			t.Errorf("fence %d after %d", first.Fence(), other.Fence())
		}
		n.Lose("name")
		second := n.Hold("name")
		if second.Fence() <= first.Fence() {
			t.Errorf("fence %d after %d", second.Fence(), first.Fence())
		}
		n.Lose("name")
		if err := second.Extend(t.Context()); !errors.Is(err, redlock.ErrLost) {
			t.Errorf("the other process: %v", err)
		}
	})
}

// TestHoldGivesUp: the test itself has the lock, and does not release it.
func TestHoldGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeTB{TB: t}
		n := New(fake)
		if _, err := n.Locker(nil).Acquire(t.Context(), "name", redlock.AutoRenew()); err != nil {
			t.Fatal(err)
		}
		said := fake.fails(func() { n.Hold("name") })
		if want := `redlocktest: another process cannot have the lock: redlock: acquire "name": held by another`; !strings.HasPrefix(said, want) {
			t.Errorf("it says %q", said)
		}
	})
}

// TestOutsideOfABubble: in real time it is the same, with addresses for other processes.
func TestOutsideOfABubble(t *testing.T) {
	leaks.Check(t)
	n := New(t)
	lk := n.Locker(nil)
	other := n.Hold("name")
	connected, err := redlock.Connect(n.URLs(), &redlock.Options{NodeTimeout: 200 * time.Millisecond}) // for the node that is cut off
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	if _, err := connected.TryAcquire(t.Context(), "name"); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("over TCP: %v", err)
	}
	n.Sleep(time.Millisecond)
	if err := other.Release(t.Context()); err != nil {
		t.Error(err)
	}
	l, err := lk.Acquire(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	n.Lose("name")
	if cause := context.Cause(l.Context(t.Context())); !errors.Is(cause, redlock.ErrLost) {
		t.Errorf("the lock has ended with %v", cause)
	}
	// What happens to the nodes happens to those who came over TCP.
	n.Kill(0)
	n.Cut(1)
	if got := outcomes(connected, "name"); got[n.URLs()[0][len("redis://"):]] != redlock.OutcomeUnreachable {
		t.Errorf("the nodes say %v", got)
	}
}

// TestURLsInABubble would hang, and says so.
func TestURLsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeTB{TB: t}
		n := New(fake)
		if said := fake.fails(func() { n.URLs() }); !strings.HasPrefix(said, "redlocktest: URLs in a bubble: ") {
			t.Errorf("it says %q", said)
		}
	})
}
