package miniarena

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/script"
)

// waits makes a waiter wait for a lock of another client, with a subscription for the call when
// that is released.
func (b *bench) waits(key string) *redis.PubSub {
	b.Helper()
	v, err := b.run(acquire, key, "me.@a@@too", 30000, 0, 0, "", 1, "p.1", 3000)
	if err != nil || granted(v) {
		b.Errorf("a waiter for %q: %v, %v", key, v, err)
	}
	client := b.connect()
	b.Cleanup(func() { _ = client.Close() })
	sub := client.Subscribe(b.Context(), script.WakeChannel+"p")
	if _, err := sub.Receive(b.Context()); err != nil {
		b.Error(err)
	}
	return sub
}

// hears returns the message that a subscription receives within a second.
func (b *bench) hears(sub *redis.PubSub) (string, error) {
	m, err := sub.ReceiveTimeout(b.Context(), time.Second)
	if m, ok := m.(*redis.Message); ok {
		return m.Payload, nil
	}
	return "", err
}

// mute: no message arrives, and everything else goes on.
func mute(b *bench) {
	for _, begin := range []bool{true, false} {
		b.inject(history.Fault{Kind: history.Mute}, begin)
		sub := b.waits("mine")
		v, err := b.release("mine")
		b.says("release", v, err, "")
		if got, err := b.hears(sub); (got == "p.1") == begin {
			b.Errorf("mute is %v, and the waiter hears %q, %v", begin, got, err)
		}
		_ = sub.Close()
		if v, err := b.run(acquire, "mine", "me", 30000, 0, 0, "", -1, "", 0); err != nil {
			b.Errorf("again: %v, %v", v, err)
		}
	}
	b.answers("")
}

// deafen: subscriptions break, and no other connection does.
func deafen(b *bench) {
	b.answers("")
	sub := b.waits("mine")
	b.inject(history.Fault{Kind: history.Deafen}, true)
	if got, err := b.hears(sub); got != "" || err == nil || errors.Is(err, context.DeadlineExceeded) {
		b.Errorf("the waiter hears %q, %v", got, err)
	}
	_ = sub.Close()
	b.answersOnce()
	if n := len(b.node.subscriptions); n != 0 {
		b.Errorf("%d subscriptions are left", n)
	}
	sub = b.waits("mine")
	if _, err := b.release("mine"); err != nil {
		b.Error(err)
	}
	if got, err := b.hears(sub); got != "p.1" {
		b.Errorf("a new subscription hears %q, %v", got, err)
	}
	_ = sub.Close()
}
