package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// TestFirstComeFirstServed: who is in the queue of a majority gets the lock in the
// order in which he came, and nobody who comes later gets it before him.
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
				t.Errorf("somebody who has just come: %v", err)
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
					if took := time.Since(freed); took > beat(ttl)+time.Millisecond {
						t.Errorf("the lock was free for %v before anybody noticed", took)
					}
					next.Release(t.Context())
				}
			})
		})
	}
}

// TestDeadWaiter: a waiter who has died holds those behind him up until his lease ends,
// and one who leaves not at all.
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
					limit = 3 * beat(10*time.Second)
					first.hall.mu.Lock()
					clear(first.hall.voices)
					first.hall.mu.Unlock()
					for _, m := range ms {
						m.set(func(m *model) {
							m.dead = first.hall.process
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

// TestSubscriptionsEnd: they are there while somebody waits, and not for long after.
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
			pass(linger / time.Duration(i+1))
		}
		pass(linger)
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
			if took := (<-got).Sub(begin); took > 2*minPauseHear {
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
		const handOvers, processes, callers = 10_000, 8, 3
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
								t.Errorf("hand-over %d: somebody who came at %v had the lock before somebody who came at %v", served, begun, since)
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

// TestForeignHolder: a client that is no redlock calls nobody when it has done; those
// who wait for it look more often than at their heartbeats.
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
			if took := time.Since(freed); took > maxPause {
				t.Errorf("the lock was free for %v", took)
			}
			l.Release(t.Context())
		}
	})
}

// TestEarlierAttempt: what comes of an earlier attempt, late, is nothing to go by for whom
// a node hands the lock: neither that it had refused, which says that it had a vote, nor
// that it hands over, for the token is another; and he leaves with no more than that
// attempt's.
func TestEarlierAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		a, err := lk.opts.acquisition("a", nil)
		if err != nil {
			t.Fatal(err)
		}
		w, now := lk.hall.enter(a), time.Now()
		defer lk.hall.leave(w)
		hand := func(try int64) {
			w.take(lk.lanes.Lanes[0], handing{w.name, try, fmt.Sprint("nonce", try), 17, now.UnixMicro(), ms[0].mark}, now)
		}
		first, second := w.begin(now, "nonce1"), w.begin(now, "nonce2")
		if first != 1 || second != 2 {
			t.Fatal(first, second)
		}
		w.told(0, first, wire.Held)
		hand(first)
		if _, _, mine := w.chance(); mine != 0 || w.nodes[0].refused || w.nodes[0].handed > 0 {
			t.Errorf("%d nodes are its own: %+v", mine, w.nodes[0])
		}
		hand(second)
		if _, _, mine := w.chance(); mine != 0 {
			t.Error("it counts before the node has refused")
		}
		w.told(0, second, wire.Held)
		if _, _, mine := w.chance(); mine != 1 {
			t.Errorf("%d nodes are its own", mine)
		}
		for i := range ms {
			w.told(i, second, wire.Held)
			w.take(lk.lanes.Lanes[i], handing{w.name, second, "nonce2", 17, now.UnixMicro(), ms[i].mark}, now)
		}
		w.quit(false)
		if l := w.accept(t.Context(), "late"); l != nil {
			t.Error("it counts after the nodes were asked to take it back")
		}
	})
}

// TestOnlyTheNodesWord: a message hands the lock over if it has the nonce of the last attempt,
// and comes over a subscription that stood when that was sent. Who hears what is said to others,
// or has heard it before, and says it again, is not believed; nor is who guesses.
func TestOnlyTheNodesWord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		a, err := lk.opts.acquisition("a", nil)
		if err != nil {
			t.Fatal(err)
		}
		w := lk.hall.enter(a)
		defer lk.hall.leave(w)
		pass(time.Second)
		before := time.Now()
		pass(time.Second)
		sent := time.Now()
		w.begin(sent, "first")
		w.begin(sent, "second")
		for i := range ms {
			w.told(i, 2, wire.Held)
		}
		hand := func(try int64, nonce string, began time.Time) {
			w.take(lk.lanes.Lanes[0], handing{w.name, try, nonce, 17, time.Now().UnixMicro(), ms[0].mark}, began)
		}
		mine := func(want int) {
			t.Helper()
			if _, _, mine := w.chance(); mine != want {
				t.Errorf("%d nodes are its own", mine)
			}
		}
		for _, nonce := range []string{"", "first", "second ", "2", w.name} {
			hand(2, nonce, before)
		}
		hand(1, "first", before)  // once more
		hand(1, "second", before) // for another attempt
		hand(3, "second", before)
		mine(0)
		if len(w.wake) > 0 {
			t.Error("it is woken")
		}
		hand(2, "second", sent.Add(1)) // a copy of this process hears it, and only asks
		mine(0)
		if !w.nodes[0].heard {
			t.Error("it does not ask")
		}
		hand(2, "second", before)
		mine(1)
		w.begin(time.Now(), "third")
		w.told(0, 3, wire.Held)
		hand(2, "second", before)
		hand(3, "second", before)
		mine(0)
		hand(3, "third", sent.Add(1))
		mine(0)
		pass(time.Second)
		w.begin(time.Now(), "fourth")
		w.told(0, 4, wire.Held)
		hand(4, "fourth", sent.Add(1))
		mine(1)
	})
}

