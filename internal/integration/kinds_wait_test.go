package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"
)

// A waitingRoom has three nodes a millisecond away, and processes that wait for locks there. A
// waiter that is not called waits for a second: so a turn that comes sooner is by a call.
type waitingRoom struct {
	*testing.T
	*redistest.Bubble
	calls sync.WaitGroup
}

const called = 50 * time.Millisecond

func inWaitingRoom(t *testing.T, f func(*waitingRoom)) {
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		h := &waitingRoom{T: t, Bubble: redistest.NewBubble(t, 3)}
		for i := range h.Len() {
			h.Path(i).SetDelay(time.Millisecond)
		}
		f(h)
		h.calls.Wait()
		time.Sleep(time.Second)
		for i := range h.Len() {
			if keys := h.Keys(i); len(keys) > 0 {
				t.Errorf("left on node %d: %q", i, keys)
			}
			for _, queue := range h.queues(i) {
				t.Errorf("left on node %d: %s", i, queue)
			}
		}
	})
}

// queues lists the queues of a node that have waiters.
func (h *waitingRoom) queues(node int) (all []string) {
	for _, key := range h.Mini(node).Keys() {
		if script.Reserved(key) != "" {
			continue
		}
		if set, err := h.Mini(node).SortedSet(key); err == nil {
			all = append(all, fmt.Sprint(key, " ", set))
		}
	}
	return all
}

func (h *waitingRoom) locker() *redlock.Locker {
	h.Helper()
	return open(h.T, h.Clients(), &redlock.Options{Separator: "/"})
}

// A link connects a process of its own to the nodes.
type link struct {
	locker *redlock.Locker

	mu    sync.Mutex
	conns []net.Conn
	down  bool
}

func newLink(h *waitingRoom) *link {
	l := new(link)
	var clients []*redis.Client
	for i := range h.Len() {
		opts := h.Options(i)
		dial := opts.Dialer
		opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			l.mu.Lock()
			defer l.mu.Unlock()
			if err == nil && l.down {
				conn.Close()
				err = &net.OpError{Op: "dial", Net: network, Err: syscall.EHOSTUNREACH}
			}
			l.conns = append(l.conns, conn)
			return conn, err
		}
		clients = append(clients, redis.NewClient(opts))
		h.Cleanup(func() { clients[i].Close() })
	}
	l.locker = open(h.T, clients, &redlock.Options{Separator: "/"})
	return l
}

// cut makes the process look dead to the nodes.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, conn := range l.conns {
		conn.Close()
	}
}

// A caller waits for a lock, and holds it for a time.
type caller struct {
	name    string
	options []redlock.AcquireOption
	hold    time.Duration // 0: until it is told

	came, had, gone time.Time
	lock            *redlock.Lock
	err             error
	answered        atomic.Bool // it has the lock, or an error
	leave           chan struct{}
}

func (c *caller) has() bool { return c.answered.Load() && c.err == nil }

// call starts a caller in a process of its own. Later callers have later tickets.
func (h *waitingRoom) call(name string, hold time.Duration, options ...redlock.AcquireOption) *caller {
	h.Helper()
	return h.callFrom(h.Context(), h.locker(), name, hold, options...)
}

func (h *waitingRoom) callFrom(ctx context.Context, lk *redlock.Locker, name string, hold time.Duration, options ...redlock.AcquireOption) *caller {
	c := &caller{name: name, options: options, hold: hold, came: time.Now(), leave: make(chan struct{})}
	h.calls.Go(func() {
		c.lock, c.err = lk.Acquire(ctx, name, options...)
		c.had = time.Now()
		c.answered.Store(true)
		if c.err != nil {
			return
		}
		if hold > 0 {
			time.Sleep(hold)
		} else {
			<-c.leave
		}
		c.gone = time.Now()
		released(h.T, c.lock)
	})
	time.Sleep(10 * time.Millisecond)
	return c
}

// has checks that a caller has its lock by now, or does not.
func (h *waitingRoom) has(c *caller, want bool, what string) {
	h.Helper()
	synctest.Wait()
	if c.has() != want || !want && c.answered.Load() {
		h.Errorf("%s: has %q: %v", what, c.name, !want)
	}
}

// TestWriterKeepsLaterReadersOut: readers that hold the lock when the writer comes may go on, and
// extend it; later readers, waiting or not, are behind the writer.
func TestWriterKeepsLaterReadersOut(t *testing.T) {
	need.Full(t)
	for _, at := range []string{"p/A", "p"} { // the name that they read, or its folder
		inWaitingRoom(t, func(h *waitingRoom) {
			lk := h.locker()
			reader := acquired(h.T, lk, "p/A", redlock.Shared(), redlock.TTL(3*time.Second), redlock.MaxHold(time.Hour))
			released(h.T, acquired(h.T, h.locker(), at, redlock.Shared()))
			writer := h.call(at, time.Second)
			for range 10 {
				time.Sleep(time.Second)
				if err := reader.Extend(h.Context()); err != nil {
					h.Errorf("an earlier reader: %v", err)
				}
				if l, err := lk.TryAcquire(h.Context(), "p/A", redlock.Shared()); !errors.Is(err, redlock.ErrHeld) {
					h.Errorf("a new reader: %v, %v", l, err)
				}
			}
			late := h.call("p/A", time.Second, redlock.Shared())
			other := h.call(at, time.Second, redlock.Shared())
			h.has(writer, false, "while there is a reader")
			released(h.T, reader)
			h.calls.Wait()
			if !writer.had.Before(late.had) || !writer.had.Before(other.had) || late.had.Sub(writer.gone) > called || other.had.Sub(late.had).Abs() > called {
				h.Errorf("the writer had it at %v, and the readers at %v and %v", writer.had, late.had, other.had)
			}
		})
	}
}

