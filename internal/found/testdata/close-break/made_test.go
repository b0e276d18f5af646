package redlock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestCloseEndsBreak: Close does not wait for a Break that waits for nodes.
func TestCloseEndsBreak(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		l := acquired(t, ms.locker(t, &Options{TTL: 10 * time.Second}), "a")
		ms[4].forget() // it may never have had the token: Break waits for the waiter's lease
		ms[3].forget()
		lk := ms.locker(t, &Options{TTL: 10 * time.Second})
		ms[2].hang()
		done := make(chan error, 1)
		go func() { done <- lk.Break(t.Context(), "a", l.Token()) }()
		time.Sleep(700 * time.Millisecond)
		begin := time.Now()
		lk.Close()
		if took := time.Since(begin); took > 2*lk.opts.NodeTimeout {
			t.Errorf("Close took %v", took)
		}
		if err := <-done; !errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
			t.Errorf("Break: %v", err)
		}
		ms[2].resume()
	})
}
