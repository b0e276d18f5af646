package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/quorumlock/redlock/bench/contender"
)

// hung stops one and two of five in the middle of a contender's life, with its
// connections open: a node that hangs does not say so.
func hung(ctx context.Context, e *env) ([]*table, error) {
	cs := e.quorum()
	s, err := e.interleave(ctx, "hung", cs, func(ctx context.Context, c contender.Contender) (sample, error) {
		got := sample{}
		l := load{callers: 1, window: e.window}
		err := e.with(ctx, c, e.fleet.addrs(), l, func(locker contender.Locker) error {
			before := runtime.NumGoroutine()
			for n := 1; n <= 2; n++ {
				healthy, hurt := fmt.Sprintf("healthy%d", n), fmt.Sprintf("hung%d", n)
				if err := e.phase(ctx, locker, e.faulted, healthy, got); err != nil {
					return err
				}
				resume, err := e.fleet.hang(n)
				if err != nil {
					return err
				}
				err = e.phase(ctx, locker, e.hurtCycles(c), hurt, got)
				if err = errors.Join(err, resume()); err != nil {
					return fmt.Errorf("%d of %d hung: %w", n, nodes, err)
				}
				got.compare(hurt, healthy)
				drained(ctx, before)
				if err := e.fleet.quiet(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		return got, err
	})
	if err != nil {
		return nil, err
	}
	notes := []string{e.phaseNote()}
	for _, c := range cs {
		if c.Slow {
			notes = append(notes, fmt.Sprintf("%s: cycles while a node hangs: %d a round, since each takes seconds.", c.Name, e.stuck))
		}
	}
	return e.faultTables(s, "hung", "of five hung",
		"The servers are stopped with SIGSTOP while the contender is running; "+
			"clients are stock, so go-redis waits 5 s for an answer.", notes...), nil
}

// faultTables are the two tables, for one node and for two, that hung and
// killed have in common.
func (e *env) faultTables(s *series, key, what, text string, notes ...string) []*table {
	var out []*table
	for n, word := range []string{"one", "two"} {
		hurt, healthy := fmt.Sprintf("%s%d", key, n+1), fmt.Sprintf("healthy%d", n+1)
		out = append(out, &table{
			title: fmt.Sprintf("%s, %s %s", key, word, what), text: text,
			columns: faultColumns(hurt, healthy), series: s,
		})
	}
	out[len(out)-1].notes = append(notes, e.leftOut()...)
	return out
}

// leftOut names the contenders that are missing from the tables about faults.
func (e *env) leftOut() []string {
	var out []string
	for _, c := range e.contenders {
		if c.Single {
			out = append(out, c.Name+" is left out: with its one node gone there is no lock, with any other gone there is no difference.")
		}
	}
	return out
}