// TestReadersAndWritersInTurn: first come, first served; and readers that come one after another,
// with no writer between them, are served together.
func TestReadersAndWritersInTurn(t *testing.T) {
	need.Full(t)
	for seed := range need.Sized[uint64](2, 2, 50) {
		inWaitingRoom(t, func(h *waitingRoom) {
			lots := rand.New(rand.NewPCG(seed, 0))
			holder := acquired(h.T, h.locker(), "a", redlock.TTL(10*time.Second))
			var turns [][]*caller // the callers that are served together
			order := ""
			for range 10 {
				if lots.IntN(2) == 0 {
					turns = append(turns, []*caller{h.call("a", 100*time.Millisecond)})
					order += "w"
					continue
				}
				reader := h.call("a", 100*time.Millisecond, redlock.Shared())
				if n := len(turns); order != "" && order[len(order)-1] == 'r' {
					turns[n-1] = append(turns[n-1], reader)
				} else {
					turns = append(turns, []*caller{reader})
				}
				order += "r"
			}
			freed := time.Now()
			released(h.T, holder)
			h.calls.Wait()
			for i, turn := range turns {
				last := freed
				for _, c := range turn {
					if wait := c.had.Sub(freed); wait < 0 || wait > called {
						h.Errorf("%s: turn %d comes %v after the release", order, i, wait)
					}
					if c.gone.After(last) {
						last = c.gone
					}
				}
				freed = last
			}
		})
	}
}

// TestSlotsInTurn: the first waiter for one of several slots gets the first free slot, and as many
// waiters are served at once as slots are free.
func TestSlotsInTurn(t *testing.T) {
	need.Full(t)
	const n = 3
	inWaitingRoom(t, func(h *waitingRoom) {
		var all []*caller
		for range 3 * n {
			all = append(all, h.call("a", 0, redlock.Slots(n)))
		}
		end := func(callers ...*caller) {
			for _, c := range callers {
				close(c.leave)
			}
			time.Sleep(called)
		}
		served := func(want int) {
			for i, c := range all {
				h.has(c, i < want, fmt.Sprintf("caller %d of whom %d should have been served", i, want))
			}
		}
		served(n)
		end(all[1])
		served(n + 1)
		end(all[0], all[2])
		served(n + 3)
		end(all[3:6]...)
		served(n + 6)
		end(all[6:]...)
	})
}

// TestWaiterThatGivesUpHoldsUpNobody: the waiters behind one that waits for several names, for a folder, or for an
// exclusive lock, need not wait for it when it gives up, or its process closes; and when it dies,
// for at most its lease.
func TestWaiterThatGivesUpHoldsUpNobody(t *testing.T) {
	need.Full(t)
	shared, slot := redlock.Shared(), redlock.Slots(3)
	type want struct {
		name    string
		options []redlock.AcquireOption
	}
	for n, tt := range []struct {
		what                    string
		holder, waiter, behind1 want
		behind2                 want
	}{
		{"several names", want{"a", nil}, want{"b", []redlock.AcquireOption{redlock.Also("a")}}, want{"b/c", nil}, want{"b/d", nil}},
		{"several names, another order", want{"a", nil}, want{"a", []redlock.AcquireOption{redlock.Also("b")}}, want{"b/c", nil}, want{"b/d", nil}},
		{"a folder", want{"p/A", nil}, want{"p", nil}, want{"p/B", nil}, want{"p/C/D", nil}},
		{"a folder with a reader", want{"p", []redlock.AcquireOption{shared}}, want{"p", nil}, want{"p/B", []redlock.AcquireOption{shared}}, want{"p", []redlock.AcquireOption{shared}}},
		{"a name with a reader", want{"a", []redlock.AcquireOption{shared}}, want{"a", nil}, want{"a", []redlock.AcquireOption{shared}}, want{"a", []redlock.AcquireOption{shared}}},
		{"a name with a slot taken", want{"a", []redlock.AcquireOption{slot}}, want{"a", nil}, want{"a", []redlock.AcquireOption{slot}}, want{"a", []redlock.AcquireOption{slot}}},
	} {
		for _, how := range []string{"gives up", "dies", "closes"} {
			if how == "closes" && n%3 > 0 {
				continue // to others that is the same as giving up
			}
			t.Run(tt.what+", "+how, func(t *testing.T) {
				inWaitingRoom(t, func(h *waitingRoom) {
					holder := acquired(h.T, h.locker(), tt.holder.name, append(tt.holder.options, redlock.AutoRenew())...)
					ctx, cancel := context.WithCancel(h.Context())
					defer cancel()
					link := newLink(h)
					waiter := h.callFrom(ctx, link.locker, tt.waiter.name, time.Second, tt.waiter.options...)
					one := h.call(tt.behind1.name, 0, tt.behind1.options...)
					two := h.call(tt.behind2.name, 0, tt.behind2.options...)
					time.Sleep(3 * time.Second)
					h.has(one, false, "behind the waiter")
					within := called
					switch how {
					case "gives up":
						cancel()
					case "closes":
						link.locker.Close()
					case "dies":
						link.cut()
						within = 3*time.Second + called
					}
					begin := time.Now()
					for !one.has() || !two.has() {
						if time.Sleep(time.Millisecond); time.Since(begin) > within {
							h.Errorf("not after %v", within)
							break
						}
					}
					if how == "dies" && time.Since(begin) < time.Second {
						h.Errorf("no waiter waited for the dead one")
					}
					cancel()
					released(h.T, holder)
					close(one.leave)
					close(two.leave)
					h.calls.Wait()
					if waiter.err == nil {
						h.Errorf("the waiter that left has the lock")
					}
				})
			})
		}
	}
}
