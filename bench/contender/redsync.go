package contender

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const redsyncModule = "github.com/go-redsync/redsync/v4"

var redsyncStock = Contender{
	Name:   Reference,
	Module: redsyncModule,
	Slow:   true,
	Note:   "as its README uses it; held locks are extended by a ticker goroutine each",
	Open:   func(c Config) (Locker, error) { return openRedsync(c), nil },
}

// WithFailFast is what redsync itself offers against slow nodes, so it gets a
// row of its own instead of being hidden behind the slower default.
var redsyncFailFast = Contender{
	Name:   "redsync-failfast",
	Module: redsyncModule,
	Note:   "redsync with WithFailFast(true): returns at the quorum, leaves the other goroutines running",
	Open: func(c Config) (Locker, error) {
		return openRedsync(c, redsync.WithFailFast(true)), nil
	},
}

type redsyncLocker struct {
	rs      *redsync.Redsync
	options []redsync.Option
	clients []*redis.Client
	renewal time.Duration
}

func openRedsync(c Config, extra ...redsync.Option) *redsyncLocker {
	clients := dial(c.Addrs)
	pools := make([]redsyncredis.Pool, len(clients))
	for i, client := range clients {
		pools[i] = goredis.NewPool(client)
	}
	return &redsyncLocker{
		rs:      redsync.New(pools...),
		options: append([]redsync.Option{redsync.WithExpiry(c.TTL)}, extra...),
		clients: clients,
		renewal: c.Renewal,
	}
}

// A redsyncLock is the library's own handle with a method Release.
type redsyncLock redsync.Mutex

var errNotReleased = errors.New("not released on a quorum")

func (l *redsyncLock) Release(ctx context.Context) error {
	ok, err := (*redsync.Mutex)(l).UnlockContext(ctx)
	if !ok && err == nil {
		return errNotReleased
	}
	return err
}

func (l *redsyncLocker) Lock(ctx context.Context, name string) (Lock, error) {
	m := l.rs.NewMutex(name, l.options...)
	if err := m.TryLockContext(ctx); err != nil {
		return nil, err
	}
	return (*redsyncLock)(m), nil
}

func (l *redsyncLocker) Hold(ctx context.Context, name string) (Lock, error) {
	m := l.rs.NewMutex(name, l.options...)
	if err := m.TryLockContext(ctx); err != nil {
		return nil, err
	}
	return keep((*redsyncLock)(m), l.renewal, func(ctx context.Context) error {
		_, err := m.ExtendContext(ctx)
		return err
	}), nil
}

func (l *redsyncLocker) Close() error { return closeAll(l.clients) }
