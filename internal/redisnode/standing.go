package redisnode

import (
	"context"
	"net"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

const (
	// looksAfter is how long a connection may be unused before Refresh looks at its socket.
	looksAfter = time.Second

	// pingsAfter is how long it may be unused before a look is not enough: a firewall may have dropped it silently.
	pingsAfter = 10 * time.Second
)

// Refresh checks the connection if it has not been used for a while, and replaces it, before ctx ends, if it is broken
// or outdated (Outdated). After an error there is no usable connection. What a server, or something on the way, does to
// idle connections must not cost the next lock a vote. The check comes before the batch, since a batch that was sent
// over a broken connection could not be sent again: the server may have carried it out (NO_RESEND in docs/model).
func (s *Server) Refresh(ctx context.Context) error {
	conn := s.socket.Load()
	if conn == nil {
		return net.ErrClosed // Interrupt
	}
	if s.Outdated() || !s.stands(conn, time.Since(s.last)) {
		if err := s.open(ctx, s.onConnect); err != nil {
			return explained(err)
		}
		if conn = s.socket.Load(); conn == nil {
			return net.ErrClosed
		}
	}
	s.receive(conn)
	return nil
}

// Outdated reports whether the connection is to be replaced as soon as no reply is owed over it: its lifetime is over,
// there are later credentials, or its server takes no writes any more.
func (s *Server) Outdated() bool {
	return s.stale.Load() || !s.until.IsZero() && time.Now().After(s.until) || s.credentials.outdated()
}

// A sight is what a look at a connection shows.
type sight uint8

const (
	blind  sight = iota // nothing: it has no socket that can be looked at
	silent              // the socket stands, and nothing has arrived
	broken              // it has ended, or something has arrived that nothing had asked for
)

// stands reports whether conn, unused for that long, still works (by its socket, or a PING); false: replace it.
func (s *Server) stands(conn *net.Conn, unused time.Duration) bool {
	if unused <= looksAfter {
		return true
	}
	saw := look(*conn)
	if saw == silent && unused <= pingsAfter {
		return true
	}
	return saw != broken && s.pings(conn)
}

// pings reports whether the server answers a PING over conn in a part of s.round, the time for which a caller waits; false:
// replace conn in the rest. If the server only hangs, that is harmless: a request would get no answer over conn either.
func (s *Server) pings(conn *net.Conn) bool {
	s.receive(conn)
	if err := (*conn).SetDeadline(time.Now().Add(min(4*s.trip+100*time.Millisecond, 2*s.trip+s.round/4))); err != nil {
		return false
	}
	if _, err := (*conn).Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return false
	}
	_, err := s.in.Reply()
	return (err == nil || wire.Classify(err) != wire.Denied && wire.IsReply(err)) && s.in.Done() == nil
}
