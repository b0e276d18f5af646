package main

import (
	"context"
	"fmt"

	"github.com/quorumlock/redlock/bench/contender"
)

// kinds compares the cost of each kind of lock with that of an exclusive one.
func kinds(ctx context.Context, e *env) ([]*table, error) {
	cs := contender.Kinds()
	s, err := e.interleave(ctx, "kinds", cs, e.cycles)
	if err != nil {
		return nil, err
	}
	return []*table{{
		title: "kinds",
		text: fmt.Sprintf("One caller locks and unlocks names that no other caller wants, for %v a round. Wanted, of p50: "+
			"shared ≤ 1.2 and two names ≤ 1.3 of alone, five parts deep ≤ 1.6; and with %d others in the folder ≤ 1.1 of without.", e.window, contender.Others),
		columns: []column{
			median("cycles a round", "cycles", count),
			median("p50", "p50", duration),
			over("÷ alone", "p50", contender.Alone),
			over("÷ in a folder", "p50", contender.Folder),
			median("lock p50", "lock", duration),
			median("CPU/lock", "cpu", duration),
			over("÷ alone", "cpu", contender.Alone),
			median("servers", "servers", duration),
			over("÷ alone", "servers", contender.Alone),
			total("failed", "failed", count),
		},
		series: s,
		notes:  notes(cs),
	}}, nil
}
