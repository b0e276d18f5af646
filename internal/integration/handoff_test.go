package integration_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/quorumlock/redlock/redlocktrace"
)

// A turn is the result of a call that waited.
type turn struct {
	lock  *redlock.Lock
	at    time.Time
	tries int
	err   error
}

// waits makes a process of its own wait for "a".
func (h *waitingRoom) waits(ctx context.Context, opts redlock.Options, options ...redlock.AcquireOption) <-chan turn {
	h.Helper()
	tries := make(chan int, 1) // comes a moment after the call has returned
	opts.Hooks = &redlock.Hooks{Trace: &redlocktrace.Trace{End: func(_ context.Context, op redlocktrace.Operation) {
		if op.Op == "acquire" {
			tries <- op.Tries
		}
	}}}
	lk, got := open(h.T, h.Clients(), &opts), make(chan turn, 1)
	h.calls.Go(func() {
		l, err := lk.Acquire(ctx, "a", options...)
		at := time.Now()
		got <- turn{l, at, <-tries, err}
	})
	time.Sleep(100 * time.Millisecond) // by then it was refused, and has subscribed
	return got
}

// TestHandedOver: a release hands the lock to the next waiter, which makes no other attempt. The
// lock is valid for a lease at first, and then for a TTL; or for a TTL at once, if it is renewed.
func TestHandedOver(t *testing.T) {
	for name, options := range map[string][]redlock.AcquireOption{"once": nil, "renewed": {redlock.AutoRenew()}} {
		if !need.Sample(len(options), 2) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			inWaitingRoom(t, func(h *waitingRoom) {
				before := acquired(h.T, h.locker(), "a")
				got := h.waits(h.Context(), redlock.Options{}, options...)
				behind := h.waits(h.Context(), redlock.Options{})
				begin := time.Now()
				released(h.T, before)
				next := <-got
				if next.err != nil {
					t.Fatal(next.err)
				}
				l := next.lock
				const lease, ttl = 3 * time.Second, 10 * time.Second
				trip, least, most := 1500*time.Microsecond, lease/3, lease
				if options != nil { // it has been extended, a trip later
					trip, least, most = 2500*time.Microsecond, ttl-ttl/50, ttl
				}
				// There and back over a link of a millisecond. One attempt was made before it subscribed.
				if took := next.at.Sub(begin); next.tries != 2 || took > trip {
					t.Errorf("handed over after %v, and %d attempts", took, next.tries)
				}
				if l.Fence() <= before.Fence() {
					t.Errorf("fence %d after %d", l.Fence(), before.Fence())
				}
				if left := time.Until(l.Until()); left > most || left < least {
					t.Errorf("valid for %v at first", left)
				}
				for i := range h.Len() {
					if token, err := h.Mini(i).Get("a"); err != nil || token != l.Token() {
						t.Errorf("node %d has %q, %v", i, token, err)
					}
				}
				time.Sleep(20 * time.Millisecond)
				if left := time.Until(l.Until()); left < ttl-ttl/50 {
					t.Errorf("valid for %v in the end", left)
				}
				time.Sleep(ttl + time.Second)
				if over := time.Until(l.Until()) <= 0; over != (options == nil) {
					t.Errorf("over after a TTL: %v", over)
				}
				if options != nil {
					released(h.T, l)
				}
				last := <-behind
				if last.err != nil || last.lock.Fence() <= l.Fence() {
					t.Errorf("the waiter behind it: fence %d after %d, %v", last.lock.Fence(), l.Fence(), last.err)
				}
				released(h.T, last.lock) // at once: nothing may be left, places in queues included
			})
		})
	}
}

