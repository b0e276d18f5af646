package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/fresh"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/redis/go-redis/v9"
)

const nodes = 5

// A fleet has five servers, and for each a client that only watches.
type fleet struct {
	servers []*redisproc.Server
	watch   []*redis.Client
	once    sync.Once
}

// startFleet starts the servers, with markers of servers that have been running for a long time:
// the time for which a contender distrusts new ones is in no figure. They stop when ctx ends,
// whatever the contenders wait for then: a client that is stuck with a hung server returns when the
// server is gone.
func startFleet(ctx context.Context) (*fleet, error) {
	f := &fleet{}
	for i := range nodes {
		s, err := redisproc.Start("")
		if err != nil {
			f.stop()
			return nil, fmt.Errorf("redis-server %d of %d: %w", i+1, nodes, err)
		}
		f.servers = append(f.servers, s)
		f.watch = append(f.watch, watcher(s.Addr))
	}
	context.AfterFunc(ctx, f.stop)
	for _, w := range f.watch {
		// This also makes the watching connections, outside of any measurement.
		if err := fresh.Settle(ctx, w); err != nil {
			f.stop()
			return nil, err
		}
	}
	return f, nil
}

// watchFleet watches servers that another process has started.
func watchFleet(addrs []string) *fleet {
	f := &fleet{}
	for _, addr := range addrs {
		f.watch = append(f.watch, watcher(addr))
	}
	return f
}

func watcher(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1})
}

// stop may be called twice, by a signal and on the way out.
func (f *fleet) stop() {
	f.once.Do(func() {
		for _, s := range f.servers {
			s.Stop()
		}
		for _, w := range f.watch {
			_ = w.Close()
		}
	})
}

func (f *fleet) addrs() []string {
	addrs := make([]string, len(f.watch))
	for i, w := range f.watch {
		addrs[i] = w.Options().Addr
	}
	return addrs
}

// last returns the last n servers. Faults hit these, since contenders with a single node use the first.
func (f *fleet) last(n int) []*redisproc.Server { return f.servers[len(f.servers)-n:] }

// hang stops the last n servers, and returns a function that resumes them.
func (f *fleet) hang(n int) (resume func() error, err error) {
	resume = func() error {
		var all error
		for _, s := range f.last(n) {
			all = errors.Join(all, s.Resume())
		}
		return all
	}
	for _, s := range f.last(n) {
		if err := s.Hang(); err != nil {
			return nil, errors.Join(err, resume())
		}
	}
	return resume, nil
}

// renew empties the servers: keys that one contender keeps on purpose must not make them slower for the next.
func (f *fleet) renew(ctx context.Context) error {
	for _, w := range f.watch {
		if err := empty(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// empty deletes a server's data, and lets it vote at once all the same.
func empty(ctx context.Context, watch *redis.Client) error {
	if err := watch.FlushAll(ctx).Err(); err != nil {
		return err
	}
	return fresh.Settle(ctx, watch)
}

const quietBound = 3 * time.Second

// quiet waits until the servers have had nothing to do for a moment, bounded
// because a contender may have something to do in the background for ever.
func (f *fleet) quiet(ctx context.Context) error {
	const pause, enough = 20 * time.Millisecond, 3
	before, err := f.counters(ctx)
	for still, deadline := 0, time.Now().Add(quietBound); err == nil && still < enough && time.Now().Before(deadline); {
		time.Sleep(pause)
		var now counters
		now, err = f.counters(ctx)
		if now.minus(before).commands == float64(len(f.watch)) {
			still++
		} else {
			still = 0
		}
		before = now
	}
	return err
}
