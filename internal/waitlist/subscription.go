package waitlist

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
)

// The pauses between two attempts to subscribe at a node.
const (
	minResubscribe = 50 * time.Millisecond
	maxResubscribe = time.Second
)

// maxMessage bounds the length of a message, in bytes: the name of a waiter and a number are less than half of it. A
// longer one is ignored, since any client may publish anything.
const maxMessage = 512

// parseCall reads a message by which a node makes a waiter try again (queue.lua): the waiter's name, and the slot that
// is free; 0: the message names none. Anybody may publish a message: there may be no waiter with that name.
func parseCall(message string) (name string, slot int64) {
	if len(message) > maxMessage {
		return "", 0
	}
	name, number, _ := strings.Cut(message, " ")
	slot, err := strconv.ParseInt(number, 10, 64)
	if err != nil || slot < 0 {
		slot = 0
	}
	return name, slot
}

// A subscription receives one node's messages for the waiters of this process.
type subscription struct {
	list *List
	node *lane.Lane
}

// run subscribes to channel, and again whenever the connection breaks, until ctx ends or the node is no member any
// more. A message may have come before the subscription stood: so its start counts as a message to each waiter.
func (s *subscription) run(ctx context.Context, channel string) {
	cfg := &s.list.cfg
	for pause := minResubscribe; ; pause = min(2*pause, maxResubscribe) {
		ready := func() {
			pause = minResubscribe
			for _, w := range s.list.listening() {
				w.onFree(s.node, 0)
			}
		}
		onMessage := func(message string) {
			name, slot := parseCall(message)
			if w := s.list.waiter(name); w != nil {
				w.onFree(s.node, slot)
			}
		}
		_ = s.node.Subscribe(ctx, channel, ready, onMessage) // the lane reports the errors of its node
		if s.node.Retired() {                                // no member any more
			s.list.unsubscribed(s.node)
			return
		}
		if ctx.Err() != nil {
			return // without a jitter: all subscriptions end at once, and the order of their draws could not be repeated
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

// unsubscribed drops n from l.subscribed when its subscription has ended for good, so that n can be garbage-collected.
func (l *List) unsubscribed(n *lane.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subscribed, n)
}

// waiter returns the waiter with this name, if messages reach it (Activate); nil: there is none.
func (l *List) waiter(name string) *Waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active[name]
}

// listening returns the waiters that messages reach (Activate), in the order in which they came.
func (l *List) listening() (all []*Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.active {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *Waiter) int { return a.arrived.Compare(b.arrived) })
	return all
}