// TestSomeAreFree: of the locks that were handed over, one in sixteen is not handed on when it is
// released, for clients that take only a free lock; and one in four while such clients are known.
// The waiter is called. A lock that was not handed over is always handed on.
func TestSomeAreFree(t *testing.T) {
	need.Full(t)
	const uuid = "0f8fad5b-d9cb-469f-a165-70867728950e" // some other libraries have such tokens, too
	ours := wire.Sign(uuid, time.UnixMilli(1795680000123), "", "", "o")
	for name, tt := range map[string]struct {
		before      []string // the earlier holders of the lock
		least, most int      // of a thousand that were handed over
	}{
		"among ours":      {[]string{ours}, 15, 125},
		"another library": {[]string{uuid}, 150, 350},
		"a minute later":  {[]string{"another's", ours}, 15, 125},
	} {
		t.Run(name, func(t *testing.T) {
			if len(tt.before) == 1 && tt.least < 100 {
				need.Long(t) // the last one ends with the same rule
			}
			inWaitingRoom(t, func(h *waitingRoom) {
				locks := need.Sized(400, 400, 4000)
				lockers, got := []*redlock.Locker{h.locker(), h.locker()}, make(chan *redlock.Lock)
				for _, token := range tt.before {
					time.Sleep(time.Minute)
					for _, lk := range lockers {
						for i := range h.Len() {
							if err := h.Client(i).Set(h.Context(), "a", token, 50*time.Millisecond).Err(); err != nil {
								t.Fatal(err)
							}
						}
						l, err := lk.Acquire(h.Context(), "a")
						if err != nil {
							t.Fatal(err)
						}
						released(h.T, l)
					}
				}
				for _, lk := range lockers {
					h.calls.Go(func() {
						for range locks / 2 {
							l, err := lk.Acquire(h.Context(), "a")
							if err != nil {
								t.Error(err)
								break
							}
							time.Sleep(5 * time.Millisecond) // until the other one waits
							got <- l
							released(h.T, l)
						}
					})
				}
				free, was := 0, true
				for n := range locks {
					l := <-got
					handed := strings.Contains(wire.Secret(l.Token()), ".")
					if !handed {
						free++
					}
					if !was && !handed && n > 4 { // by then both have subscribed
						t.Errorf("lock %d: not handed over, after one that was not", n)
					}
					was = handed
				}
				if share := 1000 * free / (locks - free); share < tt.least || share > tt.most {
					t.Errorf("%d of a thousand that were handed over were left free", share)
				}
			})
		})
	}
}

// TestOnlyCalled: a waiter for another kind of lock, or for one that is shorter than a lease, is
// called, and makes an attempt.
func TestOnlyCalled(t *testing.T) {
	need.Full(t)
	for name, tt := range map[string]struct {
		opts   redlock.Options
		option redlock.AcquireOption
	}{
		"shared":        {option: redlock.Shared()},
		"several names": {option: redlock.Also("b")},
		"short":         {redlock.Options{TTL: 200 * time.Millisecond, MaxTTL: 10 * time.Second}, redlock.TTL(200 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			inWaitingRoom(t, func(h *waitingRoom) {
				before := acquired(h.T, h.locker(), "a")
				got := h.waits(h.Context(), tt.opts, tt.option)
				released(h.T, before)
				next := <-got
				if next.err != nil || strings.Contains(wire.Secret(next.lock.Token()), ".") {
					t.Fatalf("%v, %v", next.lock.Token(), next.err)
				}
				released(h.T, next.lock)
			})
		})
	}
}

