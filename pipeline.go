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

	// load gives the server the scripts.
	load() error
}

// carryOut is exec for a server that may have dropped its scripts.
func carryOut(p pipeliner, batch []*request) error {
	err := p.pipeline(batch)
	if err != nil {
		return err
	}
	for range maxReloads {
		i := slices.IndexFunc(batch, (*request).unknownScript)
		if i < 0 {
			break
		}
		batch = batch[i:]
		if err := reload(p, batch); err != nil {
			return err
		}
	}
	return nil
}

// maxReloads is how often a batch loads the scripts: somebody may flush them again
// in between, but nobody does that all the time.
const maxReloads = 5

func (q *request) unknownScript() bool {
	return q.reply.err != nil && redis.HasErrorPrefix(q.reply.err, "NOSCRIPT")
}

// reload loads the scripts into a server that has dropped them, and carries out
// the rest of a batch again from the first request that it did not know how to.
// All the rest, and not just those that failed: another client may have loaded
// the scripts in the middle of our pipeline, so a release may have been executed
// when its acquire was not, and the acquire must not come after it. Each step
// may be executed twice; whoever had an answer keeps it.
func reload(p pipeliner, batch []*request) error {
	if err := p.load(); err != nil {
		return err
	}
	first := make([]reply, len(batch))
	for i, q := range batch {
		first[i] = q.reply
	}
	err := p.pipeline(batch)
	for i, q := range batch {
		if first[i].err == nil {
			q.reply = first[i]
		}
	}
	return err
}

// A standIn is a server that is a model of one.
type standIn struct {
	name  string
	model seam.Server
	calls []seam.Call
}

func (s *standIn) addr() string                                       { return s.name }
func (s *standIn) connect(ctx context.Context) (time.Duration, error) { return s.model.Connect(ctx) }
func (s *standIn) load() error                                        { return s.model.Load() }
func (s *standIn) interrupt()                                         { s.model.Interrupt() }
func (s *standIn) exec(batch []*request) error                        { return carryOut(s, batch) }

func (s *standIn) fork() server { return &standIn{name: s.name, model: s.model.Fork()} }

func (s *standIn) pipeline(batch []*request) error {
	s.calls = s.calls[:0]
	for _, q := range batch {
		c := q.claim
		s.calls = append(s.calls, seam.Call{Op: seam.Op(q.op), Key: c.key, Token: c.token, TTL: c.ttl})
	}
	err := s.model.Exec(s.calls)
	for i, q := range batch {
		q.reply = parse(q.op, s.calls[i].Value, s.calls[i].Err)
	}
	return err
}
