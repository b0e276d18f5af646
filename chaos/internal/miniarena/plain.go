package miniarena

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

func (p *process) Plain() []client.ForeignNode { return p.Foreign(client.PlainPatience) }

func (p *process) Foreign(patience time.Duration) []client.ForeignNode {
	nodes := make([]client.ForeignNode, len(p.world.nodes))
	for i, n := range p.world.nodes {
		o := p.options(n)
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = patience, patience, patience
		o.MaxRetries = -1
		o.Protocol = 2
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		o.Dialer = memredis.Quiet(o.Dialer)
		c := redis.NewClient(o)
		p.strangers = append(p.strangers, c)
		nodes[i] = client.ForeignRedis{Client: c}
	}
	return nodes
}
