package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestAcquireWaitsForTheEndOfTTL: a holder that died is waited for no longer than
// its keys live.
func TestAcquireWaitsForTheEndOfTTL(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		for _, m := range ms {
			m.put("a", "dead", 7*time.Second)
		}
		begin := time.Now()
		l, err := lk.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 7*time.Second || took > 7*time.Second+2*time.Millisecond {
			t.Errorf("acquired after %v", took)
		}
		l.Release(t.Context())
	})
}

// TestAcquireIsBoundedByCtxOnly: whatever stands against it, it ends with ctx and
// says both why it ended and why it had no lock (C8, E3).
func TestAcquireIsBoundedByCtxOnly(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   func(models)
		want  error
		until time.Duration
	}{
		{"held", func(ms models) {
			for _, m := range ms {
				m.put("a", "rival", 24*time.Hour)
			}
		}, ErrHeld, 10 * time.Minute},
		{"down", func(ms models) { ms[0].kill(); ms[1].kill(); ms[2].kill() }, ErrNoQuorum, 10 * time.Minute},
		{"hung", func(ms models) { ms[0].hang(); ms[1].hang(); ms[2].hang() }, ErrNoQuorum, time.Minute},
		{"hung, in the first round", func(ms models) { ms[0].hang(); ms[1].hang(); ms[2].hang() }, ErrNoQuorum, 10 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(5)
				lk := ms.locker(t, nil)
				tt.set(ms)
				begin := time.Now()
				errBusy := errors.New("no time for this")
				ctx, cancel := context.WithTimeoutCause(t.Context(), tt.until, errBusy)
				defer cancel()
				_, err := lk.Acquire(ctx, "a")
				if took := time.Since(begin); took != tt.until {
					t.Errorf("returned after %v, want %v", took, tt.until)
				}
				wantQuorumError(t, err, tt.want)
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errBusy) {
					t.Errorf("%v hides the context's error or its cause", err)
				}
			})
		})
	}
}

// TestRoundCutShort: ctx may end in the middle of a round; what was known before
// it began is still why there was no lock (E2).
func TestRoundCutShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		for _, m := range ms {
			m.put("a", "rival", time.Hour)
			m.slow(15 * time.Millisecond)
		}
		for at := 65 * time.Millisecond; at < 300*time.Millisecond; at += time.Millisecond {
			ctx, cancel := context.WithTimeout(t.Context(), at)
			_, err := lk.Acquire(ctx, "a")
			wantQuorumError(t, err, ErrHeld)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
		}
	})
}

// TestVotesAfterTheRound: grants that come between the end of waiting and the
// error are no reason to say that another has the lock.
func TestVotesAfterTheRound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		for _, m := range ms {
			m.slow(10 * time.Millisecond)
		}
		a, err := lk.opts.acquisition("a", nil)
		if err != nil {
			t.Fatal(err)
		}
		l := lk.newLock(a, 0, lk.opts.host.Token())
		r := lk.newRound(wire.Acquire, l, nil)
		r.start(time.Now(), time.Now().Add(time.Second))
		r.wait(t.Context(), time.Millisecond)
		pass(time.Second)
		wantQuorumError(t, r.explain(time.Now(), nil), ErrNoQuorum)
		r.drop()
		l.releaseAsync()
	})
}

// TestAcquireOnceNodesAreBack: no quorum is something to wait for, too.
func TestAcquireOnceNodesAreBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		ms[0].kill()
		ms[1].kill()
		lk := ms.locker(t, nil)
		time.AfterFunc(time.Minute, func() { ms[0].revive() })
		begin := time.Now()
		l, err := lk.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < time.Minute || took > time.Minute+time.Second+waitlist.MaxPause {
			t.Errorf("acquired after %v", took)
		}
		l.Release(t.Context())
	})
}

// TestNothingToWaitFor: a key that is no lock stays for ever.
func TestNothingToWaitFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		for _, m := range ms[:2] {
			m.set(func(m *model) {
				m.fails = redisError("WRONGTYPE Operation against a key holding the wrong kind of value")
			})
		}
		_, err := lk.Acquire(t.Context(), "a")
		if q := wantQuorumError(t, err, ErrNoQuorum); q.Nodes()[0].Outcome != OutcomeNotALock {
			t.Error(err)
		}
		pass(time.Second)
		if left := ms.left(); len(left) > 0 {
			t.Errorf("left on the nodes: %v", left)
		}
	})
}

