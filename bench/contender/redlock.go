package contender

import (
	"context"

	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
)

var ours = Contender{
	Name:   "redlock",
	Module: "github.com/quorumlock/redlock",
	Note:   "this library, default options, stock clients",
	Open: func(c Config) (Locker, error) {
		clients := dial(c.Addrs)
		l, err := redlock.New(clients, &redlock.Options{TTL: c.TTL})
		if err != nil {
			_ = closeAll(clients)
			return nil, err
		}
		return &redlockLocker{Locker: l, clients: clients}, nil
	},
}

type redlockLocker struct {
	*redlock.Locker
	clients []*redis.Client
}

func (l *redlockLocker) Lock(ctx context.Context, name string) (Lock, error) {
	lock, err := l.TryAcquire(ctx, name)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// Hold leaves the period to the library, which is the third of the TTL that
// Config.Renewal is set to as well.
func (l *redlockLocker) Hold(ctx context.Context, name string) (Lock, error) {
	lock, err := l.TryAcquire(ctx, name, redlock.Renewed())
	if err != nil {
		return nil, err
	}
	return lock, nil
}

func (l *redlockLocker) Close() error {
	err := l.Locker.Close()
	if cerr := closeAll(l.clients); err == nil {
		err = cerr
	}
	return err
}
