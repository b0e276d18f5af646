package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
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
	long := need.Sized(2*time.Minute, 10*time.Minute, 10*time.Minute)
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
		}, ErrHeld, long},
		{"down", func(ms models) { ms[0].kill(); ms[1].kill(); ms[2].kill() }, ErrNoQuorum, long},
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
				q := wantQuorumError(t, err, tt.want)
				if tt.want == ErrNoQuorum && (len(q.Nodes()) != 3 || q.Nodes()[2].Node != "node2") {
					t.Errorf("%v does not name the three nodes", err)
				}
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errBusy) {
					t.Errorf("%v hides the context's error or its cause", err)
				}
			})
		})
	}
}

// TestErrorOfACutRoundSaysWhatWasKnownBefore: ctx may end in the middle of a round; what was known before
// it began is still why there was no lock (E2).
func TestErrorOfACutRoundSaysWhatWasKnownBefore(t *testing.T) {
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

// TestGrantsAfterTheRoundAreNoHolder: grants that come between the end of waiting and the
// error are no reason to say that another has the lock.
func TestGrantsAfterTheRoundAreNoHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		for _, m := range ms {
			m.slow(10 * time.Millisecond)
		}
		a, err := lk.settings().acquisition("a", nil)
		if err != nil {
			t.Fatal(err)
		}
		l := lk.newLock(a, 0, lk.newToken(a, ""))
		r := lk.newRound(wire.Acquire, l, nil)
		r.start(time.Now(), time.Now().Add(time.Second))
		r.wait(t.Context(), time.Millisecond)
		pass(time.Second)
		wantQuorumError(t, r.explain(time.Now(), nil), ErrNoQuorum)
		r.drop()
		l.releaseAsync()
	})
}

// TestAcquireOnceNodesAreBack: Acquire waits while too few nodes can be reached, and gets the lock when they are
// back.
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

// TestKeyThatIsNoLockEndsTheWait: Acquire returns at once if so many nodes have a key of another type that no quorum
// is left. Such a key does not expire.
func TestKeyThatIsNoLockEndsTheWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		for _, m := range ms[:2] {
			m.Put("a")
		}
		_, err := lk.Acquire(t.Context(), "a")
		if q := wantQuorumError(t, err, ErrNoQuorum); q.Nodes()[0].Outcome != OutcomeNotALock {
			t.Error(err)
		}
		ms[0].Take("a")
		ms[1].Take("a")
		pass(time.Second)
		ms.empty(t)
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
					lk := ms.over(t, nil, func(conn *modelConn) {
						i := slices.Index(ms, conn.model)
						conn.host.Far(conn.model.Name, time.Duration((i+c)%tt.nodes)*time.Millisecond/4)
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
				ms.empty(t)
			})
		})
	}
}

// TestContextThatEndsWithTheAnswerIsInTheError: a context that ends in the very moment in which an attempt is decided is in the error all the
// same.
func TestContextThatEndsWithTheAnswerIsInTheError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		defer acquired(t, ms.locker(t, nil), "a", AutoRenew()).Release(t.Context())
		for _, m := range ms {
			m.slow(time.Millisecond)
		}
		for range 2000 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond) // there and back
			_, err := lk.Acquire(ctx, "a")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
	})
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

// TestCloseWhileWaiting: Close ends all waits at once, with ErrClosed, and they leave nothing on the nodes.
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
		ms.empty(t)
	})
}

// TestCloseBeforeALateGrant: a node that hangs grants what a waiter has asked for when the waiter has given up
// and the Locker is being closed. The grant is given back all the same, and so is the place in the queue.
func TestCloseBeforeALateGrant(t *testing.T) {
	for _, delay := range []time.Duration{0, 5 * time.Millisecond} { // over one connection, and over several
		bubble(t, func(t *testing.T) {
			ms := newModels(3)
			for i, m := range ms {
				m.slow(delay)
				if i < 2 {
					m.put("a", "rival", time.Minute)
				}
			}
			lk := ms.locker(t, nil)
			pass(time.Second)
			ms[2].hang()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := lk.Acquire(ctx, "a"); !errors.Is(err, ErrHeld) {
				t.Fatal(err)
			}
			granted := false
			ms[2].spy = func(c *arena.Call) { granted = granted || c.Op == wire.Acquire || c.Op == wire.Plain }
			time.AfterFunc(100*time.Millisecond, ms[2].resume)
			if err := lk.Close(); err != nil {
				t.Error(err)
			}
			if !granted {
				t.Error("the node was not asked: the test does not test what it means to")
			}
			ms[2:].empty(t)
		})
	}
}

