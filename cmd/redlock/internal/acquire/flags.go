package acquire

import (
	"strconv"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	lua "github.com/quorumlock/redlock/internal/script"
)

// A Config says which lock to acquire: the flags that run, elect and lock share.
type Config struct {
	reach.Flags
	Keys     []string // at least one
	shared   bool
	slots    int           // 0: not a semaphore
	MinHold  time.Duration // 0: none
	Lingers  bool          // the set allows no lock without a process for MinHold: the process has to stay for it
	MaxHold  time.Duration // 0: no limit
	nonblock bool
	Busy     int    // the exit code when another client holds the lock
	Silent   bool   // in that case show no error; without --timeout, do not wait
	Without  string // what to say if a signal ends the wait: "the command was not started"
}

// kind returns the options with which the library acquires the kind of lock that the flags ask for.
func (c *Config) kind() (options []redlock.AcquireOption) {
	if len(c.Keys) > 1 {
		options = append(options, redlock.Also(c.Keys[1:]...))
	}
	if c.shared {
		options = append(options, redlock.Shared())
	}
	if c.slots > 0 {
		options = append(options, redlock.Slots(c.slots))
	}
	if c.MinHold > 0 && !c.Lingers {
		options = append(options, redlock.MinHold(c.MinHold))
	}
	if c.MaxHold > 0 {
		options = append(options, redlock.MaxHold(c.MaxHold))
	}
	return append(options, redlock.AutoRenew())
}

// AddNames adds the flags that every verb has that acquires a lock.
func (c *Config) AddNames(to *flags.Set) {
	c.AddNodes(to)
	c.AddTTL(to)
	c.AddMaxTTL(to)
	c.AddSeparator(to)
	c.AddOwner(to)
	to.Values("key", func(value string) error { return c.AddKey("--key", value) })
}

// AddKey adds the name of a lock, which was given by source, a flag or an argument: the error names it.
func (c *Config) AddKey(source, value string) error {
	c.Keys = append(c.Keys, value)
	switch {
	case value == "":
		return exit.Fail(exit.Usage, "give the lock a name", "%s is empty", source)
	case lua.Lasting(value):
		return exit.Fail(exit.Usage, "take another name", "%s %s is a name that redlock uses itself on the nodes", source, value)
	}
	return nil
}

// AddKinds adds the flags that say how to share the lock, and how long to wait for it.
func (c *Config) AddKinds(to *flags.Set) {
	c.AddTimeout(to)
	to.Toggle("shared", "s", &c.shared)
	to.Toggle("nonblock", "n", &c.nonblock)
	to.Toggle("quiet-busy", "", &c.Silent)
	to.Value("slots", "", func(value string) (err error) {
		if c.slots, err = strconv.Atoi(value); err != nil || c.slots < 1 || c.slots > redlock.MaxSlots {
			return exit.Fail(exit.Usage, "it is how many clients hold the lock at once", "--slots %s is not a number from 1 to %d", value, redlock.MaxSlots)
		}
		return nil
	})
	to.Value("conflict-exit-code", "E", func(value string) (err error) {
		if c.Busy, err = strconv.Atoi(value); err != nil || c.Busy < 0 || c.Busy > 255 {
			return exit.Fail(exit.Usage, "it is the exit code when another client holds the lock", "--conflict-exit-code %s is not a number from 0 to 255", value)
		}
		return nil
	})
}

// Check returns an error if the flags do not fit together. If they name no lock, its hint has the example.
func (c *Config) Check(f *flags.Set, example string) error {
	if c.nonblock || c.Silent && !f.Changed("timeout") { // --quiet-busy expects an outcome, so it does not wait
		c.Timeout = 0
	}
	c.Quiet = c.Quiet || c.Silent
	c.Silent = c.Quiet && (c.Silent || c.Busy == 0)
	switch {
	case len(c.Keys) == 0:
		return exit.Fail(exit.Usage, "for example: "+example, "the name of the lock is missing: KEY or --key")
	case f.Changed("slots") && c.shared:
		return exit.Fail(exit.Usage, "a slot is held by one command alone", "--slots and --shared do not go together")
	case f.Changed("slots") && len(c.Keys) > 1:
		return exit.Fail(exit.Usage, "slots are those of one key", "--slots and several --key do not go together")
	case c.nonblock && f.Changed("timeout"):
		return exit.Fail(exit.Usage, "--nonblock is --timeout 0s", "--nonblock and --timeout do not go together")
	}
	return nil
}
