package main

import (
	"context"
	"fmt"

	"github.com/quorumlock/redlock/bench/contender"
)

// room is more cycles than one caller does in any reasonable window.
const room = 1 << 17

// newness says whether the nodes know a load's names, for the title of a table.
var newness = []struct {
	fresh       bool
	title, text string
}{
	{false, "", fmt.Sprintf("Each caller goes round %d names.", namesEach)},
	{true, ", new names", "Each name is locked once, and is new to the nodes."},
}

func uncontended(ctx context.Context, e *env) (tables []*table, err error) {
	for _, names := range newness {
		t, err := e.uncontended(ctx, load{callers: 1, window: e.window, fresh: names.fresh}, names.title, names.text)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil
}

func (e *env) uncontended(ctx context.Context, l load, title, text string) (*table, error) {
	s, err := e.interleave(ctx, "uncontended"+title, e.contenders, func(ctx context.Context, c contender.Contender) (sample, error) {
		return e.price(ctx, c, l, room, func(t *tally, u usage) sample {
			n := float64(len(t.lock))
			cycles := t.cycles()
			return sample{
				"cycles": n, "failed": float64(t.failed),
				"p50": quantile(cycles, .5), "p99": quantile(cycles, .99),
				"lock": quantile(t.lock, .5), "unlock": quantile(t.unlock, .5),
				"allocs": u.mallocs / n, "bytes": u.bytes / n,
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return &table{
		title: "uncontended" + title,
		text: fmt.Sprintf("One caller locks and unlocks names that no other caller wants, for %v a round. %s "+
			"Allocations are those of the whole process, background goroutines included.", e.window, text),
		columns: []column{
			median("cycles a round", "cycles", count),
			median("p50", "p50", duration),
			versus("p50 ÷ redsync", "p50"),
			median("p99", "p99", duration),
			versus("p99 ÷ redsync", "p99"),
			median("lock p50", "lock", duration),
			median("unlock p50", "unlock", duration),
			median("allocs/cycle", "allocs", decimal),
			median("B/cycle", "bytes", count),
			total("failed", "failed", count),
		},
		series: s,
		notes:  notes(e.contenders),
	}, nil
}