// TestFirstComeFirstServed: waiters in the queues of a majority get the lock in the order in which
// they came, and no later client gets it before them.
func TestFirstComeFirstServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		for _, m := range ms {
			m.slow(time.Millisecond)
		}
		holder, err := ms.locker(t, nil).TryAcquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan int, 20)
		for i := range 20 {
			lk := ms.locker(t, nil)
			if i%3 == 0 { // some processes have several callers
				go waitInLine(t, lk, served, i)
				pass(time.Millisecond)
				i += 100
			}
			go waitInLine(t, lk, served, i)
			pass(7 * time.Millisecond)
		}
		newcomer := ms.locker(t, nil)
		pass(time.Second)
		begin := time.Now()
		holder.Release(t.Context())
		var order []int
		for range 27 {
			order = append(order, <-served)
			if _, err := newcomer.TryAcquire(t.Context(), "a"); !errors.Is(err, ErrHeld) && len(order) < 27 {
				t.Errorf("a client that has just come: %v", err)
			}
		}
		if took := time.Since(begin); took > 27*20*time.Millisecond {
			t.Errorf("27 turns took %v", took)
		}
		want := slices.Clone(order)
		slices.SortFunc(want, func(a, b int) int { return (a%100*2 + a/100) - (b%100*2 + b/100) })
		if !slices.Equal(order, want) {
			t.Errorf("they were served in the order %v", order)
		}
		pass(time.Second)
		ms.empty(t)
	})
}

func waitInLine(t *testing.T, lk *Locker, served chan<- int, i int) {
	l, err := lk.Acquire(context.Background(), "a")
	if err != nil {
		t.Error(err)
		served <- -1
		return
	}
	served <- i
	time.Sleep(5 * time.Millisecond)
	if err := l.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestCallersOfAProcessAreOneWaiter: however many callers of a process wait for a name, the nodes hear of
// one, and the callers get the lock in their order.
func TestCallersOfAProcessAreOneWaiter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		l, _ := ms.locker(t, nil).TryAcquire(t.Context(), "a")
		lk := ms.locker(t, nil)
		served := make(chan int, 50)
		for i := range 50 {
			go waitInLine(t, lk, served, i)
			pass(time.Microsecond)
		}
		pass(time.Second)
		s, err := lk.Inspect(t.Context(), "a")
		if err != nil || len(s.Waiting) != 1 {
			t.Errorf("%v, %v", s.Waiting, err)
		}
		for _, m := range ms {
			n := 0
			for range m.Waiters() {
				n++
			}
			if n != 1 {
				t.Errorf("%s has %d waiters", m.Name, n)
			}
		}
		l.Release(t.Context())
		for i := range 50 {
			if got := <-served; got != i {
				t.Errorf("the caller %d was served as number %d", got, i)
			}
		}
		pass(time.Second)
	})
}

// TestHeartbeatReplacesLostMessages: without any messages from the nodes there is a heartbeat, and with
// it the lock; the bound is what docs/design.md says.
func TestHeartbeatReplacesLostMessages(t *testing.T) {
	for _, ttl := range []time.Duration{300 * time.Millisecond, time.Second, 10 * time.Second, time.Hour} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			if ttl == time.Hour {
				need.Full(t)
			}
			bubble(t, func(t *testing.T) {
				ms := newModels(5)
				for _, m := range ms {
					m.Mute(true)
				}
				a, b := ms.locker(t, &Options{TTL: ttl}), ms.locker(t, &Options{TTL: ttl})
				for i := range 10 {
					l, err := a.Acquire(t.Context(), "a", AutoRenew())
					if err != nil {
						t.Fatal(err)
					}
					var freed time.Time
					time.AfterFunc(time.Duration(i)*ttl/7, func() {
						freed = time.Now()
						l.Release(context.Background())
					})
					next, err := b.Acquire(t.Context(), "a")
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(freed); took > waitlist.Heartbeat(ttl)+time.Millisecond {
						t.Errorf("the lock was free for %v before a waiter noticed", took)
					}
					next.Release(t.Context())
				}
			})
		})
	}
}

