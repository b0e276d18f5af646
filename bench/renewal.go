package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// Enough to fill connection pools before the first reading as well as while the
// locks are taken, so that pools do not count for held locks.
const takers = 32

func renewal(ctx context.Context, e *env) ([]*table, error) {
	s, err := e.interleave(ctx, "renewal", e.contenders, e.holding)
	if err != nil {
		return nil, err
	}
	remarks := append([]string{
		"Held at the end: the share of locks whose key is on a majority of nodes (on the one node, for contenders with one) when the window is over; " +
			"by then an unrenewed lock has expired.",
		"Heap is live after a collection, less what there was before the first lock; stack likewise.",
		"Commands include those that scripts execute.",
	}, notes(e.contenders)...)
	return []*table{{
		title: "renewal",
		text: fmt.Sprintf("%d locks, taken over one period of %v and renewed every such period; one more to settle, then CPU is taken over two.",
			e.held, e.renewal().Round(time.Millisecond)),
		columns: []column{
			median("heap B/lock", "heap", count),
			median("stack B/lock", "stack", count),
			median("goroutines/lock", "goroutines", decimal),
			median("client CPU/s", "client", duration),
			versus("client CPU ÷ redsync", "client"),
			median("servers CPU/s", "servers", duration),
			median("commands/s", "commands", count),
			median("held at the end", "held", percent),
			total("failed to lock", "failed", count),
		},
		series: s,
		notes:  remarks,
	}}, nil
}

// holding measures one contender that holds e.held locks.
func (e *env) holding(ctx context.Context, c contender.Contender) (sample, error) {
	got := sample{}
	l := load{callers: takers, window: e.window}
	err := e.with(ctx, c, e.fleet.addrs(), l, func(locker contender.Locker) error {
		prefix := freshPrefix()
		locks := make([]contender.Lock, e.held)
		names := make([]string, e.held)
		for i := range names {
			names[i] = prefix + strconv.Itoa(i) + nameEnd
		}
		before := takeFootprint()
		n, err := hold(ctx, locker, names, locks, e.renewal())
		defer release(locks)
		if err != nil {
			return err
		}
		if err := sleep(ctx, e.renewal()); err != nil {
			return err
		}
		after := takeFootprint()
		got["failed"] = float64(e.held) - n
		got["heap"] = (after.heap - before.heap) / n
		got["stack"] = (after.stack - before.stack) / n
		got["goroutines"] = (after.goroutines - before.goroutines) / n

		start, err := read(ctx, e.fleet)
		if err != nil {
			return err
		}
		if err := sleep(ctx, 2*e.renewal()); err != nil {
			return err
		}
		u, err := start.since(ctx, e.fleet)
		if err != nil {
			return err
		}
		seconds := u.elapsed.Seconds()
		got["client"] = float64(u.client) / seconds
		got["servers"] = u.servers.cpu * float64(time.Second) / seconds
		got["commands"] = u.servers.commands / seconds

		quorum := nodes/2 + 1
		if c.Single {
			quorum = 1
		}
		held, err := e.fleet.heldOn(ctx, prefix, quorum)
		got["held"] = float64(held) / n
		return err
	})
	return got, err
}

// hold takes all names over one period. Taken all at once they would all be
// renewed at once too, one period later and ever after, and the figures would
// be those of that burst or of the silence between.
//
// It returns how many it got; some contenders fail a free lock now and then on a
// busy machine, and the figures of the others still stand.
func hold(ctx context.Context, locker contender.Locker, names []string, locks []contender.Lock, period time.Duration) (got float64, err error) {
	start := time.Now()
	var all sync.WaitGroup
	failed := make([]error, len(names))
	for t := range takers {
		all.Go(func() {
			for i := t; i < len(names); i += takers {
				due := start.Add(period * time.Duration(i) / time.Duration(len(names)))
				if failed[i] = sleep(ctx, time.Until(due)); failed[i] == nil {
					locks[i], failed[i] = locker.Hold(ctx, names[i])
				}
			}
		})
	}
	all.Wait()
	for _, f := range failed {
		if f == nil {
			got++
		} else {
			err = f
		}
	}
	if got > 0 {
		return got, nil
	}
	return 0, err
}

// release ignores an end of ctx: the contender's goroutines should not outlive
// the measurement.
func release(locks []contender.Lock) {
	var all sync.WaitGroup
	for t := range takers {
		all.Go(func() {
			for i := t; i < len(locks); i += takers {
				if locks[i] != nil {
					_ = locks[i].Release(context.Background())
				}
			}
		})
	}
	all.Wait()
}

// A footprint is what the process occupies.
type footprint struct{ heap, stack, goroutines float64 }

func takeFootprint() footprint {
	// The second collection frees what finalizers of the first let go.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{float64(m.HeapAlloc), float64(m.StackInuse), float64(runtime.NumGoroutine())}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
