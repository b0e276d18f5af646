package vote

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// longAgo is a time in microseconds that all nodes' clocks are past. A node whose clock is far off has no vote, and each
// acquire is sent to it with this deadline. So the node says what time it is, and counts no fence. Otherwise each name that
// is locked while the clock is wrong would get a fence of that time there, and the node would have no vote for the name once
// its clock is right (see fence.go). Its answer shows its marker (the key that names one life of its data), as a grant does,
// and so which description it keeps (mayTell in package set).
const longAgo = 1

// Bind sets what depends on the node in a batch that leaves at now: the marker that the client knows (a key that shows that
// no data was lost), the deadline by the node's clock, and the proposed fence. It returns what is known of the node then
// (vote, clock, description), for Judge.
func (m *Node) Bind(batch []*lane.Request, now time.Time) (b lane.Before) {
	m.mu.Lock()
	b.Mark, b.Kept, b.Rest = m.mark, m.kept, m.rest(now)
	floor := m.floor()
	m.mu.Unlock()
	b.Off = m.group.skew(&m.clock, now)
	for _, q := range batch {
		if q.Mark = b.Mark; b.Mark == "" && m.Marked() {
			q.Mark = "?" // "" would make the node not compare; "?" is unlike any marker
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

// Judge changes the replies to a batch that left at sent to what they are worth (judge); before is what Bind returned. A
// grant counts if the node had a vote before it was asked, and still has one after what its replies say of its clock.
// vouched reports whether the node has shown the marker that the client knew, so has lost no data. again: the node may keep
// another description of the set by now. The caller must then have the lane join it (join.lua); the replies are judged.
func (m *Node) Judge(batch []*lane.Request, sent time.Time, before lane.Before) (vouched, again bool) {
	now := m.Now()
	seen := int64(0) // replies with the same time share one look at the clock
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
		// The node kept no description. A client that made the set anew may have given it one since, and neither a refusal
		// nor an extension compares the marker.
		refused := q.Reply.Status == wire.Held || q.Reply.Status == wire.Reserved
		again = again || before.Kept.Description == nil && q.By != nil && !q.Open && (refused || q.Reply.Status == wire.Granted)
		// A refusal does not show the marker. A client that only waits must hear of each change of the set, as long as most
		// of the members that it knows are alive: there is at least a quarantine between two changes.
		again = again || refused && m.Marked() && !m.ShownSince(sent.Add(-m.group.Quarantine()/2))
		m.judge(q, &k)
	}
	return vouched, again
}

// A knowledge is what is known of a node when the replies to a batch are judged, and was when it left (Before).
type knowledge struct {
	lane.Before
	after  time.Duration // for how long the node has no vote now; 0: it has one
	why    error         // why it has none, or had none before
	skew   time.Duration // how far its clock is from the median of all, if that is too far; else 0
	middle time.Time     // the median of the nodes' clocks; zero: not known
}

// judge changes q.Reply to what it is worth by k, what is known now and was when q left: a grant that is no vote gets the
// Status Quarantined or Unfit, and the reason as its Err.
func (m *Node) judge(q *lane.Request, k *knowledge) {
	r := &q.Reply
	unfit := func(why error) { r.Status, r.Err = wire.Unfit, why }
	switch {
	case q.Open:
	case r.Status == wire.Void:
		if wire.Forbids(r.Err) {
			m.scriptOnly.Store(true) // until the node is joined again
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
		// A refusal is no vote either: the node has no say in who gets the lock, and the holder that it names may have no
		// more than a grant like this one.
		r.Status, r.Rest, r.Err = wire.Quarantined, k.after, k.why
	case k.skew != 0:
		unfit(SkewError{k.skew, m.cfg.MaxNodeSkew})
	case q.Op == wire.Inspect && q.By != nil && m.unlike(k.Kept, q.By) != nil:
		unfit(m.unlike(k.Kept, q.By))
	case q.Op == wire.Inspect:
		_ = m.poisoned(r.Fence, k.middle, 0) // for its Warning
	case q.Op == wire.Acquire && r.Status == wire.Granted:
		if err := m.poisoned(r.Fence, k.middle, q.Claim.Ahead); err != nil {
			unfit(err)
		}
	}
}

// retell: if the marker was last shown longer ago than this, the refusal of a long TTL has the node joined again.
const retell = time.Second

// Refuses returns why q, an acquire or extension, is refused: the description by which it counts (q.By) allows no lock that
// long; nil: it is not. old: it is, but the node has not shown its marker for a second (retell): the caller joins it again.
func (m *Node) Refuses(q *lane.Request, now time.Time) (why error, old bool) {
	if q.Op != wire.Acquire && q.Op != wire.Extend || q.By == nil || q.Claim.TTL <= wire.Milliseconds(q.By.MaxTTL) {
		return nil, false
	}
	return tooLongError{q.Claim.TTL, wire.Milliseconds(q.By.MaxTTL)}, !m.ShownSince(now.Add(-retell))
}

// stays reports whether the extension q counts by q.By, a description of the set (nil: it does): the marker that the node
// showed after the extension (q.Shown) has q.By's epoch. The node compares an acquire with the marker that was known when
// the request left. It does not compare an extension, as a lock outlives what a node may forget of others. But an extension
// must not count if the node serves another description: two changes later, others may have a quorum without a node in
// common (EXTEND_EPOCH in docs/model).
func stays(q *lane.Request) bool {
	if q.By == nil {
		return true
	}
	mark, ok := wire.ParseMarker(q.Shown)
	return ok && mark.Epoch == q.By.Epoch
}
