package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorumlock/redlock/bench/contender"
)

// idleParts is how often each contender is measured in one round: the difference is smaller than
// the machine's variation from one second to the next.
const idleParts = 4

// idle measures the cost of a queue without waiters.
func (w *waits) idle(ctx context.Context) (*table, error) {
	cs := contender.Idle()
	s := &series{contenders: cs, rounds: map[string][]sample{}}
	turned := slices.Clone(cs)
	for part := range idleParts {
		slices.Reverse(turned) // so that no contender is always the second
		some, err := w.interleave(ctx, fmt.Sprintf("waiting, no waiters, part %d of %d", part+1, idleParts), turned,
			func(ctx context.Context, c contender.Contender) (sample, error) {
				o := w.one(taskCycles, c.Name)
				o.Window /= 2
				return w.programs.ask(ctx, c.Name, o)
			})
		if err != nil {
			return nil, err
		}
		s.failures = append(s.failures, some.failures...)
		for name, rounds := range some.rounds {
			s.rounds[name] = append(s.rounds[name], rounds...)
		}
	}
	return &table{
		title: "waiting, no waiters",
		text: fmt.Sprintf("One caller locks and unlocks names that no other caller wants, for %v a round, in %d times as many rounds as elsewhere: "+
			"what it costs to look at a queue that is empty.", w.window/2, idleParts),
		columns: []column{
			median("cycles a round", "cycles", count),
			median("p50", "p50", duration),
			over("÷ no queue (wanted: ≤ 1.05)", "p50", contender.NoQueue),
			median("lock p50", "lock", duration),
			over("÷ no queue", "lock", contender.NoQueue),
			median("CPU/lock", "cpu", duration),
			over("÷ no queue", "cpu", contender.NoQueue),
			median("servers", "servers", duration),
			over("÷ no queue", "servers", contender.NoQueue),
			total("failed", "failed", count),
		},
		series: s,
		notes:  notes(cs),
	}, nil
}
