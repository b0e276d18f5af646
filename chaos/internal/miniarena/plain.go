package miniarena

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

func (p *process) Plain() []client.PlainNode {
	nodes := make([]client.PlainNode, len(p.world.nodes))
	for i, n := range p.world.nodes {
		nodes[i] = p.stranger(n, plainPatience)
	}
	return nodes
}

func (p *process) Foreign(patience time.Duration) []client.ForeignNode {
	nodes := make([]client.ForeignNode, len(p.world.nodes))
	for i, n := range p.world.nodes {
		nodes[i] = p.stranger(n, patience)
	}
	return nodes
}

// stranger is a client of another library, which waits for an answer for this long.
func (p *process) stranger(n *node, patience time.Duration) plainRedis {
	o := p.options(n)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = patience, patience, patience
	o.MaxRetries = -1 // a SET NX that is sent twice finds its own key
	o.Protocol = 2
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.Dialer = memredis.Quiet(o.Dialer)
	c := redis.NewClient(o)
	p.strangers = append(p.strangers, c)
	return plainRedis{c}
}

const plainPatience = 50 * time.Millisecond

// A plainRedis is a node for a client of another library.
type plainRedis struct{ client *redis.Client }

func (n plainRedis) SetNX(ctx context.Context, key, token string, ttl time.Duration) (bool, error) {
	err := n.client.SetArgs(ctx, key, token, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

func (n plainRedis) CompareAndDelete(ctx context.Context, key, token string) error {
	const script = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	return n.client.Eval(ctx, script, []string{key}, token).Err()
}

func (n plainRedis) CompareAndExpire(ctx context.Context, key, token string, ttl time.Duration) (bool, error) {
	const script = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
	had, err := n.client.Eval(ctx, script, []string{key}, token, ttl.Milliseconds()).Int()
	return had == 1, err
}
