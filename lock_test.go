package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
)

// wantQuorumError checks that err is the one sentinel and no other, and adds up.
func wantQuorumError(t *testing.T, err, want error) *QuorumError {
	t.Helper()
	var q *QuorumError
	if !errors.As(err, &q) {
		t.Fatalf("got %v, want a QuorumError", err)
	}
	for _, sentinel := range []error{ErrHeld, ErrNoQuorum, ErrLost} {
		if got := errors.Is(err, sentinel); got != (sentinel == want) {
			t.Errorf("errors.Is(%v, %v) is %v", err, sentinel, got)
		}
	}
	return q
}

func acquired(t *testing.T, lk *Locker, name string, options ...AcquireOption) *Lock {
	t.Helper()
	l, err := lk.TryAcquire(t.Context(), name, options...)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return l
}

// wantEnd waits for the end of a lock's context and checks when and why it came.
func wantEnd(t *testing.T, ctx context.Context, at time.Time, cause error) {
	t.Helper()
	<-ctx.Done()
	if now := time.Now(); !now.Equal(at) {
		t.Errorf("told %v after the end of validity", now.Sub(at))
	}
	if got := context.Cause(ctx); !errors.Is(got, cause) || !errors.Is(got, ErrLost) {
		t.Errorf("the cause is %v, want %v", got, cause)
	}
}

func TestLockOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, &Options{Prefix: "app:"})
		sent := time.Now()
		for _, m := range ms {
			m.slow(20 * time.Millisecond)
		}
		l := acquired(t, lk, "a")
		if l.Name() != "a" || l.Token() == "" {
			t.Errorf("name %q, token %q", l.Name(), l.Token())
		}
		if want := sent.Add(10*time.Second - 102*time.Millisecond); !l.Until().Equal(want) {
			t.Errorf("valid until %v after the first byte was sent, want %v", l.Until().Sub(sent), want.Sub(sent))
		}
		if n := ms.held("app:a", l.Token()); n != 5 {
			t.Errorf("held on %d nodes", n)
		}
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("held", "lock", l)
		if !strings.Contains(log.String(), "lock.name=a lock.fence=946684800000000 lock.left_ms=9900") {
			t.Errorf("logged as %s", log.String())
		}
		ctx := l.Context(t.Context())
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if cause := context.Cause(ctx); cause == nil || errors.Is(cause, ErrLost) {
			t.Errorf("released: the cause is %v", cause)
		}
		if err := l.Extend(t.Context()); err == nil {
			t.Error("extended after release")
		}
	})
}

// TestTokensAreFresh: each attempt of one wait has a token of its own (B1).
func TestTokensAreFresh(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		tokens := make(map[string]bool)
		ms[2].spy = func(q *lane.Request) { tokens[q.Claim.Token] = true }
		lk := ms.locker(t, nil)
		ms[0].put("a", "rival", time.Second)
		ms[1].put("a", "rival", time.Second)
		l, err := lk.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		acquires := 0
		for _, did := range ms[2].seen {
			if did == "acquire a" {
				acquires++
			}
		}
		if acquires < 3 || len(tokens) != acquires {
			t.Errorf("%d acquires with %d tokens", acquires, len(tokens))
		}
		l.Release(t.Context())
	})
}

// TestTold: the end of validity is told at its time and with its cause, though
// nothing comes from the network (D1).
func TestTold(t *testing.T) {
	t.Run("not renewed", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			wantEnd(t, l.Context(t.Context()), l.Until(), errExpired)
			synctest.Wait()
			ms.empty(t)
			if err := l.Release(t.Context()); !errors.Is(err, ErrLost) {
				t.Errorf("Release after the end: %v", err)
			}
		})
	})
	t.Run("renewed, and then all nodes hang", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			var lost []error
			var mu sync.Mutex
			lk := ms.locker(t, &Options{Hooks: &Hooks{Lost: func(_ *Lock, cause error) {
				mu.Lock()
				defer mu.Unlock()
				lost = append(lost, cause)
			}}})
			l := acquired(t, lk, "a", AutoRenew())
			ctx := l.Context(t.Context())
			pass(time.Minute)
			if err := ctx.Err(); err != nil {
				t.Fatal("lost while all was well:", context.Cause(ctx))
			}
			for _, m := range ms {
				m.hang()
			}
			wantEnd(t, ctx, l.Until(), errExpired)
			synctest.Wait()
			mu.Lock()
			if len(lost) != 1 || !errors.Is(lost[0], ErrLost) {
				t.Errorf("hooks told %v", lost)
			}
			mu.Unlock()
			for _, m := range ms {
				m.resume()
			}
			pass(3 * time.Second)
			ms.empty(t)
		})
	})
	t.Run("another has it on a majority", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a", AutoRenew())
			ctx := l.Context(t.Context())
			for _, m := range ms[:3] {
				m.put("a", "rival", time.Hour)
			}
			begin := time.Now()
			<-ctx.Done()
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("told after %v; the next renewal was due by a third of the TTL", took)
			}
			q := wantQuorumError(t, context.Cause(ctx), ErrLost)
			if n := q.Nodes(); len(n) == 0 || n[0].Outcome != OutcomeStolen || n[0].Holder != "rival" {
				t.Errorf("%v does not name the holder", q)
			}
			synctest.Wait()
			if n := ms.held("a", "rival"); n != 3 {
				t.Errorf("the rival is left with %d nodes of 3", n)
			}
		})
	})
	t.Run("a parent that ends first leaves nothing behind", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			l := acquired(t, newModels(3).locker(t, nil), "a")
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				l.Context(ctx)
				cancel()
			}
			synctest.Wait()
			if n := len(l.watchers); n > 0 {
				t.Errorf("%d watchers left", n)
			}
		})
	})
}

