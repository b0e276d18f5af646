package contender

import (
	"sync"
	"time"
)

// floorHeld extends all held locks from one goroutine. The locks are dealt over
// slots so that the work is spread over the period instead of coming at once.
type floorHeld[K any] struct {
	mu    sync.Mutex
	slots [64][]K
	next  int
	done  chan struct{}
	ended chan struct{}
}

// startFloorHeld has each lock extended once in every period.
func startFloorHeld[K any](period time.Duration, extend func(K)) *floorHeld[K] {
	h := &floorHeld[K]{done: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(h.ended)
		t := time.NewTicker(period / time.Duration(len(h.slots)))
		defer t.Stop()
		for slot := 0; ; slot = (slot + 1) % len(h.slots) {
			select {
			case <-h.done:
				return
			case <-t.C:
			}
			h.mu.Lock()
			locks := h.slots[slot]
			h.mu.Unlock()
			for _, k := range locks {
				extend(k)
			}
		}
	}()
	return h
}

// add never has its counterpart: extending a released lock changes nothing on
// the nodes, and the floor holds locks only in the scenario that holds them all.
func (h *floorHeld[K]) add(k K) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots[h.next] = append(h.slots[h.next], k)
	h.next = (h.next + 1) % len(h.slots)
}

func (h *floorHeld[K]) stop() {
	close(h.done)
	<-h.ended
}
