package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestNobodyGetsALockBetweenDetachAndAttach: a lock of any kind passes from one process, which ends, to another one, and is
// the same lock there: no other client can have it in between, nor before it is released.
func TestNobodyGetsALockBetweenDetachAndAttach(t *testing.T) {
	for row, tt := range []struct {
		name    string
		lock    string
		options []redlock.AcquireOption
		rivals  [][]redlock.AcquireOption
	}{
		{"alone", "a", nil, [][]redlock.AcquireOption{nil, {redlock.Shared()}}},
		{"of several names", "b", []redlock.AcquireOption{redlock.Also("c", "a")}, [][]redlock.AcquireOption{nil, {redlock.Also("c")}}},
		{"shared", "a", []redlock.AcquireOption{redlock.Shared()}, [][]redlock.AcquireOption{nil}},
		{"several, shared", "a", []redlock.AcquireOption{redlock.Shared(), redlock.Also("b")}, [][]redlock.AcquireOption{nil}},
		{"a slot", "a", []redlock.AcquireOption{redlock.Slots(1)}, [][]redlock.AcquireOption{nil, {redlock.Slots(1)}}},
		{"a folder's", "a/b/c", nil, [][]redlock.AcquireOption{nil, {redlock.Shared()}}},
		{"two in folders", "a/b", []redlock.AcquireOption{redlock.Also("c/d")}, [][]redlock.AcquireOption{nil}},
	} {
		if !need.Sample(row+1, 6) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			fences(t, func(f *fenced) {
				t := f.T
				opts := redlock.Options{Prefix: "app:", Separator: "/"}
				rival := f.locker(&opts)
				first, err := redlock.New(f.Clients(), &opts)
				if err != nil {
					f.Fatal(err)
				}
				was := atRest(t, first, tt.lock, append(tt.options, redlock.TTL(5*time.Second), redlock.AutoRenew())...)
				ctx := was.Context(t.Context())
				pass(3 * time.Second)
				until := was.Until()
				h := handle(t, was)
				if got := context.Cause(ctx); !isDetached(got) || errors.Is(got, redlock.ErrLost) {
					t.Errorf("the lock's context ended with %v", got)
				}
				if err := was.Release(t.Context()); !isDetached(err) {
					t.Errorf("releasing a detached lock: %v", err)
				}
				if err := was.Extend(t.Context()); !isDetached(err) {
					t.Errorf("extending a detached lock: %v", err)
				}
				if _, err := was.Detach(); !isDetached(err) {
					t.Errorf("detaching it again: %v", err)
				}
				if slices.Contains(h.Also, h.Name) {
					t.Errorf("%q, also %q", h.Name, h.Also)
				}
				if !h.Until.Equal(until) || !h.Since.Equal(was.Since()) {
					t.Errorf("the handle says since %v until %v, the lock since %v until %v", h.Since, h.Until, was.Since(), until)
				}
				pass(time.Second)
				first.Close()
				for _, options := range tt.rivals {
					refused(t, rival, "a", options...)
				}

				pass(2 * time.Second) // its end comes nearer: since the last extension, 4 s at the least
				begun := time.Now()
				lk := f.locker(&opts)
				l := attached(t, lk, h, redlock.AutoRenew())
				if l.Name() != was.Name() || l.Token() != was.Token() || l.Fence() != was.Fence() || !l.Since().Equal(was.Since()) {
					t.Errorf("%v is another lock than %v", l, was)
				}
				if want := begun.Add(5*time.Second - 52*time.Millisecond); !l.Until().Equal(want) {
					t.Errorf("valid for %v, want %v", l.Until().Sub(begun), want.Sub(begun))
				}
				pass(30 * time.Second)
				for _, options := range tt.rivals {
					refused(t, rival, "a", options...)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
				pass(time.Second)
				f.free(0, 1, 2, 3, 4)
				if next := atRest(t, rival, "a"); next.Fence() <= l.Fence() {
					t.Errorf("the fence %d after %d", next.Fence(), l.Fence())
				}
				if _, err := lk.Attach(t.Context(), h); !errors.Is(err, redlock.ErrLost) {
					t.Errorf("attaching a lock that was released: %v", err)
				}
			})
		})
	}
}

// handle detaches a lock, and gives what another process reads of what this one writes.
func handle(t *testing.T, l *redlock.Lock) (h redlock.Handle) {
	t.Helper()
	detached, err := l.Detach()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(detached)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func attached(t *testing.T, lk *redlock.Locker, h redlock.Handle, options ...redlock.AcquireOption) *redlock.Lock {
	t.Helper()
	l, err := lk.Attach(t.Context(), h, options...)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return l
}

// isDetached reports whether an error says that the lock was detached, and is none that Is takes for another one.
func isDetached(err error) bool { return err != nil && err.Error() == "redlock: lock detached" }
