package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
)

// lookConfig has the flags of redlock status, watch and wait.
type lookConfig struct {
	lockFlags
	key   string
	json  bool
	every time.Duration
}

// parseLook reads the arguments of a verb that inspects a lock.
func parseLook(command string, args []string) (*lookConfig, error) {
	cfg := &lookConfig{lockFlags: noFlags, every: time.Second}
	f := newFlags(command)
	f.SetInterspersed(true)
	cfg.addNodes(f)
	cfg.addSeparator(f)
	if command == "wait" {
		cfg.addTimeout(f)
	}
	f.toggle("json", "", &cfg.json)
	if command == "watch" {
		addEvery(f, &cfg.every)
	}
	rest, err := f.parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) != 1 || rest[0] == "":
		return nil, exit.Fail(exit.Usage, "for example: redlock "+command+" backup", "%s takes the name of one lock, and was given %q", command, rest)
	}
	cfg.key = rest[0]
	return cfg, nil
}

// look is redlock status, watch and wait, which inspect a lock without acquiring it.
func (c *command) look(command string, args []string) (code int, err error) {
	cfg, err := parseLook(command, args)
	if err != nil {
		return 0, err
	}
	servers, err := c.realNodes(&cfg.lockFlags, "ask")
	if err != nil {
		return 0, err
	}
	return c.looking(&cfg.lockFlags, servers, func(ctx context.Context, locker *redlock.Locker) (int, error) {
		switch command {
		case "watch":
			return looked(ctx, c.watch(ctx, locker, cfg))
		case "wait":
			return looked(ctx, c.wait(ctx, locker, cfg))
		}
		return 0, c.status(ctx, locker, cfg)
	})
}

// status prints the state of the lock once.
func (c *command) status(ctx context.Context, locker *redlock.Locker, cfg *lookConfig) error {
	s, err := locker.Inspect(ctx, cfg.key)
	if err != nil {
		return exit.Fail(exit.Usage, "see redlock help status", "%s", phrase.Plain(err))
	}
	if cfg.json {
		err = c.printReport(s, locker.Members(), time.Time{})
	} else {
		err = locks.Show(c.stdout, s, locker.Members())
	}
	if err == nil && s.State == redlock.StateUnknown {
		return untold(s, "")
	}
	return err
}

// printReport prints a status as JSON, in one line. A zero time is none.
func (c *command) printReport(s *redlock.Status, m redlock.Members, at time.Time) error {
	r := report(s)
	r.Set, r.Epoch, r.Quorum = m.Set, m.Epoch, m.Quorum
	if !at.IsZero() {
		r.Time = &at
	}
	return c.printLine(r)
}

// watch prints it again whenever it has changed.
func (c *command) watch(ctx context.Context, locker *redlock.Locker, cfg *lookConfig) error {
	for before := ""; ; {
		s, err := locker.Inspect(ctx, cfg.key)
		if err != nil {
			return exit.Fail(exit.Usage, "see redlock help watch", "%s", phrase.Plain(err))
		}
		if now := locks.News(s); now != before && ctx.Err() == nil {
			before = now
			at := time.Now()
			if cfg.json {
				err = c.printReport(s, locker.Members(), at)
			} else {
				_, err = fmt.Fprintln(c.stdout, at.Format("15:04:05.000"), now)
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-time.After(cfg.every):
		case <-ctx.Done():
			return nil
		}
	}
}

// wait returns when the lock is free.
func (c *command) wait(ctx context.Context, locker *redlock.Locker, cfg *lookConfig) error {
	watched := ctx
	if cfg.timeout >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.timeout)
		defer cancel()
	}
	for {
		s, err := locker.Inspect(watched, cfg.key)
		if err != nil {
			return exit.Fail(exit.Usage, "see redlock help wait", "%s", phrase.Plain(err))
		}
		if s.State == redlock.StateFree {
			if cfg.json {
				return c.printReport(s, locker.Members(), time.Time{})
			}
			return nil
		}
		rest := 200 * time.Millisecond // it may be released at any time
		if s.TTL > 0 {
			rest = min(rest, s.TTL+time.Millisecond)
		}
		select {
		case <-time.After(rest):
			continue
		case <-ctx.Done():
		}
		if cfg.json {
			if err := c.printReport(s, locker.Members(), time.Time{}); err != nil {
				return err
			}
		}
		switch {
		case watched.Err() != nil:
			return nil
		case s.State == redlock.StateUnknown:
			return untold(s, fmt.Sprintf(" within --timeout %v", cfg.timeout))
		}
		return exit.Fail(exit.Busy, "wait longer, or leave --timeout out to wait without limit", "not free within --timeout %v: %s", cfg.timeout, locks.News(s))
	}
}