// TestWonWhileCtxEnded: a lock that was won after its call has ended is released.
func TestWonWhileCtxEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, &Options{Quorum: 3})
		for i := range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			ms[2].set(func(m *model) { m.spy = func(*lane.Request) { cancel() } })
			l, err := lk.TryAcquire(ctx, fmt.Sprint(i))
			if l != nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), fmt.Sprintf("acquire %q", fmt.Sprint(i))) {
				t.Fatalf("lock %v, %v", l, err)
			}
			synctest.Wait()
			if left := ms.left(); len(left) > 0 {
				t.Fatalf("left on the nodes: %v", left)
			}
		}
	})
}

// pausing is a clock that can be set forward: a process that was not running.
type pausing struct{ skipped atomic.Int64 }

func (p *pausing) Now() time.Time { return time.Now().Add(time.Duration(p.skipped.Load())) }

// TestSecondLookAtTheClock: a lock that took its whole life to acquire is not
// handed out (B5).
func TestSecondLookAtTheClock(t *testing.T) {
	for _, tt := range []struct {
		pause time.Duration
		want  error
	}{{9895 * time.Millisecond, nil}, {9896 * time.Millisecond, ErrNoQuorum}, {time.Minute, ErrNoQuorum}} {
		t.Run(tt.pause.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(3)
				clock := new(pausing)
				ms[2].slow(time.Millisecond)
				ms[2].spy = func(*lane.Request) { clock.skipped.Store(int64(tt.pause)) }
				lk := ms.locker(t, &Options{Clock: clock, Quorum: 3})
				l, err := lk.TryAcquire(t.Context(), "a")
				if tt.want == nil {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				if q := wantQuorumError(t, err, tt.want); l != nil || q.Granted < 3 {
					t.Errorf("%v, lock %v", err, l)
				}
				pass(time.Second)
				ms.empty(t)
			})
		})
	}
}

