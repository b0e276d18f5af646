package recording

import (
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/listing"
	"github.com/quorumlock/redlock/internal/wire"
)

// A lock is what one node has of a lock.
type lock struct {
	token   string
	until   time.Time     // of the token, as far as is known
	ttl     time.Duration // the longest that was seen
	fence   int64
	holders []holder
	waiting []Waiter
	gaps    int  // the follower's, when it was read
	young   bool // its fence may be raised yet, which is not told of: it is read again in the next beat
}

type holder struct {
	Holder
	until time.Time
}

// lockOf returns what the reply of a read says of a lock. at is when it was read.
func lockOf(a *wire.Reply, at time.Time) *lock {
	l := &lock{token: a.Holder, fence: a.Fence, ttl: a.TTL, until: at.Add(a.TTL)}
	if len(a.Holder) >= wire.MostOfToken { // a value of another program
		l.token = ""
	}
	for _, h := range a.Holders {
		l.holders = append(l.holders, holder{Holder{h.Token, listing.Modes[h.Mode], h.TTL.Milliseconds()}, at.Add(h.TTL)})
	}
	for _, e := range a.Queue {
		if e.Lives(a.Time) {
			l.waiting = append(l.waiting, Waiter{e.Waiter, e.By().Owner, time.UnixMicro(e.Ticket).UTC()})
		}
	}
	return l
}

func (h holder) is(o holder) bool { return h.Token == o.Token && h.Mode == o.Mode }

// held reports whether l and o have the same holders.
func (l *lock) held(o *lock) bool {
	return l.token == o.token && slices.EqualFunc(l.holders, o.holders, holder.is)
}

// same reports whether l is no news after o, the reading before: it has the same holders and waiters. The fence is compared
// only if o was the first reading with these holders, who may raise it soon afterwards. An extension is no news.
func (l *lock) same(o *lock) bool {
	return l.held(o) && (l.fence == o.fence || !o.young) &&
		slices.EqualFunc(l.waiting, o.waiting, func(a, b Waiter) bool { return a.Waiter == b.Waiter && a.Since.Equal(b.Since) })
}

func (l *lock) line(f *follower, key string, at time.Time) *Line {
	line := &Line{Time: at, Node: f.node.Name, Token: l.token, Fence: l.fence, Waiting: l.waiting}
	line.call(strings.TrimPrefix(key, f.rec.prefix))
	if l.token != "" {
		line.TTL = max(0, l.until.Sub(at)).Milliseconds()
	}
	for _, h := range l.holders {
		h.TTL = max(0, h.until.Sub(at)).Milliseconds()
		line.Holders = append(line.Holders, h.Holder)
	}
	return line
}

// over reports whether the TTL of some holder is over at an instant.
func (l *lock) over(at time.Time) bool {
	return l.token != "" && at.After(l.until) || slices.ContainsFunc(l.holders, func(h holder) bool { return at.After(h.until) })
}