// TestSplitVotesResolve: contenders that split the votes, on an even number of nodes or with one
// down, do not wait for their own keys to expire (C5).
func TestSplitVotesResolve(t *testing.T) {
	for _, tt := range []struct{ nodes, down, contenders int }{
		{2, 0, 2}, {4, 0, 2}, {3, 1, 2}, {5, 2, 2}, {5, 0, 8}, {4, 1, 4},
	} {
		t.Run(fmt.Sprintf("%d nodes, %d down, %d contenders", tt.nodes, tt.down, tt.contenders), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(tt.nodes)
				for i := range tt.down {
					ms[i].kill()
				}
				var wg sync.WaitGroup
				var holders, most atomic.Int32
				begin := time.Now()
				for c := range tt.contenders {
					// Each contender is near to other nodes: votes do split.
					lk := ms.over(t, nil, func(conn *modelConn) lane.Server {
						i := slices.Index(ms, conn.model)
						return &far{conn, time.Duration((i+c)%tt.nodes) * time.Millisecond / 4}
					})
					for range 10 {
						wg.Go(func() {
							l, err := lk.Acquire(t.Context(), "a")
							if err != nil {
								t.Error(err)
								return
							}
							most.Store(max(most.Load(), holders.Add(1)))
							time.Sleep(time.Millisecond)
							holders.Add(-1)
							if err := l.Release(t.Context()); err != nil {
								t.Error(err)
							}
						})
					}
				}
				wg.Wait()
				if most.Load() != 1 {
					t.Errorf("%d held it at once", most.Load())
				}
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("%d acquisitions took %v", 10*tt.contenders, took)
				}
				pass(time.Second)
				if left := ms.left(); len(left) > 0 {
					t.Errorf("left on the nodes: %v", left)
				}
			})
		})
	}
}

// far is a model at the end of a slower link than others have to it.
type far struct {
	*modelConn
	delay time.Duration
}

func (f *far) Exec(batch []*lane.Request) error {
	time.Sleep(f.delay)
	defer time.Sleep(f.delay)
	return f.modelConn.Exec(batch)
}

// TestCancelledInEveryPhase: whenever ctx ends, either there is a lock or nothing
// is left of it, and the error is the context's.
func TestCancelledInEveryPhase(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		for i, m := range ms {
			m.slow(time.Duration(i+1) * time.Millisecond)
		}
		lk := ms.locker(t, nil)
		won := 0
		for at := range 400 {
			for i, m := range ms {
				if i < at%4 {
					m.put("a", "rival", 20*time.Millisecond)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(at)*100*time.Microsecond)
			l, err := lk.Acquire(ctx, "a")
			if err == nil {
				won++
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("at %d: %v", at, err)
			}
			cancel()
			pass(50 * time.Millisecond)
			if left := ms.left(); len(left) > 0 {
				t.Fatalf("at %d: left on the nodes: %v", at, left)
			}
		}
		if won == 0 || won == 400 {
			t.Errorf("%d of 400 got the lock: the test does not test what it means to", won)
		}
	})
}

func TestCloseWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		for _, m := range ms {
			m.put("a", "rival", time.Minute)
		}
		lk := ms.locker(t, nil)
		errs := make(chan error)
		for range 10 {
			go func() {
				_, err := lk.Acquire(t.Context(), "a")
				errs <- err
			}()
		}
		pass(10 * time.Second)
		begin := time.Now()
		if err := lk.Close(); err != nil {
			t.Error(err)
		}
		for range 10 {
			if err := <-errs; !errors.Is(err, ErrClosed) || !errors.Is(err, ErrHeld) {
				t.Errorf("got %v, want that it was closed, and why it was waiting", err)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("took %v", took)
		}
	})
}

// TestCloseDuringAnAttempt: what is won while the Locker closes is given back.
func TestCloseDuringAnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		for _, m := range ms {
			m.slow(50 * time.Millisecond)
		}
		tried := make(chan error)
		go func() {
			_, err := lk.TryAcquire(t.Context(), "a")
			tried <- err
		}()
		pass(10 * time.Millisecond)
		if err := lk.Close(); err != nil {
			t.Error(err)
		}
		if err := <-tried; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		if left := ms.left(); len(left) > 0 {
			t.Errorf("left on the nodes: %v", left)
		}
	})
}