// TestPrintsNoSecret: a Lock, a Locker and Options print what helps, and with no verb a token or a
// password.
func TestPrintsNoSecret(t *testing.T) {
	verbs := []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"}
	bubble(t, func(t *testing.T) {
		lk := newModels(3).locker(t, nil)
		l := acquired(t, lk, "jobs")
		var logged strings.Builder
		slog.New(slog.NewTextHandler(&logged, nil)).Info("have", "lock", l)
		texts := []string{logged.String()}
		for _, verb := range verbs {
			texts = append(texts, fmt.Sprintf(verb, l))
			if got := fmt.Sprintf(verb, lk); got != "redlock.Locker(2 of 3 nodes: node0, node1, node2; TTL 10s)" {
				t.Errorf("%s prints a Locker as %s", verb, got)
			}
		}
		for _, text := range texts {
			if strings.Contains(text, l.Token()) || !strings.Contains(text, "jobs") {
				t.Errorf("printed as %s", text)
			}
		}
		if got, want := l.String(), `"jobs" (fence 946684800000000, valid for 9.9s)`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	opts := Options{TTL: time.Minute, Prefix: "app:", Hooks: new(Hooks), Quorum: 3}
	if got, want := fmt.Sprint(&opts), `redlock.Options{TTL: 1m0s, Prefix: "app:", Hooks: set, Quorum: 3}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fmt.Sprint((*Lock)(nil), (*Locker)(nil), (*Options)(nil)); got != "<nil> <nil> <nil>" {
		t.Errorf("nothing prints as %s", got)
	}
	lk, err := Connect([]string{"redis://user:secret@127.0.0.1:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lk.Close()
	for _, verb := range verbs {
		if got := fmt.Sprintf(verb, lk); strings.Contains(got, "secret") || strings.Contains(got, "user") || !strings.Contains(got, "127.0.0.1:1") {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}

// TestNothingIsFilledUpAfterRelease: the release that comes while an extension is
// under way is the last word at every node.
func TestNothingIsFilledUpAfterRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		l := acquired(t, ms.locker(t, nil), "a")
		for _, m := range ms {
			m.slow(10 * time.Millisecond)
		}
		ms[0].forget()
		extended := make(chan error)
		go func() { extended <- l.Extend(t.Context()) }()
		pass(5 * time.Millisecond)
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-extended; err == nil {
			t.Error("extended after it was released")
		}
		pass(time.Second)
		ms.empty(t)
	})
}

func TestRelease(t *testing.T) {
	t.Run("of a lock that is gone from the nodes", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			for _, m := range ms {
				m.forget()
			}
			wantQuorumError(t, l.Release(t.Context()), ErrLost)
		})
	})
	t.Run("with two nodes that never had it, and one that forgot", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			ms[0].put("a", "rival", time.Minute)
			ms[1].put("a", "rival", time.Minute)
			l := acquired(t, ms.locker(t, nil), "a")
			ms[2].forget()
			ms[3].slow(time.Millisecond)
			ms[4].slow(time.Millisecond)
			wantQuorumError(t, l.Release(t.Context()), ErrLost)
			if n := ms.held("a", "rival"); n != 2 {
				t.Errorf("the rival has %d nodes of 2", n)
			}
		})
	})
	t.Run("waits for a quorum that could grant it again", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			ms[0].kill()
			ms[1].kill()
			lk := ms.locker(t, nil)
			synctest.Wait()
			l := acquired(t, lk, "a")
			ms[4].slow(20 * time.Millisecond)
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if left := ms.left(); len(left) > 0 {
				t.Errorf("released, and left on the nodes: %v", left)
			}
		})
	})
	t.Run("waits for nodes that have a vote", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			f := newFleet(t, 4)
			lk := f.client(&Options{}, 0)
			l := acquired(t, lk, "a")
			f.nodes[3].Step(-time.Hour)
			_ = l.Extend(t.Context()) // the node's answer tells its time
			f.nodes[0].Delay(20*time.Millisecond, 0)
			begin := time.Now()
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took < 10*time.Millisecond {
				t.Errorf("it returned after %v, when the first node still had the lock: the others are no quorum", took)
			}
			begin = time.Now()
			l = acquired(t, lk, "b")
			f.nodes[0].Hang(true)
			if err := l.Release(t.Context()); err != nil {
				t.Errorf("three nodes of four have deleted it: %v", err)
			}
			if took := time.Since(begin); took > lk.settings().NodeTimeout+50*time.Millisecond {
				t.Errorf("a node that hangs held a release for %v", took)
			}
			f.nodes[0].Hang(false)
		})
	})
	t.Run("of a lock that expired unnoticed", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			pass(time.Until(l.Until())) // the keys live for the drift longer
			if err := l.Release(t.Context()); !errors.Is(err, errExpired) {
				t.Errorf("got %v, want that it had expired", err)
			}
			synctest.Wait()
			ms.empty(t)
		})
	})
	t.Run("after a node refused to extend", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			ms[0].set(func(m *model) { m.fails = errLoading })
			if err := l.Extend(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			ms[0].set(func(m *model) { m.fails = nil })
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			ms.empty(t)
		})
	})
	t.Run("is idempotent and safe to call at once", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			for _, m := range ms {
				m.slow(10 * time.Millisecond)
			}
			errs := make(chan error)
			for range 10 {
				go func() { errs <- l.Release(t.Context()) }()
			}
			for range 10 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			for _, m := range ms {
				if n := len(m.seen); n != 2 {
					t.Errorf("%s saw %q", m.name, m.seen)
				}
			}
		})
	})
	t.Run("ignores that ctx has ended", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			l := acquired(t, ms.locker(t, nil), "a")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := l.Release(ctx); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			ms.empty(t)
		})
	})
	t.Run("says so when too few nodes answer", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			var told atomic.Int32
			lk := ms.locker(t, &Options{Hooks: &Hooks{Unreleased: func(*Lock, error) { told.Add(1) }}})
			l := acquired(t, lk, "a")
			for _, m := range ms[1:4] {
				m.hang()
			}
			begin := time.Now()
			err := l.Release(t.Context())
			if q := wantQuorumError(t, err, ErrNoQuorum); len(q.Nodes()) != 3 || q.Nodes()[0].Node != "node1" {
				t.Errorf("%v does not name the three", err)
			}
			took := time.Since(begin)
			if synctest.Wait(); took != lk.settings().NodeTimeout || told.Load() != 1 {
				t.Errorf("took %v, hook called %d times", took, told.Load())
			}
			if again := l.Release(t.Context()); again != err {
				t.Errorf("released again: %v", again)
			}
		})
	})
}

// TestReleaseAsksAllNodes: two nodes have lost the lock to another client, and are down since. That a
// quorum confirms a release is out of the question then, but the third node has the lock.
func TestReleaseAsksAllNodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		l := acquired(t, lk, "a")
		for i := range 2 {
			pass(100 * time.Millisecond)
			ms[i].put("a", "another", time.Hour)
			_ = l.Extend(t.Context())
			ms[i].kill()
			_, _ = lk.TryAcquire(t.Context(), fmt.Sprint("notice", i))
			pass(100 * time.Millisecond)
		}
		_ = l.Release(t.Context())
		pass(time.Second)
		if token := ms[2].holder("a"); token != "" {
			t.Errorf("the node still has %s", token)
		}
	})
}
