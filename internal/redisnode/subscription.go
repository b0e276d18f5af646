package redisnode

import (
	"context"
	"errors"
	"net"
	"time"
)

// pingAfter is how long a subscription may be silent before a PING checks that it still stands.
const pingAfter = 10 * time.Second

// Subscribe subscribes to a channel, over a connection of its own, and blocks until that breaks or ctx ends; its error is
// never nil. In the same goroutine it calls ready when the subscription stands, and onMessage with each message. go-redis
// makes the connection and greets the server; Subscribe reads what follows without it.
func (s *Server) Subscribe(ctx context.Context, channel string, ready func(), onMessage func(string)) error {
	other := &Server{options: s.options, greet: s.greet}
	other.credentials.given = s.credentials.given
	return other.subscribe(ctx, channel, ready, onMessage)
}

func (s *Server) subscribe(ctx context.Context, channel string, ready func(), onMessage func(string)) error {
	stop := context.AfterFunc(ctx, s.Interrupt)
	defer stop()
	defer s.Interrupt()
	if err := s.open(ctx, s.greet); err != nil {
		return explained(err)
	}
	conn := s.socket.Load()
	if conn == nil {
		return ctx.Err()
	}
	s.receive(conn)
	if err := s.ask(*conn, "subscribe", channel); err != nil {
		return err
	}
	for asked := false; ; {
		if err := (*conn).SetReadDeadline(time.Now().Add(pingAfter)); err != nil {
			return err
		}
		err := s.in.Wait()
		var silence net.Error
		if !asked && errors.As(err, &silence) && silence.Timeout() {
			asked = true
			if err := s.ask(*conn, "ping"); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		asked = false
		said, err := s.in.Reply()
		if err != nil {
			return err
		}
		switch m, _ := said.([]any); {
		case len(m) != 3: // the reply to the PING
		case m[0] == "subscribe":
			ready()
		case m[0] == "message":
			if text, ok := m[2].(string); ok {
				onMessage(text)
			}
		}
	}
}

// ask sends a command over conn, and does not wait for the reply.
func (s *Server) ask(conn net.Conn, name string, args ...string) error {
	s.out.Reset()
	s.out.Begin(name)
	for _, arg := range args {
		s.out.String(arg)
	}
	s.out.End()
	if err := conn.SetWriteDeadline(time.Now().Add(s.options.WriteTimeout)); err != nil {
		return err
	}
	_, err := conn.Write(s.out.Bytes())
	return err
}
