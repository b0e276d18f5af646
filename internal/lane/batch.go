package lane

import (
	"slices"

	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// carryOut is exec for a server that may have dropped its scripts, or its data.
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
		batch = batch[i:]
		if err := reload(srv, m, batch); err != nil {
			return err
		}
	}
	return nil
}

// maxReloads is how often a batch loads the scripts: somebody may flush them again
// in between, but nobody does that all the time.
const maxReloads = 5

// unknown reports whether the server did not know the script, or us: it was
// restarted, or lost its data, or only its scripts.
func (q *Request) unknown() bool {
	return q.Reply.Err != nil && (q.Reply.Err == wire.ErrForgot || redis.HasErrorPrefix(q.Reply.Err, "NOSCRIPT"))
}

// reload joins a server that has dropped scripts or marker, and carries out
// the rest of a batch again from the first request that it did not know how to.
// All the rest, and not just those that failed: another client may have loaded
// the scripts in the middle of our pipeline, so a release may have been executed
// when its acquire was not, and the acquire must not come after it. Each step
// may be executed twice; then says what its answers come to.
func reload(srv Server, m *incarnation, batch []*Request) error {
	if err := srv.Join(); err != nil {
		for _, q := range batch {
			if q.unknown() { // it was not carried out, and why it cannot be is news
				q.Reply = wire.Reply{Status: wire.Classify(err), Err: err}
			}
		}
		return err
	}
	first := make([]wire.Reply, len(batch))
	for i, q := range batch {
		first[i] = q.Reply
	}
	err := m.send(srv, batch)
	for i, q := range batch {
		q.Reply = then(q.Op, first[i], &q.Reply)
	}
	return err
}

// then gives what a step comes to that was sent twice and had these answers. Between the two
// anything may have happened: what had the lock is released, or has expired, and the same
// batch has carried out once more what comes before. So as a rule the later answer is the one
// that is true now.
//
//   - acquire, extend: the later one. A refusal that became a grant has put the token there,
//     and a grant that became a refusal is no vote.
//   - raise: a yes stays one. The number was stored in the time of its grant, whatever came
//     after.
//   - release, yield, leave: the later one must settle it, since what it gives back may have
//     been granted again in between. If it does, then "deleted" is told rather than "not
//     there", which is what the second one finds.
//   - inspect: the later one, if it is one.
//
// An answer of a node that did not look at the lock at all changes nothing.
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
// that found that it came too late.
func blind(r *wire.Reply) bool {
	switch r.Status {
	case wire.Late, wire.Loading, wire.Busy:
		return true
	case wire.Denied:
		return !r.Raised()
	}
	return redis.HasErrorPrefix(r.Err, "NOSCRIPT")
}
