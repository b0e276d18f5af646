package recording

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/listing"
)

// keyspace returns what the names of a database's channels for keyspace notifications begin with; the key follows.
func keyspace(db int) string { return fmt.Sprintf("__keyspace@%d__:", db) }

// listen subscribes to the changes of the locks' keys, again and again, until f.ctx ends. If a server does not tell of
// changes, or does not let this user subscribe, that does no harm: it is walked.
func (f *follower) listen() {
	for f.ctx.Err() == nil {
		sub := f.client.PSubscribe(f.ctx, f.channel+listing.Escape(f.rec.prefix)+"*")
		f.hear(sub)
		_ = sub.Close()
		f.rec.mu.Lock()
		had := f.subscribed
		f.gaps++
		f.rewalk, f.subscribed, f.resubscribed = f.rewalk || had, false, had
		f.rec.mu.Unlock()
		if had { // what is told meanwhile is not heard
			f.pause(retry)
		} else {
			f.pause(beat)
		}
	}
}

// hear takes the events of a subscription, until it breaks; the caller closes it. If none came for a beat (a second), hear
// sends a PING, and returns if that has no answer within patience: a connection that was cut without a word stays silent.
func (f *follower) hear(sub *redis.PubSub) {
	stop := context.AfterFunc(f.ctx, func() { _ = sub.Close() })
	defer stop()
	for wait := beat; ; {
		m, err := sub.ReceiveTimeout(f.ctx, wait)
		var silence net.Error
		if wait == beat && errors.As(err, &silence) && silence.Timeout() {
			if wait = patience; sub.Ping(f.ctx) != nil {
				return
			}
			continue
		}
		if err != nil {
			return
		}
		wait = beat
		switch m := m.(type) {
		case *redis.Subscription: // whatever has changed before was not told
			f.rec.mu.Lock()
			f.rewalk, f.subscribed, f.resubscribed = true, true, true
			f.gaps++
			f.wake()
			f.rec.mu.Unlock()
		case *redis.Message:
			f.heard(strings.TrimPrefix(m.Channel, f.channel), m.Payload)
		}
	}
}

// heard takes one event of a key: it has the lock read to which the key belongs. Keys of no lock are ignored.
func (f *follower) heard(key, event string) {
	at := f.rec.clock.now()
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	key, queue, ok := f.lockOf(key)
	if !ok {
		return
	}
	if event == "expire" { // of a lock: it was set, which is told as well, or extended
		if l := f.known[key]; !queue && l != nil && l.token != "" && f.dirty[key] == nil {
			l.until = at.Add(l.ttl)
		}
		return
	}
	if f.dirty[key] == nil && len(f.dirty) >= mostTold { // it cannot be read, or not so fast
		f.rewalk = true
		f.gaps++
		return
	}
	if queue {
		event = "" // as a cause it says nothing: see Line.Waiting
	}
	f.want(key, event, at)
}
