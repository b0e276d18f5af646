package realarena

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/script"
)

// A spy subscribes to all that a node publishes to waiters, and publishes it again, or forged
// messages. An ACL denies it everything else.
type spy struct {
	client *redis.Client
	sub    *redis.PubSub
	over   sync.WaitGroup

	mu   sync.Mutex
	said []model.Said
}

func newSpy(addr string) *spy {
	s := &spy{client: redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1})}
	s.sub = s.client.PSubscribe(context.Background(), script.WakeChannel+"*")
	s.over.Go(func() {
		for m := range s.sub.Channel() { // go-redis makes a broken subscription anew
			s.mu.Lock()
			s.said = append(s.said, model.Said{Channel: m.Channel, Message: m.Payload})
			s.mu.Unlock()
		}
	})
	return s
}

// say makes the spy publish. If the node does not accept the message, it is lost.
func (s *spy) say(draw func([]model.Said, []string, int64) []model.Said) {
	ctx := context.Background()
	now, err := s.client.Time(ctx).Result()
	if err != nil {
		return
	}
	channels, _ := s.client.PubSubChannels(ctx, script.WakeChannel+"*").Result()
	for i, c := range channels {
		channels[i] = strings.TrimPrefix(c, script.WakeChannel)
	}
	s.mu.Lock()
	said := slices.Clone(s.said)
	s.mu.Unlock()
	_, _ = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, m := range draw(said, channels, now.UnixMicro()) {
			p.Publish(ctx, m.Channel, m.Message)
		}
		return nil
	})
}

func (s *spy) close() {
	_ = s.sub.Close()
	s.over.Wait()
	_ = s.client.Close()
}
