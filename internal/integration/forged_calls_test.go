package integration_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// waiter gives the name of the first waiter in the queue of "a" at a node.
func (h *waitingRoom) waiter() string {
	h.Helper()
	members, err := h.Mini(0).ZMembers("a:queue")
	if err != nil || len(members) != 1 {
		h.Fatalf("%q wait, %v", members, err)
	}
	name, _, _ := strings.Cut(members[0], " ")
	return name
}

// publish sends a message to the process of a waiter at some nodes, as any client may.
func (h *waitingRoom) publish(waiter, message string, nodes ...int) {
	for _, i := range nodes {
		h.Mini(i).Publish(script.WakeChannel+waiter[:strings.LastIndexByte(waiter, '.')], message)
	}
}

// TestForgedSlot: a waiter that is called for a slot that does not exist does not ask for it.
func TestForgedSlot(t *testing.T) {
	inWaitingRoom(t, func(h *waitingRoom) {
		lk := h.locker()
		holders := []*redlock.Lock{acquired(h.T, lk, "a", redlock.Slots(2)), acquired(h.T, lk, "a", redlock.Slots(2))}
		got := h.waits(h.Context(), redlock.Options{}, redlock.Slots(2))
		waiter := h.waiter()
		for _, slot := range []string{"3", "9", "1000", "99999999999999999999", "-1", "0", "x", ""} {
			h.publish(waiter, waiter+" "+slot, 0, 1, 2)
			time.Sleep(20 * time.Millisecond)
		}
		select {
		case turn := <-got:
			t.Fatalf("a third holder has one of two slots: %v, %v", turn.lock.Token(), turn.err)
		default:
		}
		released(h.T, holders[0])
		next := <-got
		if next.err != nil {
			t.Fatal(next.err)
		}
		released(h.T, next.lock)
		released(h.T, holders[1])
	})
}

// TestFloodOfCalls: endless messages make a waiter ask now and then, and no more than that; and
// they do not keep it from asking when it would.
func TestFloodOfCalls(t *testing.T) {
	need.Full(t)
	for name, tt := range map[string]struct {
		nodes []int
		each  time.Duration
	}{
		"all nodes":         {[]int{0, 1, 2}, time.Millisecond},
		"a quorum of nodes": {[]int{0, 1}, 200 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			inWaitingRoom(t, func(h *waitingRoom) {
				before := acquired(h.T, h.locker(), "a", redlock.AutoRenew())
				got := h.waits(h.Context(), redlock.Options{})
				waiter := h.waiter()
				stop := make(chan struct{})
				h.calls.Go(func() {
					long := strings.Repeat("x", 1<<16)
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						case <-time.After(tt.each):
						}
						h.publish(waiter, waiter, tt.nodes...)
						if i%100 == 0 {
							for _, message := range []string{"", " ", waiter + " ", waiter + " 1", waiter + " " + long, long, "\x00\n", waiter + " 1.n 1 1 1 1"} {
								h.publish(waiter, message, tt.nodes...)
							}
						}
					}
				})
				seconds := need.Sized(2, 2, 60)
				time.Sleep(time.Duration(seconds) * time.Second)
				for i := range h.Len() {
					h.Mini(i).Del("a") // and no waiter is called
				}
				begin := time.Now()
				next := <-got
				close(stop)
				if next.err != nil {
					t.Fatal(next.err)
				}
				if took := next.at.Sub(begin); took > time.Second+called {
					t.Errorf("the lock was free for %v", took)
				}
				if next.tries > 20*seconds {
					t.Errorf("%d attempts in %d seconds", next.tries, seconds)
				}
				released(h.T, next.lock)
				_ = before.Release(h.Context())
			})
		})
	}
}
