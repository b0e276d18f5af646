package look

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
)

// A lookConfig has the flags of redlock status, watch and wait.
type lookConfig struct {
	reach.Flags
	key   string
	json  bool
	every time.Duration
}

// parseLook reads the arguments of a verb that inspects one lock.
func parseLook(command string, args []string) (*lookConfig, error) {
	cfg := &lookConfig{Flags: reach.Defaults, every: time.Second}
	f := flags.New(command)
	f.SetInterspersed(true)
	cfg.AddNodes(f)
	cfg.AddSeparator(f)
	if command == "wait" {
		cfg.AddTimeout(f)
	}
	f.Toggle("json", "", &cfg.json)
	if command == "watch" {
		reach.AddEvery(f, &cfg.every)
	}
	rest, err := f.Parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) != 1 || rest[0] == "":
		return nil, exit.Fail(exit.Usage, "for example: redlock "+command+" backup", "%s takes the name of one lock, and was given %q", command, rest)
	}
	cfg.key = rest[0]
	return cfg, nil
}

// Inspect is redlock status, watch and wait: they inspect one lock without acquiring it. command is the verb.
func Inspect(c *console.Console, command string, args []string) (code int, err error) {
	cfg, err := parseLook(command, args)
	if err != nil {
		return 0, err
	}
	servers, err := reach.Real(c, &cfg.Flags, "ask")
	if err != nil {
		return 0, err
	}
	return reach.Look(c, &cfg.Flags, servers, func(ctx context.Context, locker *redlock.Locker) (int, error) {
		switch command {
		case "watch":
			return reach.Looked(ctx, watch(ctx, c, locker, cfg))
		case "wait":
			return reach.Looked(ctx, wait(ctx, c, locker, cfg))
		}
		return 0, status(ctx, c, locker, cfg)
	})
}

// status prints the state of the lock once.
func status(ctx context.Context, c *console.Console, locker *redlock.Locker, cfg *lookConfig) error {
	s, err := locker.Inspect(ctx, cfg.key)
	if err != nil {
		return exit.Fail(exit.Usage, "see redlock help status", "%s", phrase.Plain(err))
	}
	if cfg.json {
		err = printReport(c, s, locker.Members(), time.Time{})
	} else {
		err = locks.Show(c.Stdout, s, locker.Members())
	}
	if err == nil && s.State == redlock.StateUnknown {
		return explain.Unknown(s, "")
	}
	return err
}

// printReport prints a status as JSON in one line. A zero at is left out.
func printReport(c *console.Console, s *redlock.Status, m redlock.Members, at time.Time) error {
	r := report(s)
	r.Set, r.Epoch, r.Quorum = m.Set, m.Epoch, m.Quorum
	if !at.IsZero() {
		r.Time = &at
	}
	return c.PrintLine(r)
}

// watch prints the state of the lock, and again after each change that its line shows.
func watch(ctx context.Context, c *console.Console, locker *redlock.Locker, cfg *lookConfig) error {
	before := ""
	for s, err := range locker.Watch(ctx, cfg.key, cfg.every) {
		if err != nil {
			return exit.Fail(exit.Usage, "see redlock help watch", "%s", phrase.Plain(err))
		}
		now, at := locks.News(s), time.Now()
		switch {
		case now == before: // of several waiters the line has the first
		case cfg.json:
			err = printReport(c, s, locker.Members(), at)
		default:
			_, err = fmt.Fprintln(c.Stdout, at.Format("15:04:05.000"), now)
		}
		if err != nil {
			return err
		}
		before = now
	}
	return nil
}

// wait returns when the lock is free, and fails if it is not within --timeout.
func wait(ctx context.Context, c *console.Console, locker *redlock.Locker, cfg *lookConfig) error {
	limited := ctx
	if cfg.Timeout >= 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
	}
	var s *redlock.Status
	for s, _ = range locker.Watch(limited, cfg.key, 200*time.Millisecond) {
		if s != nil && s.State == redlock.StateFree {
			break
		}
	}
	if s == nil || s.State != redlock.StateFree { // the time is over, with --timeout 0s before the first look: how is it now?
		var err error
		if s, err = locker.Inspect(context.WithoutCancel(ctx), cfg.key); err != nil {
			return exit.Fail(exit.Usage, "see redlock help wait", "%s", phrase.Plain(err))
		}
	}
	if cfg.json {
		if err := printReport(c, s, locker.Members(), time.Time{}); err != nil {
			return err
		}
	}
	switch {
	case s.State == redlock.StateFree || ctx.Err() != nil:
		return nil
	case s.State == redlock.StateUnknown:
		return explain.Unknown(s, fmt.Sprintf(" within --timeout %v", cfg.Timeout))
	}
	return exit.Fail(exit.Busy, "wait longer, or leave --timeout out to wait without limit", "not free within --timeout %v: %s", cfg.Timeout, locks.News(s))
}
