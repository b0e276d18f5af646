package redlock

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// An ear is a subscription at one node.
type ear struct {
	hall *hall
	node *node
}

// run listens, and begins again when the connection breaks. Whoever was refused by the
// node before it listens may have missed his call: he takes the beginning for one.
func (e *ear) run(ctx context.Context, channel string) {
	var began time.Time
	for pause := minProbe; ; pause = min(2*pause, maxProbe) {
		begun := func() {
			pause, began = minProbe, e.hall.locker.opts.Clock.Now()
			for _, w := range e.waiting() {
				w.hear(e.node.index, 0)
			}
		}
		heard := func(message string) {
			if h, ok := parseHanding(message); ok {
				if w := e.waiter(h.waiter); w != nil {
					w.take(e.node, h, began)
				}
			} else if name, slot := parseCall(message); name != "" {
				if w := e.waiter(name); w != nil {
					w.hear(e.node.index, slot)
				}
			}
		}
		_ = e.node.ear().hear(ctx, channel, begun, heard) // the lane says what is the matter with the node
		if ctx.Err() != nil {
			return // all ears at once: none may draw lots, or no run could be repeated
		}
		timer := time.NewTimer(jittered(pause, e.node.host.Jitter()))
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

// earshot is how long a subscription may be silent before it is asked whether it
// still stands.
const earshot = 10 * time.Second

// hear is one subscription, until it breaks.
func (s *redisServer) hear(ctx context.Context, channel string, ready func(), heard func(string)) error {
	stop := context.AfterFunc(ctx, s.interrupt)
	defer stop()
	defer s.keep(nil)
	dialing, cancel := context.WithTimeout(ctx, s.options.DialTimeout)
	defer cancel()
	conn, err := s.dial(dialing, s.options.Network, s.options.Addr)
	if err != nil {
		return err
	}
	if s.ended.Load() { // interrupt did not see this connection
		return ctx.Err()
	}
	only := &once{Conn: conn}
	o := *s.options
	o.OnConnect, o.Dialer = s.greet, only.dial
	o.DisableIdentity = true // a trip and two commands for each of many who begin to wait at once
	client := redis.NewClient(&o)
	defer client.Close()
	sub := client.Subscribe(ctx, channel)
	defer sub.Close()
	for asked := false; ; {
		m, err := sub.ReceiveTimeout(ctx, earshot)
		if broken := only.broken.Load(); broken != nil {
			return *broken
		}
		var silence net.Error
		switch {
		case err == nil:
		case !asked && errors.As(err, &silence) && silence.Timeout():
			asked = true
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			continue
		default:
			return err
		}
		asked = false
		switch m := m.(type) {
		case *redis.Subscription:
			ready()
		case *redis.Message:
			heard(m.Payload)
		}
	}
}

// A once is a connection that can be had once. go-redis makes a broken subscription
// anew by itself, tells nobody, and writes to the log about it; so it is not told when
// this one breaks, but that there is nothing to read now.
type once struct {
	net.Conn
	given  atomic.Bool
	broken atomic.Pointer[error]
}

func (c *once) dial(context.Context, string, string) (net.Conn, error) {
	if c.given.Swap(true) {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (c *once) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	var silence net.Error
	if err != nil && !(errors.As(err, &silence) && silence.Timeout()) {
		c.broken.CompareAndSwap(nil, &err)
		err = &net.OpError{Op: "read", Err: context.DeadlineExceeded} // a timeout to those who ask
	}
	return n, err
}
