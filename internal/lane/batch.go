package lane

import (
	"slices"

	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// carryOut sends a batch to a server that may have dropped its scripts, or its data.
func carryOut(srv Server, m *incarnation, batch []*Request) error {
	err := m.send(srv, batch)
	if err != nil {
		return err
	}
	for range maxReloads {
		i := slices.IndexFunc(batch, (*Request).unknown)
		if i < 0 {
			break
		}
		if batch, err = reload(srv, m, batch[i:]); err != nil {
			return err
		}
	}
	return nil
}

// longAgo is a time that all nodes' clocks are past. A node whose clock is far off has no vote,
// and every acquire is sent to it with this deadline: so it says what time it is, and counts no
// fence. Otherwise each name that is locked while the node's clock is wrong would get a fence of
// that time there, and the node would have no vote for the name once its clock is right (see
// acquire.go). Its answer shows its marker, as a grant does, and so what the node keeps (mayTell).
const longAgo = 1

// send carries a batch to the server. The requests are bound to what is known about the node
// when they leave, and the replies are judged by what is known when they are here: a grant counts
// if the node had a vote before it was asked, and still has one after what its replies say of its
// clock.
func (m *incarnation) send(srv Server, batch []*Request) error {
	sent := m.Now()
	m.mu.Lock()
	mark, kept := m.mark, m.told
	floor := m.floor()
	before := m.rest(sent)
	m.mu.Unlock()
	off := m.clocks.skew(&m.clock, sent)
	for _, q := range batch {
		if q.Mark = mark; mark == "" && m.marked() {
			q.Mark = "?" // "" would mean not to compare, and "?" is unlike any marker
		}
		switch q.Step() {
		case wire.Plain, wire.Acquire:
			if q.Latest = m.clocks.latest(&m.clock, q.Deadline); off != 0 {
				q.Latest = longAgo
			}
			if q.Number = q.Claim.Proposal; q.Number == 0 {
				q.Number = floor
			}
		case wire.Yield:
			q.Latest = m.clocks.latest(&m.clock, q.Claim.RetryBy)
		}
	}
	err := srv.Exec(batch)
	now := m.Now()
	seen := int64(0) // what needs no script shares one look at the clock
	for _, q := range batch {
		if t := q.Reply.Time; t > 0 && t != seen {
			m.observeClock(t, sent, now)
			seen = t
		}
	}
	m.mu.Lock()
	after, why := m.rest(now), m.reason(now)
	skew := m.skew
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
		again = again || kept.Description == nil && q.By != nil && (refused || r.Status == wire.Granted)
		// A refusal does not show the marker. A client that only waits must hear of each change of the set, as long as most
		// of the members that it knows are alive: from one change to the next one it takes a quarantine.
		again = again || refused && m.marked() && !m.shownSince(sent.Add(-m.set.quarantine()/2))
		switch {
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
	return err
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

// maxReloads is how often a batch loads the scripts: another client may flush them again in
// between, but does not do that all the time.
const maxReloads = 5

// unknown reports whether the server did not know the script, or the marker: it was
// restarted, or lost its data, or only its scripts.
func (q *Request) unknown() bool {
	return q.Reply.Err != nil && (q.Reply.Err == wire.ErrForgot || q.Reply.Err == wire.ErrMoved || q.Reply.Err == wire.ErrNoScripts || redis.HasErrorPrefix(q.Reply.Err, "NOSCRIPT"))
}

// reload joins a server that has dropped scripts or marker, and carries out the rest of a
// batch again, from the first request that the server could not carry out. It sends all the
// rest, and not just those that failed: another client may have loaded the scripts in the
// middle of this pipeline, so a release may have been executed when its acquire was not,
// and the acquire must not come after it. Each step may be executed twice; then combines
// its two answers. It returns what it has sent again.
//
// An acquire of plain commands is not sent again: a second SET could say OK after another client
// has had the lock in between, and the number of the first is stored by then (NO_RESEND in
// docs/model). It depends on no script, so it has been carried out in its place.
func reload(srv Server, m *incarnation, batch []*Request) ([]*Request, error) {
	if err := srv.Join(); err != nil {
		for _, q := range batch {
			if q.unknown() && q.Step() != wire.Plain { // it was not carried out, and err says why it cannot be
				q.Reply = wire.Reply{Status: wire.Classify(err), Err: err}
			}
		}
		return nil, err
	}
	batch = slices.DeleteFunc(slices.Clone(batch), func(q *Request) bool { return q.Step() == wire.Plain })
	if len(batch) == 0 {
		return nil, nil
	}
	first := make([]wire.Reply, len(batch))
	for i, q := range batch {
		first[i] = q.Reply
	}
	err := m.send(srv, batch)
	for i, q := range batch {
		q.Reply = then(q.Op, first[i], &q.Reply)
	}
	return batch, err
}

// then combines the two answers to a step that was sent twice. Between the two anything may
// have happened: the lock that was in the way was released, or has expired, and the same batch
// has carried out the steps before this one once more. So as a rule the later answer is the one
// that is true now.
//
//   - acquire, extend: the later one. A refusal that became a grant has put the token there,
//     and a grant that became a refusal is no vote.
//   - raise: a yes stays a yes. The fence was stored in the time of its grant, whatever came
//     after.
//   - release, yield, leave: the later one must settle the release, since what it gives back
//     may have been granted again in between. If it does, "deleted" is reported rather than
//     "not there", which is what the second one finds.
//   - inspect: the later one, if it is no error.
//
// The answer of a node that did not look at the lock at all changes nothing.
func then(step wire.Op, r wire.Reply, later *wire.Reply) wire.Reply {
	switch {
	case step == wire.Release || step == wire.Leave:
		if r.Status == wire.Granted && later.Status.SettlesRelease() {
			return r
		}
		return *later
	case blind(later) && !blind(&r),
		step == wire.Raise && r.Status == wire.Granted,
		step == wire.Inspect && r.Err == nil && later.Err != nil:
		return r
	}
	return *later
}

// blind reports whether the node has not looked at the lock: it did not run the script, or
// the script found that the request came too late.
func blind(r *wire.Reply) bool {
	switch r.Status {
	case wire.Late, wire.Loading, wire.Busy:
		return true
	case wire.Denied:
		return !r.Raised()
	}
	return redis.HasErrorPrefix(r.Err, "NOSCRIPT")
}
