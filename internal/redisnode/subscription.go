package redisnode

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// pingAfter is how long a subscription may be silent before a PING checks that it still stands.
const pingAfter = 10 * time.Second

// Subscribe subscribes to a channel until the connection breaks.
func (s *Server) Subscribe(ctx context.Context, channel string, ready func(), onMessage func(string)) error {
	stop := context.AfterFunc(ctx, s.Interrupt)
	defer stop()
	defer s.keep(nil)
	dialing, cancel := context.WithTimeout(ctx, s.options.DialTimeout)
	defer cancel()
	conn, err := s.dial(dialing, s.options.Network, s.options.Addr)
	if err != nil {
		return err
	}
	if s.ended.Load() { // Interrupt did not see this connection
		return ctx.Err()
	}
	only := &once{Conn: conn}
	o := *s.options
	o.OnConnect, o.Dialer = s.greet, only.dial
	o.DisableIdentity = true // it would cost each subscriber a round trip and two commands
	client := redis.NewClient(&o)
	defer client.Close()
	sub := client.Subscribe(ctx, channel)
	defer sub.Close()
	for asked := false; ; {
		m, err := sub.ReceiveTimeout(ctx, pingAfter)
		if broken := only.broken.Load(); broken != nil {
			return *broken
		}
		var silence net.Error
		switch {
		case err == nil:
		case !asked && errors.As(err, &silence) && silence.Timeout():
			asked = true
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			continue
		default:
			return err
		}
		asked = false
		switch m := m.(type) {
		case *redis.Subscription:
			ready()
		case *redis.Message:
			onMessage(m.Payload)
		}
	}
}

// A once is a connection that can be dialled once. go-redis makes a broken subscription anew by
// itself, without telling its caller, and logs it. So Read reports a timeout to go-redis when the
// connection breaks, and keeps the real error in broken.
type once struct {
	net.Conn
	given  atomic.Bool
	broken atomic.Pointer[error]
}

func (c *once) dial(context.Context, string, string) (net.Conn, error) {
	if c.given.Swap(true) {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (c *once) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	var silence net.Error
	if err != nil && !(errors.As(err, &silence) && silence.Timeout()) {
		c.broken.CompareAndSwap(nil, &err)
		err = &net.OpError{Op: "read", Err: context.DeadlineExceeded} // a timeout to go-redis
	}
	return n, err
}
