package model

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Call is one step at one node, with what the node says: Value is the reply of
// the step's script in internal/script, as go-redis gives it, unless there is an
// Err. An error of the server's is a [redis.Error]; any other means that the
// connection failed.
type Call struct {
	Op    wire.Op
	Keys  []string
	Modes string // to hold the keys; see wire.Mode
	Token string
	TTL   time.Duration

	// Of a lock that is one slot of several: how many there are, and which one it is,
	// from 1.
	Slots, Slot int

	Fence  int64  // Acquire: the number proposed; Raise: the one to store; Release: proposed for the next holder, 0: the lock is not handed over
	Latest int64  // Acquire, Yield: refused after this time of the node's, in microseconds; Acquire, 0: never
	Mark   string // what the node's marker is if it has not forgotten; "": not asked

	// Acquire, Leave, Yield: who waits; see internal/script/queue.lua.
	Ticket int64
	Waiter string
	Lease  time.Duration
	Owner  string
	Try    int64 // the attempt for which the waiter can be handed the lock; 0: it cannot

	Value any
	Err   error
}

// A server is a link as a lane uses it.
type server struct {
	*Link
	session lane.Session
	calls   []Call
}

// Client is what redlock.New takes for this node in this process.
func (n *Node) Client(h *Host) lane.Client {
	return lane.Client{Addr: n.Name, Open: func(patience time.Duration, s lane.Session) lane.Server {
		return &server{Link: n.Dial(h, patience), session: s}
	}}
}

func (s *server) Fork() lane.Server { return &server{Link: s.Link.Fork(), session: s.session} }

func (s *server) Connect(ctx context.Context) (time.Duration, error) {
	sent := s.session.Now()
	rtt, mark, err := s.Link.Connect(ctx, s.session.Hello())
	if err == nil {
		s.session.Joined(mark, sent)
	}
	return rtt, err
}

func (s *server) Join() error {
	sent := s.session.Now()
	mark, err := s.Link.Join(s.session.Hello())
	if err == nil {
		s.session.Joined(mark, sent)
	}
	return err
}

func (s *server) Exec(batch []*lane.Request) error {
	s.calls = s.calls[:0]
	for _, q := range batch {
		c := q.Claim
		call := Call{
			Op: q.Step(), Keys: c.Keys, Modes: c.Modes, Slots: int(c.Slots), Slot: int(c.Slot), Token: c.Token, TTL: c.TTL, Latest: q.Latest, Mark: q.Mark,
			Ticket: c.Ticket, Waiter: c.Waiter, Lease: wire.Milliseconds(c.Lease), Owner: s.session.Owner(), Try: c.Try,
		}
		switch q.Op {
		case wire.Acquire:
			call.Ticket, call.Fence = q.Ticket, q.Number
		case wire.Raise:
			call.Fence = c.Fence
		case wire.Release:
			call.Fence = q.Next
		}
		s.calls = append(s.calls, call)
	}
	err := s.Link.Exec(s.calls)
	for i, q := range batch {
		q.Read(s.calls[i].Value, s.calls[i].Err)
	}
	return err
}
