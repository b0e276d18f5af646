package redlock

import (
	"testing"
)

// TestNilOption: an option that is nil is named, and not called.
func TestNilOption(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lk := newModels(3).locker(t, nil)
		if _, err := lk.Acquire(t.Context(), "a", AutoRenew(), nil); message(err) != `redlock: acquire "a": option 1 is nil` {
			t.Error(err)
		}
		h, err := acquired(t, lk, "a").Detach()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lk.Attach(t.Context(), h, nil); message(err) != `redlock: attach "a": option 0 is nil` {
			t.Error(err)
		}
	})
}
