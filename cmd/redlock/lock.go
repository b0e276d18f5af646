package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/signal"
	"syscall"
	"unicode/utf8"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
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
	for _, text := range append([]string{opts.Prefix, opts.Separator}, cfg.keys...) {
		if !utf8.ValidString(text) {
			return 0, exit.Fail(exit.Usage, "redlock run takes any name", "%q is not UTF-8, so no handle can carry it", text)
		}
	}
	signals, restore := proc.CatchSignals()
	defer restore()
	locker, nodes, err := c.connect(servers, opts)
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	lock, err := c.await(locker, nodes, &cfg.lockConfig, signals)
	if err != nil {
		return 0, err
	}
	handle, err := c.handOut(lock, cfg.json)
	if err != nil { // without its handle no process could release it
		if lock, err := locker.Attach(context.Background(), handle); err == nil {
			_ = lock.Release(context.Background())
		}
	}
	return 0, err
}

// A printedLock is what the command line of redlock lock says.
type printedLock struct {
	lockConfig
	json bool
}

// parseLock reads the arguments of redlock lock.
func parseLock(args []string) (*printedLock, error) {
	cfg := &printedLock{lockConfig: lockConfig{lockFlags: noFlags, busy: exit.Busy, without: "it is not locked"}}
	f := newFlags("lock")
	cfg.addNames(f)
	cfg.addKinds(f)
	f.toggle("json", "", &cfg.json)
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
	if cfg.busy == 0 && f.Changed("conflict-exit-code") {
		return nil, exit.Fail(exit.Usage, "a script would go on without the lock: lock=$(redlock lock KEY -n -q) || exit 0", "--conflict-exit-code 0 says that the lock is held, and it is not")
	}
	return cfg, cfg.check(f, "lock=$(redlock lock demo)")
}

// handOut prints the handle of the lock for the next process.
func (c *command) handOut(lock *redlock.Lock, asJSON bool) (handle redlock.Handle, err error) {
	handle, err = lock.Detach()
	if err != nil { // the lock has ended before it could be printed
		return handle, exit.Fail(exit.Lost, "", "%s", phrase.Plain(err))
	}
	var printed any = handle
	if asJSON {
		printed = describe(handle)
	}
	text, err := json.Marshal(printed)
	if err != nil {
		return handle, err
	}
	signal.Ignore(syscall.SIGPIPE) // the write fails instead, and the error is reported
	if _, err := fmt.Fprintf(c.stdout, "%s\n", text); err != nil {
		return handle, exit.Fail(exit.CannotWrite, "", "cannot print the lock on %q: %v", lock.Name(), err)
	}
	return handle, nil
}
