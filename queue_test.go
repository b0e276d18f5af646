package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redistest/need"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

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
			t.Errorf("27 hand-overs took %v", took)
		}
		want := slices.Clone(order)
		slices.SortFunc(want, func(a, b int) int { return (a%100*2 + a/100) - (b%100*2 + b/100) })
		if !slices.Equal(order, want) {
			t.Errorf("they were served in the order %v", order)
		}
		pass(time.Second)
		if left := ms.left(); len(left) > 0 {
			t.Errorf("left on the nodes: %v", left)
		}
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

// TestOneVoice: however many callers of a process wait for a name, the nodes hear of
// one, and the callers get the lock in their order.
func TestOneVoice(t *testing.T) {
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
		if err != nil || len(s.Waiting) != 0 {
			t.Errorf("%v, %v", s.Waiting, err) // the models do not tell
		}
		for _, m := range ms {
			if n := len(*m.queue("a")); n != 1 {
				t.Errorf("%s has %d waiters", m.name, n)
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

// TestNobodyCalls: without any messages from the nodes there is a heartbeat, and with
// it the lock; the bound is what docs/design.md says.
func TestNobodyCalls(t *testing.T) {
	for _, ttl := range []time.Duration{300 * time.Millisecond, time.Second, 10 * time.Second, time.Hour} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(5)
				for _, m := range ms {
					m.mute = true
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

// TestDeadWaiter: a dead waiter holds up those behind it until its lease ends, and one that leaves not at all.
func TestDeadWaiter(t *testing.T) {
	for _, how := range []string{"dies", "leaves", "closes"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(5)
				l, _ := ms.locker(t, nil).TryAcquire(t.Context(), "a")
				first := ms.locker(t, nil)
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
					for _, m := range ms {
						m.set(func(m *model) {
							m.dead = wire.ProcessOf((*m.queue("a"))[0].Waiter)
							delete(m.ears, m.earOf(m.dead))
						})
					}
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

// TestSubscriptionsEnd: subscriptions exist while there is a waiter, and not for long after.
func TestSubscriptionsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		ears := func() (n int) {
			for _, m := range ms {
				m.set(func(m *model) { n += len(m.ears) })
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

// TestSubscriptionBreaks: what was said meanwhile is made up for.
func TestSubscriptionBreaks(t *testing.T) {
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
				m.deafen()
			}
			begin := time.Now()
			l.Release(t.Context())
			if took := (<-got).Sub(begin); took > 100*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		}
	})
}

// TestTicketOrder: 10,000 hand-overs between eight processes of three callers each, on
// nodes that are well and of which each is at another distance: the lock goes to the
// lowest ticket of all that have come, each time.
func TestTicketOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		for i, m := range ms {
			m.slow(time.Duration(i+1) * 100 * time.Microsecond)
		}
		const processes, callers = 8, 3
		handOvers := need.Sized(2_000, 10_000, 100_000)
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
								t.Errorf("hand-over %d: a client that came at %v had the lock before one that came at %v", served, begun, since)
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

// TestTicketByTheNodes: a waiter's place in the queue is by when it came, also if its clock is
// wrong and it came before it had heard from the nodes, or if all that it has heard took long on
// the way there.
func TestTicketByTheNodes(t *testing.T) {
	for name, tt := range map[string]struct {
		ahead time.Duration
		leg   time.Duration // how long a message is on its way to the nodes at first; 0: for ever
	}{
		"a clock that is ahead":  {ahead: time.Hour},
		"a clock that is behind": {ahead: -time.Hour},
		"slow requests":          {leg: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			threeNodes(t, func(f *fenced) {
				holder := f.locker(nil)
				if _, err := holder.TryAcquire(f.Context(), "a", AutoRenew()); err != nil {
					f.Fatal(err)
				}
				clock := &settable{began: time.Now()}
				clock.ahead.Store(int64(tt.ahead))
				for i := range f.Len() {
					if tt.leg == 0 {
						f.Hang(i)
						time.AfterFunc(3*time.Second, func() { f.Resume(i) })
						continue
					}
					legs := 0
					f.Path(i).SetLatency(func() time.Duration {
						legs++
						return tt.leg * time.Duration(legs%2)
					})
				}
				lk := f.locker(&Options{Clock: clock, NodeTimeout: 50 * time.Millisecond})
				if tt.leg > 0 {
					pass(10 * time.Second)
					for i := range f.Len() {
						f.Path(i).SetLatency(nil)
					}
				}
				const wait = 8 * time.Second
				go lk.Acquire(f.Context(), "a")
				pass(wait)
				state, err := holder.Inspect(f.Context(), "a")
				if err != nil || len(state.Waiting) != 1 {
					f.Fatalf("%v, %+v: want one waiter", err, state.Waiting)
				}
				if w := state.Waiting[0]; (w.For-wait).Abs() > 10*time.Millisecond || w.Nodes != 3 {
					f.Errorf("it waits for %v on %d nodes, want %v on 3", w.For, w.Nodes, wait)
				}
			})
		})
	}
}

// TestForeignHolder: a client of another library calls no waiter when it releases; waiters for its
// lock retry more often than at their heartbeats.
func TestForeignHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, nil)
		for i := range 10 {
			for _, m := range ms {
				m.put("a", "MTIzNDU2Nzg5MDEyMzQ1Ng==", time.Hour)
			}
			var freed time.Time
			time.AfterFunc(time.Duration(i)*700*time.Millisecond, func() {
				freed = time.Now()
				for _, m := range ms {
					m.set(func(m *model) { delete(m.keys, "a") })
				}
			})
			l, err := lk.Acquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(freed); took > waitlist.MaxPause {
				t.Errorf("the lock was free for %v", took)
			}
			l.Release(t.Context())
		}
	})
}
