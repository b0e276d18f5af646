package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
)

const slowBy = 20 * time.Millisecond

// slow puts a proxy before every node, so that the way through a proxy is in
// the healthy figures too, and delays one of them; and then all.
func slow(ctx context.Context, e *env) ([]*table, error) {
	var proxies []*faultproxy.Proxy
	var addrs []string
	for _, addr := range e.fleet.addrs() {
		p, err := faultproxy.Listen(addr)
		if err != nil {
			return nil, err
		}
		defer p.Close()
		proxies = append(proxies, p)
		addrs = append(addrs, p.Addr())
	}
	one, err := oneSlow(ctx, e, proxies[len(proxies)-1], addrs)
	if err != nil {
		return nil, err
	}
	for _, p := range proxies {
		p.SetDelay(slowBy)
	}
	tables := []*table{one}
	for _, callers := range []int{1, 16, 256} {
		all, err := allSlow(ctx, e, addrs, callers)
		if err != nil {
			return nil, err
		}
		tables = append(tables, all)
	}
	return tables, nil
}

// allSlow measures many callers on names of their own, in round trips.
func allSlow(ctx context.Context, e *env, addrs []string, callers int) (*table, error) {
	l := load{callers: callers, window: e.window}
	s, err := e.interleave(ctx, fmt.Sprintf("slow, %d callers", callers), e.quorum(), func(ctx context.Context, c contender.Contender) (got sample, err error) {
		err = e.with(ctx, c, addrs, l, func(locker contender.Locker) error {
			t := l.ready(256).run(ctx, locker)
			lock, unlock := quantile(t.lock, .5), quantile(t.unlock, .5)
			got = sample{
				"rate": float64(len(t.lock)) / t.elapsed.Seconds(), "failed": float64(t.failed),
				"lock": lock, "unlock": unlock, "trips": lock / float64(slowBy),
			}
			return t.none()
		})
		return got, err
	})
	return &table{
		title: fmt.Sprintf("slow, all five at +20 ms, callers: %d", callers),
		text:  fmt.Sprintf("All nodes are reached through proxies in this process, which make every round trip %v longer. Every caller locks and unlocks names of its own.", slowBy),
		columns: []column{
			median("locks/s", "rate", count),
			median("lock p50", "lock", duration),
			within("lock p50 in round trips", "trips"),
			median("unlock p50", "unlock", duration),
			total("failed", "failed", count),
		},
		series: s,
	}, err
}

// oneSlow delays one node.
func oneSlow(ctx context.Context, e *env, far *faultproxy.Proxy, addrs []string) (*table, error) {
	cs := e.quorum()
	s, err := e.interleave(ctx, "slow", cs, func(ctx context.Context, c contender.Contender) (sample, error) {
		got := sample{}
		l := load{callers: 1, window: e.window}
		err := e.with(ctx, c, addrs, l, func(locker contender.Locker) error {
			if err := e.phase(ctx, locker, e.faulted, "healthy", got); err != nil {
				return err
			}
			far.SetDelay(slowBy)
			defer far.SetDelay(0)
			if err := e.phase(ctx, locker, e.faulted, "slow", got); err != nil {
				return err
			}
			got.compare("slow", "healthy")
			return nil
		})
		return got, err
	})
	if err != nil {
		return nil, err
	}
	return &table{
		title: "slow, one of five at +20 ms",
		text: fmt.Sprintf("All nodes are reached through proxies in this process, one of which makes every round trip %v longer. "+
			"One caller; up to %d cycles a phase or %v.", slowBy, e.faulted, faultWindows*e.window),
		columns: []column{
			median("cycles", "slow cycles", count),
			median("lock p50", "slow lock p50", duration),
			within("lock p50 ÷ healthy", "slow lock p50 ratio"),
			median("unlock p50", "slow unlock p50", duration),
			within("unlock p50 ÷ healthy", "slow unlock p50 ratio"),
			median("healthy lock p50", "healthy lock p50", duration),
			median("healthy unlock p50", "healthy unlock p50", duration),
			worst("goroutines added", "slow goroutines", count),
			total("failed", "slow failed", count),
		},
		series: s,
	}, nil
}
