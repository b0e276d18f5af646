package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// fence measures the cost of fences, and of a node's proof with each grant that it has not
// forgotten. It compares with the floor, which has neither, and with this library without both in
// its script.
func fence(ctx context.Context, e *env) ([]*table, error) {
	cs := e.fenced()
	if !slices.ContainsFunc(cs, func(c contender.Contender) bool { return c.Name == contender.Plain }) {
		return nil, nil // not selected
	}
	p, err := buildPrograms(ctx, plainScripts())
	if err != nil {
		return nil, err
	}
	defer p.remove()
	s, err := e.interleave(ctx, "fence", cs, func(ctx context.Context, c contender.Contender) (sample, error) {
		return p.ask(ctx, c.Name, e.one(taskCycles, c.Name))
	})
	if err != nil {
		return nil, err
	}
	roundtrips, err := e.roundtrips(ctx)
	if err != nil {
		return nil, err
	}
	steps, err := e.steps(ctx)
	if err != nil {
		return nil, err
	}
	return []*table{{
		title: "fence",
		text: fmt.Sprintf("One caller locks and unlocks names that no other caller wants, for %v a round, each contender in a process of its own. "+
			"Plain is the row %q.", e.window, contender.Plain),
		columns: []column{
			median("cycles a round", "cycles", count),
			median("p50", "p50", duration),
			versus("p50 ÷ redsync", "p50"),
			over("p50 ÷ floor", "p50", floorName),
			over("p50 ÷ plain", "p50", contender.Plain),
			median("lock p50", "lock", duration),
			over("lock p50 ÷ plain", "lock", contender.Plain),
			median("CPU/lock", "cpu", duration),
			over("CPU ÷ floor", "cpu", floorName),
			over("CPU ÷ plain", "cpu", contender.Plain),
			median("client", "client", duration),
			over("client ÷ plain", "client", contender.Plain),
			median("servers", "servers", duration),
			over("servers ÷ plain", "servers", contender.Plain),
			total("failed", "failed", count),
		},
		series: s,
		notes:  notes(cs),
	}, roundtrips, steps}, nil
}

const floorName = "floor"

// fenced returns the scenario's contenders: the selected ones that it has, with their variants.
func (e *env) fenced() []contender.Contender {
	return slices.DeleteFunc(contender.Fenced(), func(c contender.Contender) bool {
		name, _, _ := strings.Cut(c.Name, ",")
		return !slices.ContainsFunc(e.contenders, func(picked contender.Contender) bool { return picked.Name == name })
	})
}

// cycles measures one caller, with the cost of a lock.
func (e *env) cycles(ctx context.Context, c contender.Contender) (sample, error) {
	l := load{callers: 1, window: e.window}
	return e.price(ctx, c, l, room, func(t *tally, u usage) sample {
		n := float64(len(t.lock))
		client, servers := float64(u.client), u.servers.cpu*float64(time.Second)
		return sample{
			"cycles": n, "failed": float64(t.failed),
			"p50": quantile(t.cycles(), .5), "lock": quantile(t.lock, .5),
			"cpu": (client + servers) / n, "client": client / n, "servers": servers / n,
		}
	})
}