// TestHandedOverInVain: grants of a failed attempt are not handed over, since a waiter that one
// node hands the lock waits for the others.
func TestHandedOverInVain(t *testing.T) {
	need.Full(t)
	inWaitingRoom(t, func(h *waitingRoom) {
		before, lk, trying := acquired(h.T, h.locker(), "a"), h.locker(), h.locker()
		wait := func() {
			h.calls.Go(func() {
				l, err := lk.Acquire(h.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				released(h.T, l)
			})
		}
		wait()
		time.Sleep(100 * time.Millisecond)
		released(h.T, before)
		time.Sleep(100 * time.Millisecond) // until it has subscribed
		for _, node := range []int{0, 1} {
			if err := h.Client(node).Set(h.Context(), "a", "another's", 2*time.Second).Err(); err != nil {
				t.Fatal(err)
			}
		}
		// The attempt reaches the nodes after half a millisecond, the waiter's after one, and the release
		// after one and a half.
		time.AfterFunc(500*time.Microsecond, wait)
		if _, err := trying.TryAcquire(h.Context(), "a"); !errors.Is(err, redlock.ErrHeld) {
			t.Fatal(err)
		}
		time.Sleep(750 * time.Microsecond)
		if queues := h.queues(2); len(queues) != 1 {
			t.Errorf("in the queues: %q", queues)
		}
		if token, err := h.Mini(2).Get("a"); err == nil {
			t.Errorf("%q was handed the lock", token)
		}
	})
}

// TestHandedOverWithoutNodes: a holder that was handed the lock, and then cannot extend it, is told
// before its lease is over on the nodes, and the next waiter waits no longer than that.
func TestHandedOverWithoutNodes(t *testing.T) {
	need.Full(t)
	inWaitingRoom(t, func(h *waitingRoom) {
		before := acquired(h.T, h.locker(), "a")
		cut := newLink(h)
		got := make(chan turn, 1)
		h.calls.Go(func() {
			l, err := cut.locker.Acquire(h.Context(), "a")
			got <- turn{lock: l, at: time.Now(), err: err}
		})
		time.Sleep(100 * time.Millisecond)
		behind := h.waits(h.Context(), redlock.Options{})
		released(h.T, before)
		next := <-got
		if next.err != nil {
			t.Fatal(next.err)
		}
		ctx := next.lock.Context(h.Context())
		cut.cut()
		<-ctx.Done()
		told := time.Now()
		if cause := context.Cause(ctx); !errors.Is(cause, redlock.ErrLost) || told.Sub(next.at) > 3*time.Second {
			t.Errorf("told after %v: %v", told.Sub(next.at), cause)
		}
		last := <-behind
		if last.err != nil || last.at.Before(told) || last.at.Sub(next.at) > 3*time.Second+called {
			t.Errorf("the next waiter has it after %v, %v", last.at.Sub(next.at), last.err)
		}
		released(h.T, last.lock)
	})
}

// TestHandedOverLate: a node that hangs gets the release that hands the lock over, and the
// extension that followed, only after the new holder has released the lock elsewhere. The lock is
// free there as soon as the node can be reached, since the lane repeats the release until the node
// confirms it.
func TestHandedOverLate(t *testing.T) {
	need.Full(t)
	inWaitingRoom(t, func(h *waitingRoom) {
		before := acquired(h.T, h.locker(), "a")
		got := h.waits(h.Context(), redlock.Options{}, redlock.AutoRenew())
		h.Hang(2)
		released(h.T, before)
		next := <-got
		if next.err != nil {
			t.Fatal(next.err)
		}
		released(h.T, next.lock)
		time.Sleep(2500 * time.Millisecond) // by then no call waits for the node
		h.Resume(2)
		time.Sleep(500 * time.Microsecond)
		if token, err := h.Mini(2).Get("a"); err != nil || token != next.lock.Token() {
			t.Errorf("the node has %q, %v: it has not been handed over late", token, err)
		}
		time.Sleep(time.Second)
		if keys := h.Keys(2); slices.Contains(keys, "a") {
			t.Errorf("the node still has it: %q", keys)
		}
	})
}

// TestHandedOnByAll: a node that has handed the lock over too late to be counted hands it on like
// the others, once the lock was extended there.
func TestHandedOnByAll(t *testing.T) {
	need.Full(t)
	inWaitingRoom(t, func(h *waitingRoom) {
		everywhere := 0
		for range 8 { // some locks are left free in between: TestSomeAreFree
			before := acquired(h.T, h.locker(), "a")
			got, behind := h.waits(h.Context(), redlock.Options{}), h.waits(h.Context(), redlock.Options{})
			h.Path(2).SetDelay(20 * time.Millisecond)
			released(h.T, before)
			next := <-got
			if next.err != nil {
				t.Fatal(next.err)
			}
			h.Path(2).SetDelay(time.Millisecond)
			time.Sleep(100 * time.Millisecond)
			released(h.T, next.lock)
			last := <-behind
			if last.err != nil {
				t.Fatal(last.err)
			}
			if token, _ := h.Mini(2).Get("a"); token == last.lock.Token() {
				everywhere++
			}
			released(h.T, last.lock)
		}
		if everywhere == 0 {
			t.Error("the node that was late has not handed the lock on")
		}
	})
}

// TestHandedOverAndDetached: the next process gets a whole TTL.
func TestHandedOverAndDetached(t *testing.T) {
	need.Full(t)
	inWaitingRoom(t, func(h *waitingRoom) {
		before := acquired(h.T, h.locker(), "a")
		got := h.waits(h.Context(), redlock.Options{})
		released(h.T, before)
		next := <-got
		if next.err != nil {
			t.Fatal(next.err)
		}
		handle, err := next.lock.Detach()
		if err != nil || time.Until(handle.Until) < 9*time.Second {
			t.Fatalf("valid for %v, %v", time.Until(handle.Until), err)
		}
		l, err := open(h.T, h.Clients(), &redlock.Options{}).Attach(h.Context(), handle)
		if err != nil {
			t.Fatal(err)
		}
		released(h.T, l)
	})
}

// TestHandedOverBriefly: MaxHold is a limit here as well. If it is shorter than a trip, the first
// waiter gets the lock all the same, also with renewal.
func TestHandedOverBriefly(t *testing.T) {
	need.Full(t)
	for name, options := range map[string][]redlock.AcquireOption{"once": nil, "renewed": {redlock.AutoRenew()}} {
		for _, hold := range []time.Duration{time.Second, 500 * time.Microsecond} {
			t.Run(name+" "+hold.String(), func(t *testing.T) {
				inWaitingRoom(t, func(h *waitingRoom) {
					before := acquired(h.T, h.locker(), "a")
					got := h.waits(h.Context(), redlock.Options{}, append(options, redlock.MaxHold(hold))...)
					behind := h.waits(h.Context(), redlock.Options{})
					released(h.T, before)
					next, last := <-got, <-behind
					if next.err != nil || last.err != nil {
						t.Fatal(next.err, last.err)
					}
					if until := next.lock.Until(); until.After(next.at.Add(hold)) {
						t.Errorf("valid for %v", until.Sub(next.at))
					}
					if next.lock.Fence() >= last.lock.Fence() {
						t.Errorf("fence %d, and of the next holder %d", next.lock.Fence(), last.lock.Fence())
					}
					if err := next.lock.Release(h.Context()); err == nil || !strings.Contains(err.Error(), "MaxHold") {
						t.Errorf("release says %v", err)
					}
					released(h.T, last.lock)
				})
			})
		}
	}
}

// TestHandedOverAndLost: a lock that was handed over, and that the nodes lose before it is
// extended, is not acquired. The waiter waits on, and is handed the next one like any other.
func TestHandedOverAndLost(t *testing.T) {
	need.Full(t)
	inWaitingRoom(t, func(h *waitingRoom) {
		before := acquired(h.T, h.locker(), "a")
		got := h.waits(h.Context(), redlock.Options{}, redlock.AutoRenew())
		const token = "0f8fad5b-d9cb-469f-a165-70867728950e" // of this library's form, or the waiter would retry all the time
		// The message arrives after a millisecond, and the extension reaches the nodes after another half.
		time.AfterFunc(1250*time.Microsecond, func() {
			for i := range h.Len() {
				if err := h.Mini(i).Set("a", token); err != nil {
					h.Error(err)
				}
				h.Mini(i).SetTTL("a", 10*time.Second)
			}
		})
		released(h.T, before)
		time.Sleep(1300 * time.Millisecond) // by then it has made another attempt, and one more after a heartbeat
		second, err := h.locker().Attach(h.Context(), redlock.Handle{Name: "a", Token: token, Fence: before.Fence() + 1, TTL: 10 * time.Second, Since: time.Now(), Separator: "/"})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		released(h.T, second)
		next := <-got
		if next.err != nil {
			t.Fatal(next.err)
		}
		if took := next.at.Sub(begin); took > 10*time.Millisecond {
			t.Errorf("handed over after %v: the message did not arrive", took)
		}
		if !strings.Contains(wire.Secret(next.lock.Token()), ".") {
			t.Errorf("not handed over: %s", next.lock.Token())
		}
		released(h.T, next.lock)
	})
}
