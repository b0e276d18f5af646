package realarena

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/sim"
)

// An ownProcess is this process. Its faults come from outside.
type ownProcess struct {
	sim.Chance // but for the token
	name       string
	addrs      []string
	given      []string // nil: all
	asking     sync.Mutex
	tokens     atomic.Int64
	scales     atomic.Pointer[func() []int] // of its Locker
	direct     []*redis.Client              // for looking for tokens
	clients    []*redis.Client
}

// Token has the process's name in it: so keys that a killed process has left behind can be recognised.
func (p *ownProcess) Token() string { return fmt.Sprintf("%s.%d", p.name, p.tokens.Add(1)) }

func (p *ownProcess) Locker(opts *redlock.Options) (*redlock.Locker, error) {
	replace.In(opts, replace.Parts{Host: p, Weigh: func(lanes func() []int) { p.scales.Store(&lanes) }})
	given := p.given
	if given == nil {
		given = p.addrs
	}
	urls := make([]string, len(given))
	for i, addr := range given {
		urls[i] = "redis://" + addr
	}
	return redlock.Connect(urls, opts)
}

// Addrs lists the nodes by the addresses of their proxies, which are those of all clients.
func (p *ownProcess) Addrs() []string { return p.addrs }

func (p *ownProcess) Give(addrs []string) { p.given = addrs }

func (p *ownProcess) Lanes() []int {
	if lanes := p.scales.Load(); lanes != nil {
		return (*lanes)()
	}
	return nil
}

// Holders asks all nodes at once, through their proxies.
func (p *ownProcess) Holders(key, token string) (has, silent int) {
	p.asking.Lock()
	if p.direct == nil {
		for i := range p.addrs {
			p.direct = append(p.direct, p.stranger(i, client.PlainPatience))
		}
	}
	p.asking.Unlock()
	answers := make([]error, len(p.addrs))
	var all sync.WaitGroup
	for i, c := range p.direct {
		all.Go(func() {
			found, err := c.Get(context.Background(), key).Result()
			if answers[i] = err; err == nil && found != token {
				answers[i] = redis.Nil
			}
		})
	}
	all.Wait()
	for _, err := range answers {
		switch {
		case err == nil:
			has++
		case !errors.Is(err, redis.Nil):
			silent++
		}
	}
	return has, silent
}

// stranger is a connection apart from the Locker's, which waits for an answer for this long.
func (p *ownProcess) stranger(node int, patience time.Duration) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: p.addrs[node], Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
	})
	p.clients = append(p.clients, c)
	return c
}

func (p *ownProcess) Plain() []client.ForeignNode { return p.Foreign(client.PlainPatience) }

func (p *ownProcess) Foreign(patience time.Duration) []client.ForeignNode {
	nodes := make([]client.ForeignNode, len(p.addrs))
	for i := range p.addrs {
		nodes[i] = client.ForeignRedis{Client: p.stranger(i, patience)}
	}
	return nodes
}

func (p *ownProcess) close() {
	for _, c := range p.clients {
		_ = c.Close()
	}
}

func (p *ownProcess) Pass(int, int) {}

func (p *ownProcess) Hold(time.Duration, bool) {}

func (p *ownProcess) Skew(time.Duration) {}

func (p *ownProcess) Real(t time.Time) time.Time { return t }

func (p *ownProcess) Crash() {}
