package redlock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestCloseDuringChange: Close ends a change that waits, whatever it waits for.
func TestCloseDuringChange(t *testing.T) {
	grows(t, 5, func(g *growing) {
		lk := g.over(nil, 0, 1, 2)
		g.change(lk, Change{Add: g.Addr(3)})
		done := make(chan error, 1)
		go func() {
			_, err := lk.Change(context.Background(), Change{Add: g.Addr(4)}, nil)
			done <- err
		}()
		time.Sleep(time.Second)
		began := time.Now()
		lk.Close()
		if took := time.Since(began); took > 2*time.Second {
			g.Errorf("Close took %v", took)
		}
		if err := <-done; !errors.Is(err, ErrClosed) {
			g.Errorf("the change ended with %v", err)
		}
	})
}

// TestChangeWaitsForNodes: a change waits for nodes that are away, and asks no more often than they may come back.
func TestChangeWaitsForNodes(t *testing.T) {
	grows(t, 4, func(g *growing) {
		lk := g.over(nil, 0, 1, 2)
		g.Kill(0)
		g.Kill(1)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
		defer cancel()
		if _, err := lk.Change(ctx, Change{Add: g.Addr(3)}, nil); !errors.Is(err, context.DeadlineExceeded) {
			g.Errorf("the change ended with %v", err)
		}
	})
}

// try checks that a Locker can lock, or cannot.
func (g *growing) try(lk *Locker, want bool) {
	g.Helper()
	l, err := lk.TryAcquire(g.Context(), "tries")
	if err == nil {
		err = l.Release(g.Context())
	}
	if (err == nil) != want {
		g.Errorf("it can lock: %v, want %v: %v", err == nil, want, err)
	}
	time.Sleep(100 * time.Millisecond)
}

// TestOwnOptions: a change after which the operator could not use the set is refused, and nothing is changed.
func TestOwnOptions(t *testing.T) {
	grows(t, 5, func(g *growing) {
		three, short := 3, 5*time.Second
		for name, tt := range map[string]struct {
			options Options
			change  Change
		}{
			"the quorum":                 {Options{Quorum: 2}, Change{Quorum: &three}},
			"the quorum, by a node more": {Options{Quorum: 2}, Change{Add: g.Addr(3)}},
			"the longest TTL":            {Options{MaxTTL: 10 * time.Second}, Change{MaxTTL: &short}},
		} {
			operator := g.over(&tt.options, 0, 1, 2)
			g.try(operator, true)
			if m, err := operator.Change(g.Context(), tt.change, nil); err == nil {
				g.Errorf("%s: no error, and the set is %+v", name, m)
			}
			g.try(operator, true)
			g.try(g.over(nil, 0, 1, 2), true)
		}
	})
}
