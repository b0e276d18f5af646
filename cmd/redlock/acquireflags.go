package main

import (
	"strconv"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	lua "github.com/quorumlock/redlock/internal/script"
)

// lockConfig says which lock is to be acquired: the flags that run, elect and lock share.
type lockConfig struct {
	lockFlags
	keys     []string // at least one
	shared   bool
	slots    int // 0: not a semaphore
	maxHold  time.Duration
	nonblock bool
	busy     int    // the exit code when another client holds the lock
	silent   bool   // then no error is shown, and without --timeout it is not waited for
	without  string // what follows when a signal ends the waiting
}

// kind is the options of the library's Acquire.
func (c *lockConfig) kind() (options []redlock.AcquireOption) {
	if len(c.keys) > 1 {
		options = append(options, redlock.Also(c.keys[1:]...))
	}
	if c.shared {
		options = append(options, redlock.Shared())
	}
	if c.slots > 0 {
		options = append(options, redlock.Slots(c.slots))
	}
	if c.maxHold > 0 {
		options = append(options, redlock.MaxHold(c.maxHold))
	}
	return append(options, redlock.AutoRenew())
}

// addNames adds the flags that every verb has that acquires a lock.
func (c *lockConfig) addNames(to *flagSet) {
	c.addNodes(to)
	c.addTTL(to)
	c.addMaxTTL(to)
	c.addSeparator(to)
	c.addOwner(to)
	to.values("key", func(value string) error { return c.addKey("--key", value) })
}

// addKey adds a key, which a flag or an argument names.
func (c *lockConfig) addKey(source, value string) error {
	c.keys = append(c.keys, value)
	switch {
	case value == "":
		return exit.Fail(exit.Usage, "give the lock a name", "%s is empty", source)
	case lua.Lasting(value):
		return exit.Fail(exit.Usage, "take another name", "%s %s is a name that redlock uses itself on the nodes", source, value)
	}
	return nil
}

// addKinds adds the flags that say how the lock is shared, and how long to wait for it.
func (c *lockConfig) addKinds(to *flagSet) {
	c.addTimeout(to)
	to.toggle("shared", "s", &c.shared)
	to.toggle("nonblock", "n", &c.nonblock)
	to.toggle("quiet-busy", "", &c.silent)
	to.value("slots", "", func(value string) (err error) {
		if c.slots, err = strconv.Atoi(value); err != nil || c.slots < 1 || c.slots > redlock.MaxSlots {
			return exit.Fail(exit.Usage, "it is how many clients hold the lock at once", "--slots %s is not a number from 1 to %d", value, redlock.MaxSlots)
		}
		return nil
	})
	to.value("conflict-exit-code", "E", func(value string) (err error) {
		if c.busy, err = strconv.Atoi(value); err != nil || c.busy < 0 || c.busy > 255 {
			return exit.Fail(exit.Usage, "it is the exit code when another client holds the lock", "--conflict-exit-code %s is not a number from 0 to 255", value)
		}
		return nil
	})
}

// check checks the flags as a set.
func (c *lockConfig) check(f *flagSet, example string) error {
	if c.nonblock || c.silent && !f.Changed("timeout") { // --quiet-busy: that it is busy is an outcome, so there is one
		c.timeout = 0
	}
	c.quiet = c.quiet || c.silent
	c.silent = c.quiet && (c.silent || c.busy == 0)
	switch {
	case len(c.keys) == 0:
		return exit.Fail(exit.Usage, "for example: "+example, "the name of the lock is missing: KEY or --key")
	case f.Changed("slots") && c.shared:
		return exit.Fail(exit.Usage, "a slot is held by one command alone", "--slots and --shared do not go together")
	case f.Changed("slots") && len(c.keys) > 1:
		return exit.Fail(exit.Usage, "slots are those of one key", "--slots and several --key do not go together")
	case c.nonblock && f.Changed("timeout"):
		return exit.Fail(exit.Usage, "--nonblock is --timeout 0s", "--nonblock and --timeout do not go together")
	}
	return nil
}