// TestDeadWaiterHoldsUpOthersForItsLease: a dead waiter holds up those behind it until its lease ends, and one that leaves not at all.
func TestDeadWaiterHoldsUpOthersForItsLease(t *testing.T) {
	for _, how := range []string{"dies", "leaves", "closes"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(5)
				l, _ := ms.locker(t, nil).TryAcquire(t.Context(), "a")
				var process *arena.Host
				first := ms.over(t, nil, func(c *modelConn) { process = c.host })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go first.Acquire(ctx, "a")
				pass(10 * time.Millisecond)
				second := ms.locker(t, nil)
				got := make(chan time.Time)
				go func() {
					l, err := second.Acquire(t.Context(), "a")
					if err != nil {
						t.Error(err)
					}
					got <- time.Now()
					l.Release(t.Context())
				}()
				pass(500 * time.Millisecond)
				limit := time.Millisecond
				switch how {
				case "dies": // it is heard of no more
					limit = 3 * waitlist.Heartbeat(10*time.Second)
					process.Crash()
				case "leaves":
					cancel()
				case "closes":
					first.Close()
				}
				pass(time.Millisecond)
				begin := time.Now()
				l.Release(t.Context())
				if took := (<-got).Sub(begin); took > limit {
					t.Errorf("the second one waited for %v", took)
				} else if how == "dies" && took < time.Second {
					t.Errorf("the second one waited for %v: the first was not in the way", took)
				}
				pass(time.Second)
				if left := ms.left(); how != "dies" && len(left) > 0 {
					t.Errorf("left on the nodes: %v", left)
				}
			})
		})
	}
}

// TestWaiterWithoutAQuorumGivesUpItsPlaces: a waiter that is cut off from a quorum keeps no place at the nodes that it
// reaches: other clients need them for their quorum.
func TestWaiterWithoutAQuorumGivesUpItsPlaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		ms[4].kill()
		l := acquired(t, ms.locker(t, nil), "a", AutoRenew())
		var process *arena.Host
		cut := ms.over(t, nil, func(c *modelConn) { process = c.host })
		for _, m := range ms[2:4] {
			process.Far(m.Name, time.Hour)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go cut.Acquire(ctx, "a")
		pass(5 * time.Second)
		if did := ms[0].seen; !slices.Contains(did[2:], "acquire a") {
			t.Fatalf("the waiter has not asked: %q", did)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		for range 20 { // it may be in the middle of an attempt
			if pass(100 * time.Millisecond); len(ms.left()) == 0 {
				break
			}
		}
		ms.empty(t)
	})
}

// TestSubscriptionsEnd: subscriptions exist while there is a waiter, and not for long after.
func TestSubscriptionsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		ears := func() (n int) {
			for _, m := range ms {
				n += m.Subscriptions()
			}
			return n
		}
		l, err := lk.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if n := ears(); n > 0 {
			t.Errorf("%d subscriptions for a lock that was free", n)
		}
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			for n := range 100 {
				go lk.Acquire(ctx, fmt.Sprint("b", n))
				go lk.Acquire(ctx, "a")
			}
			for n := range 100 {
				go ms.locker(t, nil).Acquire(ctx, fmt.Sprint("b", n))
			}
			pass(500 * time.Millisecond)
			if n := ears(); n < 3 {
				t.Errorf("%d subscriptions, want one for each node", n)
			}
			pass(time.Second)
			cancel()
			pass(waitlist.Linger / time.Duration(i+1))
		}
		pass(waitlist.Linger)
		if n := ears(); n > 0 {
			t.Errorf("%d subscriptions are left", n)
		}
		l.Release(t.Context())
	})
}

// TestBrokenSubscriptionIsMadeAgain: a waiter whose subscriptions broke subscribes again, and makes an attempt for
// the messages that it may have missed.
func TestBrokenSubscriptionIsMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		holder, waiter := ms.locker(t, nil), ms.locker(t, nil)
		for range 20 {
			l, err := holder.Acquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan time.Time)
			go func() {
				l, err := waiter.Acquire(t.Context(), "a")
				if err != nil {
					t.Error(err)
				}
				got <- time.Now()
				l.Release(t.Context())
			}()
			pass(100 * time.Millisecond)
			for _, m := range ms {
				m.DropSubscriptions()
			}
			begin := time.Now()
			l.Release(t.Context())
			if took := (<-got).Sub(begin); took > 100*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		}
	})
}

