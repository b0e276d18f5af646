// Package lock has the verbs that take a lock step by step: lock, extend and unlock, each in a process of its own,
// and break, which takes it away from its holder.
package lock

import (
	"context"
	"encoding/json"
	"fmt"
	"os/signal"
	"syscall"
	"unicode/utf8"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/acquire"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
)

// Lock is redlock lock: it acquires a lock, and prints the handle with which other processes extend and release it.
func Lock(c *console.Console, _ string, args []string) (int, error) {
	cfg, err := parseLock(args)
	if err != nil {
		return 0, err
	}
	servers, err := reach.Real(c, &cfg.Flags, "lock on")
	if err != nil {
		return 0, err
	}
	opts, err := cfg.Options()
	if err != nil {
		return 0, err
	}
	for _, text := range append([]string{opts.Prefix, opts.Separator}, cfg.Keys...) {
		if !utf8.ValidString(text) {
			return 0, exit.Fail(exit.Usage, "redlock run takes any name", "%q is not UTF-8, so no handle can carry it", text)
		}
	}
	signals, restore := proc.CatchSignals()
	defer restore()
	locker, nodes, err := reach.Connect(c, servers, opts)
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	lock, err := acquire.Await(c, locker, nodes, &cfg.Config, signals)
	if err != nil {
		return 0, err
	}
	handle, err := handOut(c, lock, cfg.json)
	if err != nil { // nobody has the handle, so nobody could release it
		if lock, err := locker.Attach(context.Background(), handle); err == nil {
			_ = lock.Release(context.Background())
		}
	}
	return 0, err
}

// A printedLock is the command line of redlock lock.
type printedLock struct {
	acquire.Config
	json bool
}

// parseLock reads the arguments of redlock lock.
func parseLock(args []string) (*printedLock, error) {
	cfg := &printedLock{Config: acquire.Config{Flags: reach.Defaults, Busy: exit.Busy, Without: "it is not locked"}}
	f := flags.New("lock")
	cfg.AddNames(f)
	cfg.AddKinds(f)
	f.Toggle("json", "", &cfg.json)
	f.SetInterspersed(true)
	rest, err := f.Parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 1 || f.ArgsLenAtDash() == 0:
		return nil, exit.Fail(exit.Usage, "redlock run runs a command under a lock", "lock takes one argument, the name of the lock, and was given %q", rest)
	case len(rest) == 1:
		if err := cfg.AddKey("the key", rest[0]); err != nil {
			return nil, err
		}
	}
	if cfg.Busy == 0 && f.Changed("conflict-exit-code") {
		return nil, exit.Fail(exit.Usage, "a script would go on without the lock: lock=$(redlock lock KEY -n -q) || exit 0", "--conflict-exit-code 0 says that the lock is held, and it is not")
	}
	return cfg, cfg.Check(f, "lock=$(redlock lock demo)")
}

// handOut prints the handle of the lock for the next process.
func handOut(c *console.Console, lock *redlock.Lock, asJSON bool) (handle redlock.Handle, err error) {
	handle, err = lock.Detach()
	if err != nil { // the lock has ended already
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
	signal.Ignore(syscall.SIGPIPE) // so that the write fails, and the error is reported
	if _, err := fmt.Fprintf(c.Stdout, "%s\n", text); err != nil {
		return handle, exit.Fail(exit.CannotWrite, "", "cannot print the lock on %q: %v", lock.Name(), err)
	}
	return handle, nil
}
