package redlock

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
)

// The pauses between two attempts to subscribe at a node.
const (
	minPauseHear = 50 * time.Millisecond
	maxPauseHear = time.Second
)

// An ear is a subscription at one node.
type ear struct {
	hall *hall
	node *lane.Lane
}

// run listens, and begins again when the connection breaks. Whoever was refused by the
// node before it listens may have missed his call: he takes the beginning for one.
func (e *ear) run(ctx context.Context, channel string) {
	var began time.Time
	for pause := minPauseHear; ; pause = min(2*pause, maxPauseHear) {
		begun := func() {
			pause, began = minPauseHear, e.hall.locker.opts.Clock.Now()
			for _, w := range e.waiting() {
				w.hear(e.node.Index, 0)
			}
		}
		heard := func(message string) {
			if h, ok := parseHanding(message); ok {
				if w := e.waiter(h.waiter); w != nil {
					w.take(e.node, h, began)
				}
			} else if name, slot := parseCall(message); name != "" {
				if w := e.waiter(name); w != nil {
					w.hear(e.node.Index, slot)
				}
			}
		}
		_ = e.node.Hear(ctx, channel, begun, heard) // the lane says what is the matter with the node
		if ctx.Err() != nil {
			return // all ears at once: none may draw lots, or no run could be repeated
		}
		timer := time.NewTimer(jittered(pause, e.hall.locker.opts.host.Jitter()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// waiter gives the one who listens that has this name; nil: nobody.
func (e *ear) waiter(name string) *waiter {
	h := e.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.voices[name]
}

// waiting gives those who listen.
func (e *ear) waiting() (all []*waiter) {
	h := e.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.voices {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *waiter) int { return int(a.ticket - b.ticket) })
	return all
}
