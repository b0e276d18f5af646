package integration_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestLateKeyIsNoVote: a node that hung sets the key when the time is up, for a lock that others have
// granted. It is told to drop the key. An extension that is ahead of that in its lane finds the key, and
// must not count it: one of the others cannot be reached, and a rival gets that one and this one when the
// lock is over.
func TestLateKeyIsNoVote(t *testing.T) {
	for row, tt := range []struct {
		name          string
		opts          redlock.Options
		extend, awake time.Duration // 0: it is renewed
	}{
		{"extended", redlock.Options{}, 450 * time.Millisecond, 600 * time.Millisecond},
		{"renewed, with a short TTL", redlock.Options{TTL: 100 * time.Millisecond}, 0, 52 * time.Millisecond},
		{"renewed, with a long timeout", redlock.Options{NodeTimeout: 4 * time.Second}, 0, 4200 * time.Millisecond},
	} {
		if !need.Sample(row+1, 3) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := redistest.NewBubble(t, 3)
				holder, rival := open(t, b.Clients(), &tt.opts), open(t, b.Clients(), &tt.opts)
				b.Hang(2)
				begin := time.Now()
				var options []redlock.AcquireOption
				if tt.extend == 0 {
					options = append(options, redlock.AutoRenew())
				}
				l := acquired(t, holder, "a", options...)
				time.Sleep(time.Millisecond)
				b.Path(1).ResetAll()
				b.Hang(1)
				extended := make(chan error, 1)
				if tt.extend > 0 {
					time.Sleep(tt.extend - time.Since(begin))
					go func() { extended <- l.Extend(t.Context()) }()
				}
				time.Sleep(tt.awake - time.Since(begin))
				b.Resume(2)
				time.Sleep(20 * time.Millisecond)
				if tt.extend > 0 {
					if err := <-extended; !errors.Is(err, redlock.ErrNoQuorum) {
						t.Errorf("Extend: %v", err)
					}
				}
				b.Resume(1)
				b.Hang(0) // so that the holder hears nothing more
				oneHolder(t, l, rival)
			})
		})
	}
}

// TestLateKeyOfADetachedLock: a node that has not answered when a lock is detached, and sets the key late, does not count for
// the next process, which could not tell whether it had granted the lock to a rival meanwhile.
func TestLateKeyOfADetachedLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := redistest.NewBubble(t, 3)
		first, second, rival := open(t, b.Clients(), nil), open(t, b.Clients(), nil), open(t, b.Clients(), nil)
		synctest.Wait() // all know the set
		b.Path(2).SetDelay(200 * time.Millisecond)
		b.Hang(2)
		begin := time.Now()
		h, err := acquired(t, first, "a").Detach()
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); len(h.Healed) != 1 || waited > 600*time.Millisecond {
			t.Errorf("after %v, without a vote: %v", waited, h.Healed)
		}
		b.Path(1).ResetAll()
		b.Hang(1)
		time.Sleep(750*time.Millisecond - time.Since(begin))
		b.Resume(2)
		time.Sleep(800*time.Millisecond - time.Since(begin))
		if _, err := second.Attach(t.Context(), h); !errors.Is(err, redlock.ErrNoQuorum) {
			t.Errorf("attached with one node that counts: %v", err)
		}
		b.Path(2).SetDelay(0)
		b.Resume(1)
		var l *redlock.Lock
		for l == nil && time.Since(begin) < 9*time.Second {
			if l, err = second.Attach(t.Context(), h); err != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Hang(0)
		oneHolder(t, l, rival)
	})
}

// oneHolder has a rival try until it has the lock, which must be when the holder's is over. A holder that renews may
// be faster than the rival each time: two nodes answer it in the end.
func oneHolder(t *testing.T, l *redlock.Lock, rival *redlock.Locker) {
	t.Helper()
	left := time.Until(l.Until())
	for deadline := time.Now().Add(10 * left); ; time.Sleep(left / 200) {
		got, err := rival.TryAcquire(t.Context(), l.Name())
		if err == nil {
			if left := time.Until(l.Until()); left > 0 {
				t.Errorf("two holders, the first for another %v; fences %d and %d", left, l.Fence(), got.Fence())
			}
			return
		}
		if time.Now().After(deadline) {
			if time.Until(l.Until()) < 0 {
				t.Error(err)
			}
			return
		}
	}
}

// TestReleaseBehindALateKey: a release that waits behind its acquire at a node that hangs is kept for as
// long as the answer is waited for, also if that is longer than two TTLs.
func TestReleaseBehindALateKey(t *testing.T) {
	for _, tt := range []struct {
		name  string
		opts  redlock.Options
		ttl   time.Duration
		awake time.Duration
		more  []redlock.AcquireOption
	}{
		{"a short TTL", redlock.Options{}, 800 * time.Millisecond, 1800 * time.Millisecond, nil},
		{"a long timeout", redlock.Options{TTL: time.Minute, NodeTimeout: 5 * time.Second}, 8 * time.Second, 17 * time.Second, nil},
		{"a long timeout, by script", redlock.Options{TTL: time.Minute, NodeTimeout: 5 * time.Second}, 8 * time.Second, 17 * time.Second, []redlock.AcquireOption{redlock.Shared()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := redistest.NewBubble(t, 3)
				lk := open(t, b.Clients(), &tt.opts)
				b.Hang(2)
				begin := time.Now()
				l := acquired(t, lk, "a", append(tt.more, redlock.TTL(tt.ttl))...)
				time.Sleep(time.Millisecond)
				_ = l.Release(t.Context())
				time.Sleep(tt.awake - time.Since(begin))
				b.Resume(2)
				time.Sleep(10 * time.Millisecond)
				if keys := b.Keys(2); len(keys) > 0 {
					t.Errorf("the node has %q", keys)
				}
			})
		})
	}
}
