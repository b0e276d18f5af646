package contender

import (
	"context"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

var bsmRedislock = Contender{
	Name:   "bsm/redislock",
	Module: "github.com/bsm/redislock",
	Single: true,
	Note:   "one node, no quorum: a fifth of the work; held locks are extended by the watchdog of its README",
	Open: func(c Config) (Locker, error) {
		clients := dial(c.Addrs[:1])
		return &bsmLocker{client: redislock.New(clients[0]), clients: clients, Config: c}, nil
	},
}

type bsmLocker struct {
	Config
	client  *redislock.Client
	clients []*redis.Client
}

func (l *bsmLocker) Lock(ctx context.Context, name string) (Lock, error) {
	lock, err := l.client.Obtain(ctx, name, l.TTL, nil)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

func (l *bsmLocker) Hold(ctx context.Context, name string) (Lock, error) {
	lock, err := l.client.Obtain(ctx, name, l.TTL, nil)
	if err != nil {
		return nil, err
	}
	return keep(lock, l.Renewal, func(ctx context.Context) error {
		return lock.Refresh(ctx, l.TTL, nil)
	}), nil
}

func (l *bsmLocker) Close() error { return closeAll(l.clients) }
