package main

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
)

// The code of docs/from-redsync.md, which quotes it from here on. TestMigration runs its work
// through these functions.

// withRedsync is the old code: the lock is not renewed, and work is not told of its end.
func withRedsync(ctx context.Context, rs *redsync.Redsync, name string, work func(context.Context) error) error {
	m := rs.NewMutex(name, redsync.WithExpiry(5*time.Second))
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	defer m.UnlockContext(context.WithoutCancel(ctx))
	return work(ctx)
}

// withRedlock is the new code.
func withRedlock(ctx context.Context, lk *redlock.Locker, name string, work func(context.Context, *redlock.Lock) error) error {
	return lk.Do(ctx, name, work)
}

// rollout opens a Locker for the time in which redsync is on the same nodes.
func rollout(clients []*redis.Client) (*redlock.Locker, error) {
	return redlock.New(clients, &redlock.Options{
		TTL:    5 * time.Second,
		MaxTTL: 30 * time.Second, // the longest TTL or expiry of any client, redsync's included, now and later
		// No Prefix and no Separator: the key is the name, as it is to redsync.
	})
}
