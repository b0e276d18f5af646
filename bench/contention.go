package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/bench/contender"
	"github.com/redis/go-redis/v9"
)

// A waiterGroup has the callers of one process that wait, each for a name of its own.
type waiterGroup struct {
	all    sync.WaitGroup
	cancel context.CancelFunc
	served atomic.Int64
}

// settling is for how long the callers wait before they are measured.
const settling = 2 * time.Second

func waiterName(prefix string, i int) string { return prefix + strconv.Itoa(i) + nameEnd }

// gather makes the callers wait, and measures what the process uses in addition.
func gather(ctx context.Context, locker contender.Waiter, o order) (*waiterGroup, sample, error) {
	c := &waiterGroup{}
	waiting, cancel := context.WithDeadline(ctx, o.Until)
	c.cancel = cancel
	names := make([]string, o.Most)
	for i := range names {
		names[i] = waiterName(o.Name, i)
	}
	before := takeFootprint()
	for _, name := range names {
		c.all.Go(func() {
			lock, err := locker.Wait(waiting, name)
			if err == nil {
				err = lock.Release(ctx)
			}
			if err == nil {
				c.served.Add(1)
			}
		})
	}
	if err := sleep(ctx, settling); err != nil {
		return c, nil, err
	}
	after := takeFootprint()
	n := float64(o.Most)
	return c, sample{
		"heap": (after.heap - before.heap) / n, "stack": (after.stack - before.stack) / n,
		"goroutines": after.goroutines - before.goroutines - n,
	}, nil
}

// scatter returns when all callers have had their lock or given up.
func (c *waiterGroup) scatter(ctx context.Context) (sample, error) {
	if c == nil {
		return nil, fmt.Errorf("there are no waiters")
	}
	defer c.cancel()
	c.all.Wait()
	return sample{"served": float64(c.served.Load())}, ctx.Err()
}

// manyNames makes one process wait for many names that another one holds.
func (w *waits) manyNames(ctx context.Context) (*table, error) {
	s, err := w.interleave(ctx, "waiting, many names", rows("one process"), func(ctx context.Context, _ contender.Contender) (sample, error) {
		got := sample{"waiters": float64(w.waitedFor)}
		return got, w.with(ctx, ourName, w.fleet.addrs(), 1, func(all *workers) error { return w.measureManyNames(ctx, all, got) })
	})
	if err != nil {
		return nil, err
	}
	return &table{
		title: "waiting, many names",
		text: fmt.Sprintf("One process waits for names that another one has. It is looked at after %v; "+
			"then the other one releases them all.", settling),
		head: "redlock, in",
		columns: []column{
			median("waiters, each for a name of its own", "waiters", count),
			worst("subscriptions on a node, at most (wanted: 1)", "subscriptions", count),
			worst("goroutines beyond the callers'", "goroutines", count),
			median("heap B/waiter", "heap", count),
			median("stack B/waiter", "stack", count),
			median("commands/s and waiter", "commands", decimal),
			total("served in the end", "served", count),
			median("all served after", "after", duration),
		},
		series: s,
		notes: []string{
			"Goroutines are those that were not there before: some listen, five at the nodes. Stack is mostly that of the callers' own goroutines.",
			"Commands are EVALSHA and EVAL of the process, on all nodes.",
		},
	}, nil
}

func (w *waits) measureManyNames(ctx context.Context, all *workers, got sample) (err error) {
	clients := make([]*redis.Client, nodes)
	for i, addr := range w.fleet.addrs() {
		clients[i] = redis.NewClient(&redis.Options{Addr: addr})
		defer clients[i].Close()
	}
	holder, err := redlock.New(clients, &redlock.Options{TTL: 6 * w.ttl})
	if err != nil {
		return err
	}
	defer func() { _ = holder.Close() }()
	prefix := freshPrefix()
	locks := make([]contender.Lock, w.waitedFor)
	for i := range locks {
		if locks[i], err = holder.TryAcquire(ctx, waiterName(prefix, i)); err != nil {
			return err
		}
	}
	o := w.one(taskGather, ourName)
	o.Name, o.Most, o.Until = prefix, w.waitedFor, time.Now().Add(6*w.ttl)
	answers, err := all.all(func(int) order { return o })
	if err != nil {
		return err
	}
	for _, figure := range []string{"heap", "stack", "goroutines"} {
		got[figure] = answers[0].Sample[figure]
	}
	for _, node := range w.fleet.watch {
		list, err := node.Do(ctx, "client", "list", "type", "pubsub").Text()
		if err != nil {
			return err
		}
		got["subscriptions"] = max(got["subscriptions"], subscriptions(list))
	}
	before, err := w.fleet.sent(ctx)
	if err != nil {
		return err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	after, err := w.fleet.sent(ctx)
	if err != nil {
		return err
	}
	got["commands"] = (after["evalsha"] + after["eval"] - before["evalsha"] - before["eval"]) / float64(w.waitedFor)
	begin := time.Now()
	release(locks)
	o.Task = taskScatter
	if answers, err = all.all(func(int) order { return o }); err == nil {
		got["served"], got["after"] = answers[0].Sample["served"], float64(time.Since(begin))
	}
	return err
}

// subscriptions adds up the sub= and psub= of CLIENT LIST.
func subscriptions(list string) (sum float64) {
	for _, field := range strings.Fields(list) {
		name, value, _ := strings.Cut(field, "=")
		if name == "sub" || name == "psub" || name == "ssub" {
			n, _ := strconv.Atoi(value)
			sum += float64(n)
		}
	}
	return sum
}
