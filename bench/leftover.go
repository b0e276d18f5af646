package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/script"
)

// A leftover counts a prefix's keys on the nodes.
type leftover struct {
	lock  []int // by node
	kept  int   // counters of fences, which must outlast their locks, and queues, which may
	other int
}

func (l leftover) total() float64 {
	sum := 0
	for _, n := range l.lock {
		sum += n
	}
	return float64(sum)
}

func (l leftover) worst() float64 { return float64(slices.Max(l.lock)) }

var errTooLate = errors.New("too slow: what was left behind may have expired before it was counted")

// leftovers counts once the servers are quiet. The first orphan may be as old as
// begin, so the count is void when it comes too late.
func (e *env) leftovers(ctx context.Context, prefix string, begin time.Time) (leftover, error) {
	if err := e.fleet.quiet(ctx); err != nil {
		return leftover{}, err
	}
	left, err := e.fleet.leftovers(ctx, prefix)
	if err == nil && time.Since(begin) > e.ttl {
		err = errTooLate
	}
	return left, err
}

// leftovers counts what names with this prefix have left. The lock's own key is
// the name, or ends in it where a library puts something before; a key that goes
// on after the name is for the library's own use, and may be meant to stay.
func (f *fleet) leftovers(ctx context.Context, prefix string) (leftover, error) {
	left := leftover{lock: make([]int, len(f.watch))}
	err := f.scan(ctx, prefix, func(node int, key string) {
		switch {
		case script.Lasting(key):
			left.kept++
		case strings.HasSuffix(key, nameEnd):
			left.lock[node]++
		default:
			left.other++
		}
	})
	return left, err
}

// heldOn returns how many locks have their key on at least quorum nodes.
func (f *fleet) heldOn(ctx context.Context, prefix string, quorum int) (int, error) {
	on := map[string]int{}
	err := f.scan(ctx, prefix, func(_ int, key string) {
		if strings.HasSuffix(key, nameEnd) {
			on[key]++
		}
	})
	sum := 0
	for _, n := range on {
		if n >= quorum {
			sum++
		}
	}
	return sum, err
}

// scan goes through the living keys that contain the prefix. A server may name
// a key twice in one scan while it moves its table, hence the set.
func (f *fleet) scan(ctx context.Context, prefix string, each func(node int, key string)) error {
	for node, w := range f.watch {
		seen := map[string]bool{}
		it := w.Scan(ctx, 0, "*"+prefix+"*", 1000).Iterator()
		for it.Next(ctx) {
			if key := it.Val(); !seen[key] {
				seen[key] = true
				each(node, key)
			}
		}
		if err := it.Err(); err != nil {
			return err
		}
	}
	return nil
}
