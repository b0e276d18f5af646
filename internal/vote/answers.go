package vote

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// longAgo is a time that all nodes' clocks are past. A node whose clock is far off has no vote,
// and every acquire is sent to it with this deadline: so it says what time it is, and counts no
// fence. Otherwise each name that is locked while the node's clock is wrong would get a fence of
// that time there, and the node would have no vote for the name once its clock is right (see
// fence.go). Its answer shows its marker, as a grant does, and so what the node keeps (mayTell).
const longAgo = 1

// Bind completes the requests of a batch that is about to leave (lane.Node).
func (m *Node) Bind(batch []*lane.Request, now time.Time) (b lane.Before) {
	m.mu.Lock()
	b.Mark, b.Kept, b.Rest = m.mark, m.kept, m.rest(now)
	floor := m.floor()
	m.mu.Unlock()
	b.Off = m.group.skew(&m.clock, now)
	for _, q := range batch {
		if q.Mark = b.Mark; b.Mark == "" && m.Marked() {
			q.Mark = "?" // "" would mean not to compare, and "?" is unlike any marker
		}
		switch q.Step() {
		case wire.Plain, wire.Acquire:
			if q.Latest = m.group.latest(&m.clock, q.Deadline); b.Off != 0 {
				q.Latest = longAgo
			}
			if q.Number = q.Claim.Proposal; q.Number == 0 {
				q.Number = floor
			}
		case wire.Yield:
			q.Latest = m.group.latest(&m.clock, q.Claim.RetryBy)
		}
	}
	return b
}

// Judge changes the replies of a batch that left at sent to what they are worth, by what was known when it left and by what
// is known now: a grant counts if the node had a vote before it was asked, and still has one after what its replies say of
// its clock. Vouched: the node has shown its marker. Again: what the node keeps may have changed since, so it is to be joined
// again.
func (m *Node) Judge(batch []*lane.Request, sent time.Time, before lane.Before) (vouched, again bool) {
	now := m.Now()
	seen := int64(0) // what needs no script shares one look at the clock
	for _, q := range batch {
		if t := q.Reply.Time; t > 0 && t != seen {
			m.observeClock(t, sent, now)
			seen = t
		}
	}
	k := knowledge{Before: before, middle: m.group.Middle(now)}
	m.mu.Lock()
	k.after, k.skew = m.rest(now), m.skew
	if k.Rest > 0 || k.after > 0 {
		k.why = m.reason(now)
	}
	m.mu.Unlock()
	if vouched = slices.ContainsFunc(batch, func(q *lane.Request) bool {
		return (q.Reply.Status == wire.Granted || q.Reply.Status == wire.Late) && q.Reply.Mark != "" && q.Reply.Mark == before.Mark
	}); vouched {
		m.Vouched(sent)
	}
	for _, q := range batch {
		// A node that keeps none may have been told one since, by a client of a set that was made anew: of the first
		// description the marker says nothing.
		refused := q.Reply.Status == wire.Held || q.Reply.Status == wire.Reserved
		again = again || before.Kept.Description == nil && q.By != nil && !q.Open && (refused || q.Reply.Status == wire.Granted)
		// A refusal does not show the marker. A client that only waits must hear of each change of the set, as long as most
		// of the members that it knows are alive: from one change to the next one it takes a quarantine.
		again = again || refused && m.Marked() && !m.ShownSince(sent.Add(-m.group.Quarantine()/2))
		m.judge(q, &k)
	}
	return vouched, again
}

// A knowledge is what is known of a node when the replies of a batch are judged.
type knowledge struct {
	lane.Before
	after  time.Duration // for how long the node has no vote now
	why    error         // why it has none, or had none before
	skew   time.Duration // how far its clock is from the others', if that is too far
	middle time.Time     // of the nodes' clocks
}

// judge changes the reply to a request to what it is worth.
func (m *Node) judge(q *lane.Request, k *knowledge) {
	r := &q.Reply
	unfit := func(why error) { r.Status, r.Err = wire.Unfit, why }
	switch {
	case q.Open:
	case r.Status == wire.Void:
		if wire.Forbids(r.Err) {
			m.scriptOnly.Store(true) // until it is joined again
		}
	case q.Op == wire.Release:
		r.NoVote = k.after > 0 || k.skew != 0
	case r.Status == wire.Granted && q.Counts() && m.unlike(k.Kept, q.By) != nil:
		unfit(m.unlike(k.Kept, q.By))
	case r.Status == wire.Granted && q.Op == wire.Extend && !stays(q):
		unfit(wire.ErrMoved)
	case r.Status == wire.Late && k.Off != 0:
		unfit(SkewError{k.Off, m.cfg.MaxNodeSkew})
	case r.Status == wire.Late && k.after > 0: // late because the node's clock was set
		r.Err = k.why
	case q.Op == wire.Extend || q.Op == wire.Leave || q.Asks() || r.Status != wire.Granted && r.Status != wire.Held && r.Status != wire.Reserved:
	case q.Op == wire.Inspect && r.Mark != k.Mark:
		*r = wire.Reply{Status: wire.Quarantined, Err: wire.ErrForgot}
	case k.Rest > 0 || k.after > 0:
		// A refusal is no vote either: the node has no say in who gets the lock, and the
		// holder that it names may have no more than a grant like this one.
		r.Status, r.Rest, r.Err = wire.Quarantined, k.after, k.why
	case k.skew != 0:
		unfit(SkewError{k.skew, m.cfg.MaxNodeSkew})
	case q.Op == wire.Inspect && q.By != nil && m.unlike(k.Kept, q.By) != nil:
		unfit(m.unlike(k.Kept, q.By))
	case q.Op == wire.Inspect:
		_ = m.poisoned(r.Fence, k.middle, 0) // which tells of it
	case q.Op == wire.Acquire && r.Status == wire.Granted:
		if err := m.poisoned(r.Fence, k.middle, q.Claim.Ahead); err != nil {
			unfit(err)
		}
	}
}

// retell is for how long a long TTL is refused by what the node has last shown. After that it is joined again: the set may
// allow the TTL by now.
const retell = time.Second

// Refuses says why a request need not be sent (lane.Node): a lock that lives for longer than the description allows by which
// it would count. The set may allow it by now.
func (m *Node) Refuses(q *lane.Request, now time.Time) (why error, old bool) {
	if q.Op != wire.Acquire && q.Op != wire.Extend || q.By == nil || q.Claim.TTL <= wire.Milliseconds(q.By.MaxTTL) {
		return nil, false
	}
	return tooLongError{q.Claim.TTL, wire.Milliseconds(q.By.MaxTTL)}, !m.ShownSince(now.Add(-retell))
}

// stays reports whether the marker that the node had after an extension is of the description by which that
// counts. A grant compares the marker as it was when the request left. An extension does not compare it,
// for a lock outlives what a node may forget of others. But it must not count when the node serves
// another description: two changes later, others may have a quorum without a node in common (EXTEND_EPOCH
// in docs/model).
func stays(q *lane.Request) bool {
	if q.By == nil {
		return true
	}
	mark, ok := wire.ParseMarker(q.Shown)
	return ok && mark.Epoch == q.By.Epoch
}
