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
