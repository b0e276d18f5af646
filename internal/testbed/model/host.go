// Package model has Redis nodes in memory, and processes that use them, in a few lines: the chaos harness runs the
// library against it when it wants thousands of schedules a second. Everything in it happens in the virtual time of a
// testing/synctest bubble. Each random choice is drawn from a seed by the name of what it is for, so one seed gives one
// history, however many processors there are.
//
// That works because no two events that could interfere with each other happen at the same instant: each actor (a
// goroutine with one role), in any process, has a place of its own in every [Slot] of time, and acts there.
package model

import (
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/reading"
	"github.com/quorumlock/redlock/internal/wire"
)

const (
	// Slot is the period after which each actor's turn comes again: each nanosecond of it belongs to another actor.
	Slot time.Duration = hosts * Actors

	// Actors is how many turns each process has. Those of process number 0 are for what happens to the nodes.
	Actors = 256
	hosts  = 128 // how many processes there can be

	// Moment bounds how long a goroutine that has been woken waits for a processor.
	Moment = 50*time.Microsecond + Slot
)

// The first turn of each kind of actor of a process: the goroutines that send to up to 32 nodes and receive from them,
// two for each; its renewals; its workers, which call the library (Pass); events at a node or at the process that come
// later (Node.later); its rounds' callers, its waiters and its locks' timers, by the number in the token or the name; and
// its subscriptions, by the node.
const (
	forLinks         = 0
	forRenewals      = 64
	forWorkers       = 65
	Arrivals         = 79
	forCallers       = 80 // 80 of them
	forWaiters       = 160
	forAlarms        = 168
	forSubscriptions = 248
)

// number returns the decimal number at the end of a name; 0: there is none.
func number(name string) (n int) {
	for i, factor := len(name)-1, 1; i >= 0 && name[i] >= '0' && name[i] <= '9'; i, factor = i-1, factor*10 {
		n += int(name[i]-'0') * factor
	}
	return n
}

// A Host is a process: its clock, its random numbers, and whether it runs. It is the sim.Host of its Locker.
type Host struct {
	seed  sim.Seed
	name  string
	place time.Duration // of its first actor in a slot

	mu             sync.Mutex    // protects what follows
	tokens, drawn  int           // how many tokens, and numbers, it has drawn
	skew           time.Duration // of the wall clock alone
	gained         time.Duration // by this both clocks are ahead
	stopped        time.Time     // until then the process stands still
	suspended      time.Time     // when its machine was last suspended, with its timers
	suspendedUntil time.Time
	before         time.Duration // how long it was suspended before that
	dead           bool
	fars           map[string]time.Duration // by node; see Far
	lanes          func() []int             // of its Locker; see weigh
}

// NewHost returns a process whose name ends with a number of its own, from 1.
func NewHost(s sim.Seed, name string) *Host {
	return &Host{seed: s.For(name), name: name, place: time.Duration(number(name) % hosts * Actors)}
}

// sleep makes the calling goroutine, an actor of this process, wait for d, and then for the next turn of actor.
func (h *Host) sleep(d time.Duration, actor int) {
	SleepTo(time.Now().Add(d), h.place+time.Duration(actor%Actors))
}

// SleepTo sleeps until t, and then until the next instant at this place in a Slot.
func SleepTo(t time.Time, place time.Duration) {
	rest := (place - time.Duration(t.UnixNano())) & (Slot - 1)
	time.Sleep(time.Until(t) + rest)
}

// Now returns the process's time. Its wall clock can be set (Skew). Its monotonic clock cannot, and stands still while
// the machine is suspended, as on Linux.
func (h *Host) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	return reading.Of(now.Add(h.skew+h.gained), now.Add(h.gained-h.slept(now)))
}

// slept returns for how long the machine has been suspended, in all, until now (true time). Caller holds h.mu.
func (h *Host) slept(now time.Time) time.Duration {
	if now.After(h.suspendedUntil) {
		now = h.suspendedUntil
	}
	return h.before + max(0, now.Sub(h.suspended))
}