func TestParseHanding(t *testing.T) {
	const seconds, micros = "1795302682 513500", int64(1795302682513500)
	true1 := handing{"p.1", 2, "n.1", micros, micros, "id:5"}
	numbered := func(number int64) (string, handing) {
		h := true1
		h.number = number
		return fmt.Sprintf("p.1 2.n.1 %d %s id:5", number, seconds), h
	}
	all := map[string]handing{
		"p.1 2.n.1 1795302682513500 1795302682 513500 id:5": true1,
		"p.1 2.n.1 1795302682513500 1795302682 513500 ":     {"p.1", 2, "n.1", micros, micros, ""},
		"p.1": {}, "p.1 3": {}, "": {}, " ": {}, "      ": {}, "p.1 2.n 17 1795302682 513500": {}, "p.1 2.n.1 1795302682513500 1795302682 513500 id:5 more": {},
		"p.1 2 1795302682513500 1795302682 513500 id:5":                                {}, // of an older version
		"p.1 2. 1795302682513500 1795302682 513500 id:5":                               {},
		"p.1 x.n 1795302682513500 1795302682 513500 id:5":                              {},
		"p.1 -1.n 1795302682513500 1795302682 513500 id:5":                             {},
		"p.1 2.n.1 0 0 1 id:5":                                                         {},
		"p.1 2.n.1 -1 0 1 id:5":                                                        {},
		"p.1 2.n.1 1 9223372036854775807 1 id:5":                                       {},
		"p.1 2.n.1 1795302682513500 1795302681 1513500 id:5":                           {},
		"p.1 2.n.1 1795302682513500 -1795302682 513500 id:5":                           {},
		"p.1 2.n.1 1795302682513500 1795302682 513500 " + strings.Repeat("i", longest): {},
	}
	for off, ok := range map[int64]bool{0: true, -500_000: true, -500_001: false, 3_600_000_000: true, 3_600_000_001: false, wire.MaxFence - micros - 1: false, 1 - micros: false} {
		message, h := numbered(micros + off)
		if !ok {
			h = handing{}
		}
		all[message] = h
	}
	for message, want := range all {
		if h, ok := parseHanding(message); ok != (want != handing{}) || ok && h != want {
			t.Errorf("%q: %+v, %v", message, h, ok)
		}
	}
}

// FuzzParseHanding: whatever is published, what is read of it is within what the script can
// have sent, and says the same when it is written again.
func FuzzParseHanding(f *testing.F) {
	for _, message := range []string{
		"p.1 2.n.1 1795302682513500 1795302682 513500 id:5", "p.1", "p.1 3", "", " ", "p.1 2 17 1 1 ", "p.1 +2.n 01 0 1 ",
		"p.1 2.n 9007199254740991 9007199254 740991 id", "p.1 9223372036854775808.n 1 0 1 id", "\x00 1.\xff 1 0 1 \n", strings.Repeat(" ", 2000),
	} {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		if name, slot := parseCall(message); len(name) > longest || slot < 0 {
			t.Errorf("%q calls %q for %d", message, name, slot)
		}
		h, ok := parseHanding(message)
		if !ok {
			return
		}
		if len(message) > longest || h.nonce == "" || h.try < 0 || h.number <= 0 || h.number >= wire.MaxFence || h.time < 0 || h.number < h.time-500_000 || h.number-h.time > 3_600_000_000 {
			t.Errorf("%q is believed: %+v", message, h)
		}
		again := fmt.Sprintf("%s %d.%s %d %d %d %s", h.waiter, h.try, h.nonce, h.number, h.time/1e6, h.time%1e6, h.mark)
		if other, ok := parseHanding(again); !ok || other != h {
			t.Errorf("%q is read as %+v, %v", again, other, ok)
		}
	})
}