// TestTicketOrder: thousands of turns between eight processes of three callers each, on
// nodes that are well and of which each is at another distance: the lock goes to the
// lowest ticket of all that have come, each time.
func TestTicketOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		for i, m := range ms {
			m.slow(time.Duration(i+1) * 100 * time.Microsecond)
		}
		const processes, callers = 8, 3
		handOvers := need.Sized(300, 3_000, 100_000)
		const there = 3 * time.Millisecond // after which a call is in the queue everywhere
		var mu sync.Mutex
		waiting := make(map[*int]time.Time) // since when
		served := 0
		var calls sync.WaitGroup
		for p := range processes {
			lk := ms.locker(t, nil)
			for c := range callers {
				calls.Go(func() {
					pass := rand.New(rand.NewPCG(uint64(p), uint64(c)))
					for {
						time.Sleep(time.Duration(pass.Int64N(int64(8 * time.Millisecond))))
						me := new(int)
						mu.Lock()
						begun := time.Now()
						waiting[me] = begun
						mu.Unlock()
						l, err := lk.Acquire(t.Context(), "a")
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						delete(waiting, me)
						for _, since := range waiting {
							if since.Add(there).Before(begun) {
								t.Errorf("turn %d: a client that came at %v had the lock before one that came at %v", served, begun, since)
							}
						}
						served++
						done := served >= handOvers
						mu.Unlock()
						time.Sleep(5 * time.Millisecond)
						l.Release(t.Context())
						if done {
							return
						}
					}
				})
			}
		}
		calls.Wait()
	})
}

// foreignTokens are such as other libraries make.
var foreignTokens = []string{
	"5f0c7a1e9b3d4826a1c4e7d2f8b60913",     // node-redlock, redis-py: 32 hexadecimal digits
	"5a2d8278-fa6d-492c-b716-bcafdf885c49", // redlock-rb, RedLock.net: a UUID
	"q83vEjRWeJASNFZ4kKvN7xI0Vng=",         // redsync: 20 bytes in base64
	"",
}

// TestWaitersOfAForeignLockRetryOften: a client of another library calls no waiter when it releases; waiters for its
// lock retry more often than at their heartbeats. Its locks may live for an hour, whatever our MaxTTL is.
func TestWaitersOfAForeignLockRetryOften(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, &Options{Hooks: &Hooks{Warning: func(err error) { t.Error(err) }}})
		for i := range 3 * len(foreignTokens) {
			for _, m := range ms {
				m.put("a", foreignTokens[i%len(foreignTokens)], time.Hour)
			}
			var freed time.Time
			time.AfterFunc(time.Duration(i)*700*time.Millisecond, func() {
				freed = time.Now()
				for _, m := range ms {
					m.Delete("a")
				}
			})
			l, err := lk.Acquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(freed); took > waitlist.MaxPause {
				t.Errorf("%q: the lock was free for %v", foreignTokens[i%len(foreignTokens)], took)
			}
			l.Release(t.Context())
		}
	})
}

// TestPlaceOfACallAfterASuspension: a call that waits behind another one of its process keeps its rank at the nodes when the
// host is suspended meanwhile. From then on the nodes' clocks do not tell any more when the call came.
func TestPlaceOfACallAfterASuspension(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, holder, _ := aFleet(t, 3, Options{TTL: 10 * time.Second})
		sleeper, host := f.open(Options{TTL: 10 * time.Second})
		late, _ := f.open(Options{TTL: 10 * time.Second})
		held := acquired(t, holder, "a", AutoRenew())
		got := make(chan string, 3)
		wait := func(lk *Locker, who string) {
			go func() {
				l, err := lk.Acquire(t.Context(), "a")
				if err == nil {
					got <- who
					time.Sleep(50 * time.Millisecond)
					err = l.Release(t.Context())
				}
				if err != nil {
					t.Errorf("%s: %v", who, err)
				}
			}()
			pass(50 * time.Millisecond)
		}
		wait(sleeper, "the first call")
		wait(sleeper, "the second call")
		host.Suspend(time.Second)
		pass(1500 * time.Millisecond)
		wait(late, "the late process")
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"the first call", "the second call", "the late process"} {
			if who := <-got; who != want {
				t.Errorf("%s got the lock, want %s", who, want)
			}
		}
		pass(time.Second)
	})
}
