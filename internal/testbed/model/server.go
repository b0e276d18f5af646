package model

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// A server makes a Link the lane.Server of a lane.
type server struct {
	*Link
	session lane.Session
	calls   []Call // the batch that Send sends next
}

// Parts returns what replaces parts of a Locker in this process: at returns the node at an address; nil: real servers.
func (h *Host) Parts(at func(addr string) *Node) replace.Parts {
	p := replace.Parts{Host: h, Weigh: h.weigh}
	if at != nil {
		p.Open = func(addr string, patience time.Duration, s lane.Session) lane.Server {
			return &server{Link: at(addr).Dial(h, patience), session: s}
		}
		p.RunID = func(addr string) (string, error) { return at(addr).answers() }
	}
	return p
}

// Named returns the node of this name; nil: there is none.
func Named(nodes []*Node, name string) *Node {
	for _, n := range nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Clients returns clients for redlock.New, which takes only the addresses from them.
func Clients(addrs []string) []redis.UniversalClient {
	clients := make([]redis.UniversalClient, len(addrs))
	for i, addr := range addrs {
		clients[i] = client{addr: addr}
	}
	return clients
}

type client struct {
	redis.UniversalClient // nil

	addr string
}

func (c client) Options() *redis.Options { return &redis.Options{Addr: c.addr} }

// answers returns the run_id of the node's process; an error: none would answer a client now.
func (n *Node) answers() (runID string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.down:
		return "", errRefused
	case n.hung || n.cut[requests] || n.cut[replies]:
		return "", errReset
	}
	return n.runID(), nil
}

func (s *server) Connect(ctx context.Context) error {
	sent := s.session.Now()
	mark, err := s.Link.Connect(ctx, s.session.Hello())
	if err == nil {
		s.session.Joined(mark, sent)
	}
	return err
}

func (s *server) Join() error {
	sent := s.session.Now()
	mark, err := s.Link.Join(s.session.Hello())
	if err == nil {
		s.session.Joined(mark, sent)
	}
	return err
}

// Refresh does nothing: an idle connection stands as long as its node does not break it.
func (s *server) Refresh(context.Context) error { return nil }

func (s *server) Outdated() bool { return false }

func (s *server) Encode(batch []*lane.Request) {
	s.calls = s.calls[:0]
	for _, q := range batch {
		c := s.call(q, q.Step())
		c.Native = q.Native && s.node.native
		s.calls = append(s.calls, c)
	}
}

func (s *server) Send() error {
	s.Link.Send(s.calls)
	return nil
}

// Receive waits for the reply to the oldest message, which the node has owed for ago, and gives each request of its
// batch the answer. An error means that the link is broken, and the unanswered requests have none.
func (s *server) Receive(batch []*lane.Request, ago time.Duration) (unanswered []*lane.Request, err error) {
	calls, err := s.Link.Receive(ago)
	if calls == nil {
		return batch, err
	}
	for i, q := range batch {
		c := &calls[i]
		if q.Shown = ""; c.Shown != nil {
			q.Shown = c.Shown.Marker
		}
		switch {
		case err != nil && c.Err == err:
			unanswered = append(unanswered, q)
		case c.Plain != nil:
			q.ReadPlain(c.Plain)
		case c.Said != nil:
			q.ReadNative(c.Said)
		default:
			q.Read(c.Value, c.Err)
		}
	}
	return unanswered, err
}

// call returns the Call by which a request's step is carried out.
func (s *server) call(q *lane.Request, step wire.Op) Call {
	c := q.Claim
	call := Call{
		Op: step, Keys: c.Keys, Modes: c.Modes, Slots: int(c.Slots), Slot: int(c.Slot), Token: c.Token, TTL: c.TTL, Latest: q.Latest, Mark: q.Mark,
		Ticket: c.Ticket, Waiter: c.Waiter, Lease: wire.Milliseconds(c.Lease), Args: q.Args,
	}
	switch q.Op {
	case wire.Acquire:
		call.Ticket, call.Fence = q.Ticket, q.Number
	case wire.Release:
		call.Broken = wire.Milliseconds(c.Broken)
	case wire.Raise:
		call.Fence = c.Fence
	}
	return call
}
