package model

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// A server is a link as a lane uses it.
type server struct {
	*Link
	session lane.Session
	calls   []Call
}

// Parts are those of a Locker of this process, whose nodes are found by their addresses; nil: they are no models.
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

// Named returns the node with this name, or nil if there is none.
func Named(nodes []*Node, name string) *Node {
	for _, n := range nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Clients are for redlock.New, which takes the addresses from them.
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

// answers is what a client finds that only looks at what is there.
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

// Exec carries out a batch in one message; what a command without a script leaves open takes another
// one.
func (s *server) Exec(batch []*lane.Request) error {
	s.calls = s.calls[:0]
	for _, q := range batch {
		c := s.call(q, q.Step())
		c.Native = q.Native && s.node.native
		s.calls = append(s.calls, c)
	}
	err := s.Link.Exec(s.calls)
	for i, q := range batch {
		if q.Shown = ""; s.calls[i].Shown != nil {
			q.Shown = s.calls[i].Shown.Marker
		}
	}
	var next []*lane.Request // which have no reply yet; nil: nobody wants it
	var more []Call
	for i, q := range batch {
		switch c := &s.calls[i]; {
		case c.Plain != nil:
			q.ReadPlain(c.Plain)
		case c.Said == nil:
			q.Read(c.Value, c.Err)
		case err != nil:
			q.Read(nil, err)
		default:
			step, open := q.ReadNative(c.Said)
			if !open {
				continue
			}
			if more = append(more, s.call(q, step)); step == wire.Wake {
				q = nil
			}
			next = append(next, q)
		}
	}
	if err != nil || len(more) == 0 {
		return err
	}
	err = s.Link.Exec(more)
	for i, q := range next {
		if q == nil {
			continue
		}
		q.Read(more[i].Value, more[i].Err)
		if q.Shown = ""; more[i].Shown != nil {
			q.Shown = more[i].Shown.Marker
		}
	}
	return err
}

// call is the step of a request.
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
