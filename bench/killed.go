package main

import (
	"context"
	"fmt"

	"github.com/quorumlock/redlock/bench/contender"
)

// killed compares five live servers with five of which one, and two, are gone for good. The broken
// fleets are broken before the contenders see them: killing and restarting the same servers between
// phases would measure how a contender treats a node that came back empty, which is another
// question.
func killed(ctx context.Context, e *env) ([]*table, error) {
	var broken []*fleet
	for n := 1; n <= 2; n++ {
		f, err := startFleet(ctx)
		if err != nil {
			return nil, err
		}
		defer f.stop()
		for _, s := range f.last(n) {
			s.Kill()
		}
		broken = append(broken, f)
	}
	cs := e.quorum()
	s, err := e.interleave(ctx, "killed", cs, func(ctx context.Context, c contender.Contender) (sample, error) {
		got := sample{}
		l := load{callers: 1, window: e.window}
		for n := 1; n <= 2; n++ {
			healthy, hurt := fmt.Sprintf("healthy%d", n), fmt.Sprintf("killed%d", n)
			err := e.with(ctx, c, e.fleet.addrs(), l, func(locker contender.Locker) error {
				return e.phase(ctx, locker, e.faulted, healthy, got)
			})
			if err != nil {
				return got, err
			}
			err = e.with(ctx, c, broken[n-1].addrs(), l, func(locker contender.Locker) error {
				return e.phase(ctx, locker, e.faulted, hurt, got)
			})
			if err != nil {
				return got, fmt.Errorf("%d of %d killed: %w", n, nodes, err)
			}
			got.compare(hurt, healthy)
		}
		return got, nil
	})
	if err != nil {
		return nil, err
	}
	return e.faultTables(s, "killed", "of five killed",
		"The processes are gone and their ports refuse connections.", e.phaseNote()), nil
}
