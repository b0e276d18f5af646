package waitlist

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
)

// The pauses between two attempts to subscribe at a node.
const (
	minResubscribe = 50 * time.Millisecond
	maxResubscribe = time.Second
)

// A subscription receives one node's messages for the waiters of this process.
type subscription struct {
	list *List
	node *lane.Lane
}

// run subscribes, and subscribes again when the connection breaks. A waiter that the node refused
// before the subscription stood may have missed its message: the start of the subscription counts
// as one.
func (s *subscription) run(ctx context.Context, channel string) {
	cfg := &s.list.cfg
	var began time.Time
	for pause := minResubscribe; ; pause = min(2*pause, maxResubscribe) {
		ready := func() {
			pause, began = minResubscribe, cfg.Clock.Now()
			for _, w := range s.list.listening() {
				w.onFree(s.node, 0)
			}
		}
		onMessage := func(message string) {
			if h, ok := parseHandoff(message); ok {
				if w := s.list.waiter(h.waiter); w != nil {
					w.onHandoff(s.node, h, began)
				}
			} else if name, slot := parseCall(message); name != "" {
				if w := s.list.waiter(name); w != nil {
					w.onFree(s.node, slot)
				}
			}
		}
		_ = s.node.Subscribe(ctx, channel, ready, onMessage) // the lane reports what is wrong with the node
		if s.node.Retired() {                                // it is no member any more
			s.list.unsubscribed(s.node)
			return
		}
		if ctx.Err() != nil {
			return // all subscriptions end at once: if one drew a jitter, no run could be repeated
		}
		timer := time.NewTimer(lane.Jittered(pause, cfg.Host.Jitter()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// unsubscribed forgets a node to which no subscription is made any more.
func (l *List) unsubscribed(n *lane.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subscribed, n)
}

// waiter returns the active waiter of this name; nil: there is none.
func (l *List) waiter(name string) *Waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active[name]
}

// listening returns the active waiters, in the order of their tickets.
func (l *List) listening() (all []*Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.active {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *Waiter) int { return a.arrived.Compare(b.arrived) })
	return all
}
