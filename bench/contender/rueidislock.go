package contender

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislock spreads 2n-1 keys over one server, or over one cluster; it has no
// mode for independent servers. With one server its README asks for
// KeyMajority 1, and for NoLoopTracking from Redis 7.0.5 on.
var rueidisLock = Contender{
	Name:   "rueidislock",
	Module: "github.com/redis/rueidis",
	Single: true,
	Note:   "one node, no quorum: a fifth of the work; its own client, renews by itself",
	Open: func(c Config) (Locker, error) {
		l, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: c.Addrs[:1]},
			KeyMajority:    1,
			NoLoopTracking: true,
			KeyValidity:    c.TTL,
			ExtendInterval: c.Renewal,
		})
		if err != nil {
			return nil, err
		}
		return rueidisLocker{l}, nil
	},
}

type rueidisLocker struct{ rueidislock.Locker }

// A rueidisHeld is the cancel function that ends a hold; it returns when the
// key has been deleted.
type rueidisHeld context.CancelFunc

func (h rueidisHeld) Release(context.Context) error {
	h()
	return nil
}

func (l rueidisLocker) Lock(ctx context.Context, name string) (Lock, error) {
	_, cancel, err := l.TryWithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return rueidisHeld(cancel), nil
}

// Hold is Lock: every lock of rueidislock is renewed.
func (l rueidisLocker) Hold(ctx context.Context, name string) (Lock, error) {
	return l.Lock(ctx, name)
}

func (l rueidisLocker) Close() error {
	l.Locker.Close()
	return nil
}
