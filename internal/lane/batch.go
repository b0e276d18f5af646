package lane

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// longAgo is a time that all nodes' clocks are past. A node whose clock is far off has no vote,
// and every acquire is sent to it with this deadline: so it says what time it is, and counts no
// fence. Otherwise each name that is locked while the node's clock is wrong would get a fence of
// that time there, and the node would have no vote for the name once its clock is right (see
// acquire.go). Its answer shows its marker, as a grant does, and so what the node keeps (mayTell).
const longAgo = 1

// A bound is what was known of the node when a batch left. A grant counts if the node had a vote before it was asked, and
// still has one after what its replies say of its clock.
type bound struct {
	mark string        // its marker
	kept wire.Told     // what it keeps
	rest time.Duration // for how long it has no vote
	off  time.Duration // by how much its clock is off; 0: by no more than it may be
}

// bind completes the requests of a batch that is about to leave.
func (m *incarnation) bind(batch []*Request, now time.Time) (b bound) {
	m.mu.Lock()
	b.mark, b.kept, b.rest = m.mark, m.told, m.rest(now)
	floor := m.floor()
	m.mu.Unlock()
	b.off = m.clocks.skew(&m.clock, now)
	for _, q := range batch {
		if q.Mark = b.mark; b.mark == "" && m.marked() {
			q.Mark = "?" // "" would mean not to compare, and "?" is unlike any marker
		}
		switch q.Step() {
		case wire.Plain, wire.Acquire:
			if q.Latest = m.clocks.latest(&m.clock, q.Deadline); b.off != 0 {
				q.Latest = longAgo
			}
			if q.Number = q.Claim.Proposal; q.Number == 0 {
				q.Number = floor
			}
		case wire.Yield:
			q.Latest = m.clocks.latest(&m.clock, q.Claim.RetryBy)
		}
	}
	return b
}

// judge decides what the replies of a batch are worth, by what was known when it left and by what is known now.
func (m *incarnation) judge(f *flight) {
	batch, sent, mark, kept, before, off := f.batch, f.sent, f.mark, f.kept, f.rest, f.off
	now := m.Now()
	seen := int64(0) // what needs no script shares one look at the clock
	for _, q := range batch {
		if t := q.Reply.Time; t > 0 && t != seen {
			m.observeClock(t, sent, now)
			seen = t
		}
	}
	m.mu.Lock()
	after, skew := m.rest(now), m.skew
	var why error
	if before > 0 || after > 0 {
		why = m.reason(now)
	}
	m.mu.Unlock()
	middle := m.clocks.middle(now)
	if slices.ContainsFunc(batch, func(q *Request) bool {
		return (q.Reply.Status == wire.Granted || q.Reply.Status == wire.Late) && q.Reply.Mark != "" && q.Reply.Mark == mark
	}) {
		m.vouched(sent)
		if m.set.lacks() {
			m.set.look()
		}
	}
	again := false
	for _, q := range batch {
		r := &q.Reply
		// A node that keeps none may have been told one since, by a client of a set that was made anew: of the first
		// description the marker says nothing.
		refused := r.Status == wire.Held || r.Status == wire.Reserved
		again = again || kept.Description == nil && q.By != nil && !q.Open && (refused || r.Status == wire.Granted)
		// A refusal does not show the marker. A client that only waits must hear of each change of the set, as long as most
		// of the members that it knows are alive: from one change to the next one it takes a quarantine.
		again = again || refused && m.marked() && !m.shownSince(sent.Add(-m.set.quarantine()/2))
		switch {
		case q.Open:
		case r.Status == wire.Void:
			if wire.Forbids(r.Err) {
				m.scriptOnly.Store(true) // until it is joined again
			}
		case q.Op == wire.Release:
			r.NoVote = after > 0 || skew != 0
		case r.Status == wire.Granted && q.counts() && m.unlike(kept, q.By) != nil:
			r.Status, r.Err = wire.Unfit, m.unlike(kept, q.By)
		case r.Status == wire.Granted && q.Op == wire.Extend && !q.stays():
			r.Status, r.Err = wire.Unfit, wire.ErrMoved
		case r.Status == wire.Late && off != 0:
			r.Status, r.Err = wire.Unfit, skewError{off, m.cfg.MaxNodeSkew}
		case r.Status == wire.Late && after > 0: // late because the node's clock was set
			r.Err = why
		case q.Op == wire.Extend || q.Op == wire.Leave || q.asks() || r.Status != wire.Granted && r.Status != wire.Held && r.Status != wire.Reserved:
		case q.Op == wire.Inspect && r.Mark != mark:
			*r = wire.Reply{Status: wire.Quarantined, Err: wire.ErrForgot}
		case before > 0 || after > 0:
			// A refusal is no vote either: the node has no say in who gets the lock, and the
			// holder that it names may have no more than a grant like this one.
			r.Status, r.Rest, r.Err = wire.Quarantined, after, why
		case skew != 0:
			r.Status, r.Err = wire.Unfit, skewError{skew, m.cfg.MaxNodeSkew}
		case q.Op == wire.Inspect && q.By != nil && m.unlike(kept, q.By) != nil:
			r.Status, r.Err = wire.Unfit, m.unlike(kept, q.By)
		case q.Op == wire.Inspect:
			_ = m.poisoned(r.Fence, middle, 0) // which tells of it
		case q.Op == wire.Acquire && r.Status == wire.Granted:
			if err := m.poisoned(r.Fence, middle, q.Claim.Ahead); err != nil {
				r.Status, r.Err = wire.Unfit, err
			}
		}
	}
	if again {
		m.set.again(m)
	}
}

// stays reports whether the marker that the node had after an extension is of the description by which that
// counts. A grant compares the marker as it was when the request left. An extension does not compare it,
// for a lock outlives what a node may forget of others. But it must not count when the node serves
// another description: two changes later, others may have a quorum without a node in common (EXTEND_EPOCH
// in docs/model).
func (q *Request) stays() bool {
	if q.By == nil {
		return true
	}
	mark, ok := wire.ParseMarker(q.Shown)
	return ok && mark.Epoch == q.By.Epoch
}

// unknown reports whether the server did not know the script, or the marker: it was
// restarted, or lost its data, or only its scripts.
func (q *Request) unknown() bool {
	return q.Reply.Err != nil && (q.Reply.Err == wire.ErrForgot || q.Reply.Err == wire.ErrMoved || q.Reply.Err == wire.ErrNoScripts || redis.HasErrorPrefix(q.Reply.Err, "NOSCRIPT"))
}
