package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
)

// looking opens a Locker that acquires no lock, and has run look at the nodes, until a signal ends ctx.
func (c *command) looking(flags *lockFlags, servers []*redis.Options, run func(ctx context.Context, locker *redlock.Locker) (int, error)) (int, error) {
	signals, restore := proc.CatchSignals()
	defer restore()
	locker, nodes, err := c.connect(servers, flags.lookOptions(readSet(servers, true)))
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	ctx, stop := proc.UntilSignal(signals)
	defer stop()
	nodes.tell("", "")
	return run(ctx, locker)
}

// looked is the result of looks that a signal may have ended.
func looked(ctx context.Context, err error) (int, error) {
	if by := (proc.Interrupted{}); errors.As(context.Cause(ctx), &by) {
		return by.Code(), nil
	}
	return 0, err
}