// Real converts an instant by the process's wall clock to true time.
func (h *Host) Real(t time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.Round(0).Add(-h.skew - h.gained)
}

// Token returns a new token: the process's name and a number.
func (h *Host) Token() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens++
	return fmt.Sprintf("%s.%d", h.name, h.tokens)
}

func (h *Host) Jitter() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drawn++
	return h.seed.For("jitter").Of(h.drawn).Float()
}

// Woke lets the calling goroutine go on after a moment drawn for it (see sim.Host for the parameters), in its actor's
// turn, and not while the process is stopped.
func (h *Host) Woke(as sim.Role, key string, n int) {
	key = wire.Secret(key) // the rest of a token says what happened, and must change nothing
	at, id := time.Now(), h.seed.For(key).Of(n)
	switch as {
	case sim.Caller:
		h.wake(id.Below(Moment-Slot), forCallers+number(key)%(forWaiters-forCallers))
	case sim.Waiter:
		h.wake(id.Below(Moment-Slot), forWaiters+number(key)%(forAlarms-forWaiters))
	case sim.Alarm:
		h.thaw(at)
		h.wake(id.Below(Moment-Slot), forAlarms+number(key)%(forSubscriptions-forAlarms))
	case sim.Renewals:
		h.thaw(at)
		h.wake(h.seed.For("renewals").Of(n).Below(Moment-Slot), forRenewals)
	case sim.Conn:
		h.wake(id.Below(Moment-Slot), forLinks+2*number(key))
	}
}

// Pass lets a worker (a goroutine that calls the library, by its number) go on to step n of its program: after a moment
// drawn for it, in its turn, and not while the process is stopped.
func (h *Host) Pass(worker, n int) {
	at := time.Now()
	h.thaw(at)
	h.wake(h.seed.For("worker").Of(worker).Of(n).Below(Moment-Slot), forWorkers+worker%(Arrivals-forWorkers))
}

// thaw waits, when a timer has gone off at the instant at, for what was left of the timer's time if the machine was
// suspended then: the timer was stopped with it.
func (h *Host) thaw(at time.Time) {
	h.mu.Lock()
	from, to := h.suspended, h.suspendedUntil
	h.mu.Unlock()
	if !at.Before(from) && at.Before(to) {
		time.Sleep(time.Until(to.Add(at.Sub(from))))
	}
}

// wake makes the calling goroutine wait for d, then for the next turn of actor, and while the process is stopped.
func (h *Host) wake(d time.Duration, actor int) {
	for {
		h.sleep(d, actor)
		h.mu.Lock()
		d = time.Until(h.stopped)
		h.mu.Unlock()
		if d <= 0 {
			return
		}
	}
}

// Stop makes the process stand still for d.
func (h *Host) Stop(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(d); until.After(h.stopped) {
		h.stopped = until
	}
}

// Suspend makes the machine stand still for d: the process, and its timers.
func (h *Host) Suspend(d time.Duration) {
	h.Stop(d)
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.before, h.suspended, h.suspendedUntil = h.slept(now), now, now.Add(d)
}

// Skew sets the process's wall clock forward by d; negative: back.
func (h *Host) Skew(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skew += d
}

// Gain sets both of the process's clocks forward by d, as on a host whose clocks run fast; negative: slow.
func (h *Host) Gain(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gained += d
}

// Far makes each request from this process to a node take longer by d, and no reply.
func (h *Host) Far(node string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fars == nil {
		h.fars = make(map[string]time.Duration)
	}
	h.fars[node] = d
}

func (h *Host) far(node string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fars[node]
}

// Crash ends the process: nothing comes from it any more, and nothing reaches it. What it has sent still arrives.
func (h *Host) Crash() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead = true
	h.stopped, h.suspendedUntil = time.Time{}, time.Time{} // lets its goroutines end
}

func (h *Host) gone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead
}
