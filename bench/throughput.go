package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

func throughput(ctx context.Context, e *env) ([]*table, error) {
	var out []*table
	for _, callers := range e.callers {
		for _, names := range newness {
			l := load{callers: callers, window: e.window, fresh: names.fresh}
			s, err := e.interleave(ctx, fmt.Sprintf("throughput, %d callers%s", callers, names.title), e.contenders,
				func(ctx context.Context, c contender.Contender) (sample, error) { return e.through(ctx, c, l) })
			if err != nil {
				return nil, err
			}
			out = append(out, &table{
				title:   fmt.Sprintf("throughput, callers: %d%s", callers, names.title),
				text:    fmt.Sprintf("Every caller locks and unlocks names of its own, for %v a round. %s", e.window, names.text),
				columns: throughputColumns(),
				series:  s,
			})
		}
	}
	out[len(out)-1].notes = append([]string{
		"CPU is user and system time of this process and of all servers, for one lock with its unlock.",
		"Commands are total_commands_processed of all servers, so a script counts as one and each command inside it as another; " +
			"scripts are EVAL and EVALSHA alone; reads are reads from a socket, of which requests that travel together need one.",
	}, notes(e.contenders)...)
	return out, nil
}

// through measures the rate of one load, and the cost of a lock.
func (e *env) through(ctx context.Context, c contender.Contender, l load) (sample, error) {
	return e.price(ctx, c, l, 256, func(t *tally, u usage) sample {
		n := float64(len(t.lock))
		client, servers := float64(u.client), u.servers.cpu*float64(time.Second)
		return sample{
			"rate": n / t.elapsed.Seconds(), "failed": float64(t.failed),
			"cpu": (client + servers) / n, "client": client / n, "servers": servers / n,
			"commands": u.servers.commands / n, "scripts": u.servers.scripts / n, "reads": u.servers.reads / n,
		}
	})
}

func throughputColumns() []column {
	return []column{
		median("locks/s", "rate", count),
		versus("÷ redsync", "rate"),
		median("CPU/lock", "cpu", duration),
		versus("CPU ÷ redsync", "cpu"),
		median("client", "client", duration),
		median("servers", "servers", duration),
		median("commands/lock", "commands", decimal),
		median("scripts/lock", "scripts", decimal),
		median("reads/lock", "reads", decimal),
		total("failed", "failed", count),
	}
}
