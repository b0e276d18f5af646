package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// TestLargestLocks: locks that are just within the limits work on real servers in every step: they
// are held and refused, waited for, extended, handed on, inspected and released, and leave no key.
func TestLargestLocks(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 3)
	opts := patient()
	opts.Separator, opts.Owner = "/", strings.Repeat("o", redlock.MaxOwner)
	lk, other := open(t, redistest.Clients(t, servers), opts), open(t, redistest.Clients(t, servers), opts)
	var names, paths []string
	for i := range redlock.MaxKeys - 1 {
		names = append(names, fmt.Sprintf("%d%s", i, strings.Repeat("n", redlock.MaxName-3)))
	}
	for i := range redlock.MaxKeys - redlock.MaxDepth {
		paths = append(paths, strings.Repeat("p/", redlock.MaxDepth-1)+fmt.Sprint(i))
	}
	for _, tt := range []struct {
		about, name string
		options     []redlock.AcquireOption
	}{
		{"a long name", strings.Repeat("\x00\n\xff", redlock.MaxName/3), nil},
		{"a deep path", strings.Repeat("p/", redlock.MaxDepth-1) + strings.Repeat("x", redlock.MaxName-2*(redlock.MaxDepth-1)), nil},
		{"many names", "a", []redlock.AcquireOption{redlock.Also(names...)}},
		{"many readers' names", "a", []redlock.AcquireOption{redlock.Also(names...), redlock.Shared()}},
		{"many deep paths", paths[0], []redlock.AcquireOption{redlock.Also(paths[1:]...)}},
		{"many slots", "s", []redlock.AcquireOption{redlock.Slots(redlock.MaxSlots)}},
	} {
		l := acquired(t, lk, tt.name, tt.options...)
		wants := tt.options
		if strings.Contains(tt.about, "readers") || strings.Contains(tt.about, "slots") {
			wants = nil // exclusive, which conflicts with these
		}
		if _, err := other.TryAcquire(t.Context(), tt.name, wants...); err == nil {
			t.Errorf("%s: two holders", tt.about)
		}
		if err := l.Extend(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.about, err)
		}
		if s, err := other.Inspect(t.Context(), tt.name); err != nil || s.State != redlock.StateHeld {
			t.Errorf("%s: %+v, %v", tt.about, s, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		got := make(chan error, 1)
		go func() {
			next, err := other.Acquire(ctx, tt.name, wants...)
			if err == nil {
				err = next.Release(ctx)
			}
			got <- err
		}()
		eventually(t, 5*time.Second, "the waiter", func() bool {
			s, err := lk.Inspect(t.Context(), tt.name)
			return err == nil && len(s.Waiting) == 1 && s.Waiting[0].Owner == opts.Owner
		})
		h, err := l.Detach()
		if err != nil {
			t.Fatalf("%s: %v", tt.about, err)
		}
		if l, err = lk.Attach(t.Context(), h); err != nil {
			t.Fatalf("%s: %v", tt.about, err)
		}
		released(t, l)
		if err := <-got; err != nil {
			t.Errorf("%s: the waiter: %v", tt.about, err)
		}
		cancel()
	}
	nothingLeft(t, servers)
}
