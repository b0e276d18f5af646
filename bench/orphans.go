package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

const contendersOnOneKey = 8

// orphans looks for keys that a contender has set and that have no owner any more. Each keeps a
// node from granting until its TTL is over. The work comes in small rounds, so that leftovers
// cannot expire before they are counted.
func orphans(ctx context.Context, e *env) ([]*table, error) {
	s, err := e.interleave(ctx, "orphans", e.contenders, func(ctx context.Context, c contender.Contender) (sample, error) {
		got := sample{}
		if err := e.orphansAlone(ctx, c, got); err != nil {
			return got, err
		}
		return got, e.orphansContended(ctx, c, got)
	})
	if err != nil {
		return nil, err
	}
	return []*table{{
		title: "orphans",
		text: fmt.Sprintf("After each part the servers are left alone until nothing moves (at most %v), then the keys are counted, "+
			"well before the TTL of %v.", quietBound, e.ttl),
		columns: []column{
			total("cycles alone", "alone", count),
			total("lock keys left", "alone keys", count),
			worst("on one node, at most", "alone node", count),
			total("failed", "alone failed", count),
			total("contended rounds", "contended", count),
			total("rounds with a holder", "won", count),
			total("lock keys left", "contended keys", count),
			worst("on one node, at most", "contended node", count),
			total("other keys left", "other", count),
			median("counters kept a round", "kept", count),
		},
		series: s,
		notes: []string{
			fmt.Sprintf("Contended: %d lockers with clients of their own make one attempt each on the same name at the same moment; "+
				"the one that gets it releases at once. The next round begins when all are done.", contendersOnOneKey),
			"Other keys begin with the name of a lock, and are none and no counter; all nodes together.",
			"Counters are kept on purpose: a table of fixed size on each node, which all names share; all nodes together.",
		},
	}}, nil
}

func (e *env) orphansAlone(ctx context.Context, c contender.Contender, got sample) error {
	l := load{callers: 1, window: e.window, cycles: e.orphans}
	return e.with(ctx, c, e.fleet.addrs(), l, func(locker contender.Locker) error {
		begin := time.Now()
		l.window = e.ttl / 2
		j := l.ready(e.orphans)
		t := j.run(ctx, locker)
		left, err := e.leftovers(ctx, j.prefix, begin)
		if err != nil {
			return err
		}
		got["alone"], got["alone failed"] = float64(len(t.lock)), float64(t.failed)
		got["alone keys"], got["alone node"] = left.total(), left.worst()
		got["other"], got["kept"] = float64(left.other), float64(left.kept)
		return t.none()
	})
}

func (e *env) orphansContended(ctx context.Context, c contender.Contender, got sample) (err error) {
	l := load{callers: 1, window: e.window}
	var lockers []contender.Locker
	defer func() {
		for _, locker := range lockers {
			err = errors.Join(err, locker.Close())
		}
	}()
	for range contendersOnOneKey {
		locker, err := c.Open(contender.Config{Addrs: e.fleet.addrs(), TTL: e.ttl, Renewal: e.renewal()})
		if err != nil {
			return err
		}
		lockers = append(lockers, locker)
		if err := warm(ctx, locker, l); err != nil {
			return err
		}
	}
	begin := time.Now()
	prefix := freshPrefix()
	won, rounds := 0, 0
	for ; rounds < e.contended && time.Since(begin) < e.ttl/2; rounds++ {
		if contest(ctx, lockers, prefix+"contended"+nameEnd) {
			won++
		}
	}
	left, err := e.leftovers(ctx, prefix, begin)
	if err != nil {
		return err
	}
	got["contended"], got["won"] = float64(rounds), float64(won)
	got["contended keys"], got["contended node"] = left.total(), left.worst()
	got["other"] += float64(left.other)
	got["kept"] += float64(left.kept)
	return nil
}

// contest lets all lockers try once, and reports whether one of them got the name.
func contest(ctx context.Context, lockers []contender.Locker, name string) bool {
	var all sync.WaitGroup
	won := make([]bool, len(lockers))
	gate := make(chan struct{})
	for i, locker := range lockers {
		all.Go(func() {
			<-gate
			lock, err := locker.Lock(ctx, name)
			if err != nil {
				return
			}
			// An error may leave a key, which is counted.
			won[i] = lock.Release(ctx) == nil
		})
	}
	close(gate)
	all.Wait()
	return slices.Contains(won, true)
}
