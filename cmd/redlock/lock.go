package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
)

// lock is redlock lock: it acquires a lock, and prints the handle with which other processes
// extend and release it.
func (c *command) lock(_ string, args []string) (int, error) {
	cfg, err := parseLock(args)
	if err != nil {
		return 0, err
	}
	servers, err := c.realNodes(&cfg.lockFlags, "lock on")
	if err != nil {
		return 0, err
	}
	opts, err := cfg.options()
	if err != nil {
		return 0, err
	}
	signals, restore := proc.CatchSignals()
	defer restore()
	locker, nodes, err := c.connect(servers, opts)
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	lock, err := c.await(locker, nodes, cfg, signals)
	if err != nil {
		return 0, err
	}
	handle, err := c.handOut(lock)
	if err != nil { // without its handle no process could release it
		if lock, err := locker.Attach(context.Background(), handle); err == nil {
			_ = lock.Release(context.Background())
		}
	}
	return 0, err
}

// parseLock reads the arguments of redlock lock.
func parseLock(args []string) (*lockConfig, error) {
	cfg := &lockConfig{lockFlags: noFlags, busy: exit.Busy, without: "it is not locked"}
	f := newFlags("lock")
	cfg.addNames(f)
	cfg.addKinds(f)
	f.SetInterspersed(true)
	rest, err := f.parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 1 || f.ArgsLenAtDash() == 0:
		return nil, exit.Fail(exit.Usage, "redlock run runs a command under a lock", "lock takes one argument, the name of the lock, and was given %q", rest)
	case len(rest) == 1:
		if err := cfg.addKey("the key", rest[0]); err != nil {
			return nil, err
		}
	}
	return cfg, cfg.check(f, "lock=$(redlock lock demo)")
}

// handOut prints the handle of the lock for the next process.
func (c *command) handOut(lock *redlock.Lock) (handle redlock.Handle, err error) {
	handle, err = lock.Detach()
	if err != nil { // the lock has ended before it could be printed
		return handle, exit.Fail(exit.Lost, "", "%s", phrase.Plain(err))
	}
	text, err := json.Marshal(handle)
	if err != nil {
		return handle, err
	}
	signal.Ignore(syscall.SIGPIPE) // the write fails instead, and the error is reported
	if _, err := fmt.Fprintf(c.stdout, "%s\n", text); err != nil {
		return handle, exit.Fail(exit.CannotWrite, "", "cannot print the lock on %q: %v", lock.Name(), err)
	}
	return handle, nil
}

// takeUp is redlock extend and redlock unlock: they go on with a lock that redlock lock has
// printed.
func (c *command) takeUp(command string, args []string) (int, error) {
	flags, f := noFlags, newFlags(command)
	f.SetInterspersed(true)
	flags.addNodes(f)
	rest, err := f.parse(args)
	if err != nil {
		return 0, err
	}
	handle, err := c.readHandle(command, rest)
	if err != nil {
		return 0, err
	}
	servers, err := c.realNodes(&flags, "ask")
	if err != nil {
		return 0, err
	}
	locker, _, err := c.connect(servers, &redlock.Options{TTL: handle.TTL, MaxTTL: max(handle.TTL, flags.maxTTL), Prefix: handle.Prefix, Separator: handle.Separator})
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	lock, err := locker.Attach(context.Background(), handle)
	if err == nil && command == "extend" {
		_, err := c.handOut(lock)
		return 0, err
	}
	if err == nil {
		err = lock.Release(context.Background())
	}
	var why *redlock.QuorumError
	switch {
	case errors.Is(err, redlock.ErrLost):
		return 0, exit.Fail(exit.Lost, "another client may hold the lock, or have held it: check what was done under it before you rely on it", "%q is no longer held: %s", handle.Name, phrase.Plain(err))
	case errors.As(err, &why):
		return 0, exit.Fail(exit.NoQuorum, explain.Remedy(why.Nodes(), why.Need), "%s", phrase.Plain(err))
	case err != nil:
		return 0, exit.Fail(exit.Usage, "give it the output of redlock lock", "%s", phrase.Plain(err))
	}
	return 0, nil
}

// readHandle reads the output of redlock lock: the one argument, or else stdin.
func (c *command) readHandle(command string, args []string) (handle redlock.Handle, err error) {
	source, text := "the argument", strings.Join(args, "")
	if len(args) == 0 {
		all, err := io.ReadAll(io.LimitReader(c.stdin, 1<<20))
		if err != nil {
			return handle, exit.Fail(exit.Usage, "", "cannot read stdin: %v", err)
		}
		source, text = "stdin", string(all)
	}
	hint := "lock=$(redlock lock KEY); redlock " + command + ` "$lock"`
	if len(args) > 1 {
		return handle, exit.Fail(exit.Usage, hint+", in quotes", "%s takes one lock, and was given %d arguments", command, len(args))
	}
	if err := json.Unmarshal([]byte(text), &handle); err != nil {
		return handle, exit.Fail(exit.Usage, hint, "%s is not the output of redlock lock: %v", source, err)
	}
	if !canBeTTL(handle.TTL) {
		return handle, exit.Fail(exit.Usage, hint, "%s is not the output of redlock lock: its ttl_ns is %d", source, handle.TTL)
	}
	return handle, nil
}
