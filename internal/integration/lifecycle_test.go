package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// TestCloseWhileWaiting: Close ends a wait at once, and the wait leaves nothing.
func TestCloseWhileWaiting(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
	others := open(t, redistest.Clients(t, servers), patient())
	held := acquired(t, others, "a")
	before := callsOf(t, servers[0], "evalsha")
	ended := make(chan error, 1)
	go func() {
		_, err := lk.Acquire(context.Background(), "a")
		ended <- err
	}()
	eventually(t, 5*time.Second, "a second attempt of the waiter", func() bool { return callsOf(t, servers[0], "evalsha") > before+2 })
	if err := lk.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, redlock.ErrClosed) {
			t.Errorf("the wait ended with %v", err)
		}
	case <-time.After(slack):
		t.Fatal("the waiter still waits")
	}
	released(t, held)
	nothingLeft(t, servers)
}

// TestCloseWhileHolding: Close ends the locks that are held, tells their holders, and leaves the
// keys to their TTL: a holder may still be at work.
func TestCloseWhileHolding(t *testing.T) {
	const ttl = 2 * time.Second
	servers, lk := besideOthers(t, 3, &redlock.Options{TTL: ttl})
	watched, renewed := acquired(t, lk, "watched"), acquired(t, lk, "renewed", redlock.AutoRenew())
	plain := acquired(t, lk, "plain")
	ctx := watched.Context(t.Context())
	running := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- lk.Do(context.Background(), "done", func(ctx context.Context, _ *redlock.Lock) error {
			close(running)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	<-running
	if err := lk.Close(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"watched", "renewed", "plain"} {
		if n := len(ask(t, servers[0], "KEYS", name).([]any)); n != 1 {
			t.Errorf("%d keys %q right after Close", n, name)
		}
	}
	if cause := context.Cause(ctx); !errors.Is(cause, redlock.ErrClosed) || !errors.Is(cause, redlock.ErrLost) {
		t.Errorf("the context's cause is %v", cause)
	}
	if cause := context.Cause(renewed.Context(t.Context())); !errors.Is(cause, redlock.ErrClosed) {
		t.Errorf("the cause of a context that is asked for afterwards is %v", cause)
	}
	if err := <-done; !errors.Is(err, redlock.ErrClosed) || !errors.Is(err, redlock.ErrLost) {
		t.Errorf("Do: %v", err)
	}
	for _, l := range []*redlock.Lock{watched, renewed, plain} {
		if err := l.Extend(t.Context()); !errors.Is(err, redlock.ErrClosed) {
			t.Errorf("Extend of %q: %v", l.Name(), err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, redlock.ErrClosed) {
			t.Errorf("Release of %q: %v", l.Name(), err)
		}
	}
	nothingLeft(t, servers) // the TTL is over before the patience of this test
}

// TestCloseSendsReleases: releases that were under way when Close was called are sent, also to a
// node that has not answered yet.
func TestCloseSendsReleases(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 5)
	for range 20 {
		lk := open(t, redistest.Clients(t, servers), patient())
		l := acquired(t, lk, "a")
		released(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, _ = lk.TryAcquire(ctx, "b") // won or not: it is released in both cases
		if l, err := lk.TryAcquire(t.Context(), "c"); err == nil {
			_ = l.Release(ctx)
		}
		if err := lk.Close(); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"a", "c"} {
			for _, s := range servers {
				if keys := ask(t, s, "KEYS", name).([]any); len(keys) > 0 {
					t.Errorf("%v left on %s after Close", keys, s.Addr)
				}
			}
		}
		on(t, servers, "DEL", "b")
	}
}

// TestPanicUnderLock: a panic goes on to the caller of Do, and the lock does not
// survive it.
func TestPanicUnderLock(t *testing.T) {
	servers, lk := onServers(t, 3, patient())
	func() {
		defer func() {
			if got := recover(); got != "out of paper" {
				t.Errorf("recovered %v", got)
			}
		}()
		_ = lk.Do(t.Context(), "a", func(context.Context, *redlock.Lock) error { panic("out of paper") })
	}()
	nothingLeft(t, servers)
}

// TestNoTraceOfTheCancelled: ctx ends before, during and after the call; no key stays.
func TestNoTraceOfTheCancelled(t *testing.T) {
	servers, lk := onServers(t, 3, &redlock.Options{TTL: time.Minute, NodeTimeout: 500 * time.Millisecond})
	others := open(t, redistest.Clients(t, servers), patient())
	errEnough := errors.New("enough")

	t.Run("before", func(t *testing.T) {
		before := callsOf(t, servers[0], "evalsha") + callsOf(t, servers[0], "set")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		for name, acquire := range map[string]func(context.Context, string, ...redlock.AcquireOption) (*redlock.Lock, error){
			"Acquire": lk.Acquire, "TryAcquire": lk.TryAcquire,
		} {
			if _, err := acquire(ctx, "a"); !errors.Is(err, context.Canceled) || !errors.Is(err, errEnough) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after := callsOf(t, servers[0], "evalsha") + callsOf(t, servers[0], "set"); after != before {
			t.Errorf("%d requests were sent", after-before)
		}
	})
	t.Run("in flight", func(t *testing.T) {
		for _, acquire := range []func(context.Context, string, ...redlock.AcquireOption) (*redlock.Lock, error){lk.Acquire, lk.TryAcquire} {
			hang(t, servers...)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if _, err := acquire(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
			resume(t, servers...)
			nothingLeft(t, servers)
			lockAgain(t, lk)
		}
	})
	t.Run("pausing", func(t *testing.T) {
		held := acquired(t, others, "a")
		eventually(t, 2*time.Second, "the holder has all nodes", func() bool { return heldOn(t, servers, "a", held.Token()) == 3 })
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errEnough)
		defer cancel()
		if _, err := lk.Acquire(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errEnough) {
			t.Error(err)
		}
		if n := heldOn(t, servers, "a", held.Token()); n != 3 {
			t.Errorf("the holder has %d nodes", n)
		}
		released(t, held)
		nothingLeft(t, servers)
	})
	t.Run("after winning", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := lk.Do(ctx, "a", func(ctx context.Context, _ *redlock.Lock) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, redlock.ErrLost) {
			t.Error(err)
		}
		l := acquired(t, lk, "b")
		if err := l.Release(ctx); err != nil {
			t.Errorf("Release with a dead context: %v", err)
		}
		nothingLeft(t, servers)
	})
}
