package redisnode

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

// credentialsTimeout is how long the caller's provider of credentials may take: it may have to ask a server of its own.
const credentialsTimeout = 10 * time.Second

// credentials gives each new connection the user and the password of that moment. go-redis would ask a provider that
// reports changes (StreamingCredentialsProvider) only for connections of its pool, and wait for others without a bound.
type credentials struct {
	given *redis.Options

	changed atomic.Bool // the provider has reported later ones than subscribed returned last

	mu     sync.Mutex // protects what follows
	latest auth.Credentials
	cancel auth.UnsubscribeFunc
	ended  bool // end was called
}

// fill sets user and password in o to what the provider returns; without a provider it leaves them. The error is the
// provider's, or says that ctx has ended or credentialsTimeout is over: a provider that still runs is left to end by itself.
func (c *credentials) fill(ctx context.Context, o *redis.Options) error {
	g := c.given
	if g == nil || g.StreamingCredentialsProvider == nil && g.CredentialsProviderContext == nil && g.CredentialsProvider == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	type given struct {
		user, password string
		err            error
	}
	done := make(chan given, 1)
	go func() {
		var got given
		switch { // in go-redis's order
		case g.StreamingCredentialsProvider != nil:
			got.user, got.password, got.err = c.subscribed(g.StreamingCredentialsProvider)
		case g.CredentialsProviderContext != nil:
			got.user, got.password, got.err = g.CredentialsProviderContext(ctx)
		default:
			got.user, got.password = g.CredentialsProvider()
		}
		done <- got
	}()
	select {
	case got := <-done:
		o.Username, o.Password = got.user, got.password
		if got.err != nil {
			return fmt.Errorf("the provider of its credentials: %w", got.err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the provider of its credentials: %w", context.Cause(ctx))
	}
}

// subscribed returns the latest credentials of a provider that reports changes. The first call subscribes to it, and
// may block for as long as the provider does. It fails after end, or if the provider does.
func (c *credentials) subscribed(p auth.StreamingCredentialsProvider) (user, password string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return "", "", context.Canceled
	}
	if c.cancel == nil {
		c.mu.Unlock()
		first, cancel, err := p.Subscribe(c)
		c.mu.Lock()
		switch {
		case err != nil:
			return "", "", err
		case first == nil:
			return "", "", errors.New("it has none")
		}
		if c.latest == nil { // else the provider has reported later ones meanwhile
			c.latest = first
		}
		if c.cancel = cancel; c.ended && cancel != nil {
			_ = cancel()
		}
	}
	c.changed.Store(false)
	user, password = c.latest.BasicAuth()
	return user, password, nil
}

// OnNext is called by the provider with later credentials. The lane then replaces the connection before its next use:
// the server may end a connection that was made with old ones, at any moment.
func (c *credentials) OnNext(latest auth.Credentials) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest = latest
	c.changed.Store(true)
}

// OnError is called when the provider cannot get later credentials. The connection stands until the server ends it.
func (c *credentials) OnError(error) {}

// outdated reports whether the provider has reported later credentials than those of the connection.
func (c *credentials) outdated() bool { return c.changed.Load() }

// end unsubscribes from the provider, once and for good.
func (c *credentials) end() {
	c.mu.Lock()
	cancel := c.cancel
	first := !c.ended
	c.ended = true
	c.mu.Unlock()
	if first && cancel != nil {
		_ = cancel()
	}
}

// expiry returns when to replace a connection that was made at now: up to a tenth before the ConnMaxLifetime of the
// caller's client, which may be the lifetime of its credentials. Zero: never.
func (s *Server) expiry(now time.Time) time.Time {
	if s.lifetime <= 0 {
		return time.Time{}
	}
	return now.Add(s.lifetime - time.Duration(rand.Float64()*float64(s.lifetime/10)))
}
