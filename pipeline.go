package redlock

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/seam"
	"github.com/redis/go-redis/v9"
)

// A pipeliner sends requests over a connection.
type pipeliner interface {
	// pipeline sends a batch and reads the replies. See server.exec for the error.
	pipeline(batch []*request) error

	// join asks the server who it is and gives it the scripts. What it says goes to
	// the node's memory.
	join() error
}

// carryOut is exec for a server that may have dropped its scripts, or its data.
func carryOut(p pipeliner, m *memory, batch []*request) error {
	err := m.send(p, batch)
	if err != nil {
		return err
	}
	for range maxReloads {
		i := slices.IndexFunc(batch, (*request).unknown)
		if i < 0 {
			break
		}
		batch = batch[i:]
		if err := reload(p, m, batch); err != nil {
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
func (q *request) unknown() bool {
	return q.reply.err != nil && (q.reply.err == errForgot || redis.HasErrorPrefix(q.reply.err, "NOSCRIPT"))
}

// reload joins a server that has dropped scripts or marker, and carries out
// the rest of a batch again from the first request that it did not know how to.
// All the rest, and not just those that failed: another client may have loaded
// the scripts in the middle of our pipeline, so a release may have been executed
// when its acquire was not, and the acquire must not come after it. Each step
// may be executed twice; reply.then says what its answers come to.
func reload(p pipeliner, m *memory, batch []*request) error {
	if err := p.join(); err != nil {
		for _, q := range batch {
			if q.unknown() { // it was not carried out, and why it cannot be is news
				q.reply = reply{outcome: classify(err), err: err}
			}
		}
		return err
	}
	first := make([]reply, len(batch))
	for i, q := range batch {
		first[i] = q.reply
	}
	err := m.send(p, batch)
	for i, q := range batch {
		q.reply = first[i].then(q.op, &q.reply)
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
func (r reply) then(step op, later *reply) reply {
	switch {
	case step == opRelease || step == opLeave:
		if r.outcome == Granted && later.outcome.settlesRelease() {
			return r
		}
		return *later
	case later.blind() && !r.blind(),
		step == opRaise && r.outcome == Granted,
		step == opInspect && r.err == nil && later.err != nil:
		return r
	}
	return *later
}

// blind reports whether the node has not looked at the lock: it did not run the script, or
// that found that it came too late.
func (r *reply) blind() bool {
	switch r.outcome {
	case Late, Loading, Busy:
		return true
	case Denied:
		return !r.raised()
	}
	return redis.HasErrorPrefix(r.err, "NOSCRIPT")
}

// A standIn is a server that is a model of one.
type standIn struct {
	name   string
	model  seam.Server
	memory *memory
	calls  []seam.Call
}

func (s *standIn) addr() string                { return s.name }
func (s *standIn) interrupt()                  { s.model.Interrupt() }
func (s *standIn) exec(batch []*request) error { return carryOut(s, s.memory, batch) }

func (s *standIn) vouches(mark string, micros, number int64, sent time.Time) bool {
	return s.memory.vouches(mark, micros, number, sent)
}

func (s *standIn) fork() server {
	return &standIn{name: s.name, model: s.model.Fork(), memory: s.memory}
}

func (s *standIn) hear(ctx context.Context, channel string, ready func(), heard func(string)) error {
	return s.model.Hear(ctx, channel, ready, heard)
}

func (s *standIn) connect(ctx context.Context) (time.Duration, error) {
	sent := s.memory.now()
	rtt, mark, err := s.model.Connect(ctx, s.memory.hello())
	if err == nil {
		s.memory.joined(mark, sent)
	}
	return rtt, err
}

func (s *standIn) join() error {
	sent := s.memory.now()
	mark, err := s.model.Join(s.memory.hello())
	if err == nil {
		s.memory.joined(mark, sent)
	}
	return err
}

func (s *standIn) pipeline(batch []*request) error {
	s.calls = s.calls[:0]
	for _, q := range batch {
		c := q.claim
		call := seam.Call{
			Op: seam.Op(q.step()), Keys: c.keys, Ways: c.ways, Slots: int(c.slots), Slot: int(c.slot), Token: c.token, TTL: c.ttl, Latest: q.latest, Mark: q.mark,
			Ticket: c.ticket, Waiter: c.waiter, Lease: milliseconds(c.lease), Owner: s.memory.opts.Owner, Try: c.try,
		}
		switch q.op {
		case opAcquire:
			call.Ticket, call.Fence = q.ticket, q.number
		case opRaise:
			call.Fence = c.fence
		case opRelease:
			call.Fence = q.next
		}
		s.calls = append(s.calls, call)
	}
	err := s.model.Exec(s.calls)
	for i, q := range batch {
		q.read(s.calls[i].Value, s.calls[i].Err)
	}
	return err
}
