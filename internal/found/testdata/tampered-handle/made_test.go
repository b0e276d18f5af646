package redlock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTamperedHandle: a handle whose fence no lock can have is refused before anything is sent.
func TestTamperedHandle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		h, err := acquired(t, lk, "a").Detach()
		if err != nil {
			t.Fatal(err)
		}
		for _, fence := range []int64{-1, 0, 1 << 53, 1<<63 - 1} {
			bad := h
			bad.Fence = fence
			if _, err := lk.Attach(t.Context(), bad); err == nil || errors.Is(err, ErrNoQuorum) || !strings.Contains(err.Error(), fmt.Sprint("fence ", fence, " ")) {
				t.Errorf("fence %d: %v", fence, err)
			}
		}
		for what, option := range map[string]AcquireOption{"TTL": TTL(time.Second), "MaxHold": MaxHold(time.Second), "Reentrant": Reentrant(), "Shared": Shared(), "Also": Also("b"), "Slots": Slots(2)} {
			if _, err := lk.Attach(t.Context(), h, AutoRenew(), option); err == nil || !strings.Contains(err.Error(), "the only option is AutoRenew") {
				t.Errorf("with %s: %v", what, err)
			}
		}
		if _, err := lk.Attach(t.Context(), h, AutoRenew()); err != nil {
			t.Error(err)
		}
	})
}
