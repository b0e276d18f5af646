package reach

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
)

// Look opens a Locker that acquires nothing, and calls run with it. A signal ends the context of run.
func Look(c *console.Console, flags *Flags, servers []*redis.Options, run func(ctx context.Context, locker *redlock.Locker) (int, error)) (int, error) {
	signals, restore := proc.CatchSignals()
	defer restore()
	locker, nodes, err := Connect(c, servers, flags.LookOptions(peek.Read(servers, true)))
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	ctx, stop := proc.UntilSignal(signals)
	defer stop()
	nodes.Tell("", "")
	return run(ctx, locker)
}

// Looked returns what run (see Look) returns when it has ended with err: the exit code of the signal that has ended
// ctx, if one has, and else err.
func Looked(ctx context.Context, err error) (int, error) {
	if by := (proc.Interrupted{}); errors.As(context.Cause(ctx), &by) {
		return by.Code(), nil
	}
	return 0, err
}
