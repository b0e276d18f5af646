package run

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/acquire"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
)

// A holdConfig says which command runs under which lock: the flags of run and elect.
type holdConfig struct {
	acquire.Config
	embedded bool          // nodes inside this process
	once     time.Duration // the time between two ticks of a schedule that starts the command
	signal   string        // the name of the signal that ends the command when the lock ends
	sign     syscall.Signal
	grace    time.Duration // the time from that signal to SIGKILL
	shell    bool
	leave    bool     // --leave-running: what the command leaves running goes on without the lock
	mayLeave string   // how a message mentions that flag; "": the verb does not have it
	argv     []string // the command
	path     string   // the program's file
}

// leastHold is the shortest --max-hold. With less, the command would get its signal as it starts.
const leastHold = 100 * time.Millisecond

// leastPeriod is the shortest --once. Two attempts at one tick are further apart than half of less.
const leastPeriod = time.Second

// span returns how long one renewal makes the lock last.
func (c *holdConfig) span() time.Duration {
	if c.MaxHold > 0 {
		return min(c.TTL, c.MaxHold)
	}
	return c.TTL
}

// newHoldConfig returns the configuration without flags.
func newHoldConfig() *holdConfig {
	return &holdConfig{
		Config: acquire.Config{Flags: reach.Defaults, Busy: exit.Busy, Without: "the command was not started"},
		signal: "TERM", sign: syscall.SIGTERM, grace: -1,
	}
}

// addCommand adds the flags that say how to run the command.
func (c *holdConfig) addCommand(to *flags.Set) {
	to.Toggle("embedded", "", &c.embedded)
	to.Toggle("shell", "", &c.shell)
	to.Value("lost-signal", "", func(value string) error {
		c.signal = strings.TrimPrefix(strings.ToUpper(value), "SIG")
		if c.sign = proc.SignalNames[c.signal]; c.sign == 0 {
			return exit.Fail(exit.Usage, "they are "+strings.Join(slices.Sorted(maps.Keys(proc.SignalNames)), ", "), "--lost-signal %s is not a signal that can be sent here", value)
		}
		return nil
	})
	addSpan(to, "lost-grace", &c.grace)
}

// mostOnce is the longest --min-hold of --once. For longer differences between clocks there is --min-hold: the nodes keep
// a lock for the set's MaxTTL at most, so redlock would stay for the rest.
const mostOnce = 5 * time.Minute

// tick sets what --once stands for: --quiet-busy, which tries once, and --min-hold with half of the time between two
// ticks, mostOnce at most. So a machine whose clock is behind by less than that finds the lock held, and the next tick
// finds it free. The error names a flag or value that does not go with it.
func (c *holdConfig) tick(f *flags.Set) error {
	for _, other := range []string{"nonblock", "timeout", "min-hold"} {
		if f.Changed(other) {
			return exit.Fail(exit.Usage, "--once PERIOD tries once, and keeps the lock for half of PERIOD, 5m at most", "--once and --%s do not go together", other)
		}
	}
	c.MinHold, c.Silent = min(c.once/2, mostOnce), true
	switch {
	case c.once < leastPeriod:
		return exit.Fail(exit.Usage, "it is the time between two runs: 24h, say", "--once %v is too short: the least is %v", c.once, leastPeriod)
	case f.Changed("max-hold") && c.MaxHold < c.MinHold:
		return exit.Fail(exit.Usage, "CMD can be ended earlier without the lock: timeout 1m CMD", "--once %v keeps the lock for %v, which is more than --max-hold %v", c.once, c.MinHold, c.MaxHold)
	}
	return nil
}

// addSpan adds a flag for a duration that is not negative.
func addSpan(to *flags.Set, name string, d *time.Duration) {
	to.Value(name, "", func(value string) (err error) {
		if *d, err = flags.Duration("--"+name, value); err == nil && *d < 0 {
			return exit.Fail(exit.Usage, "see redlock help run", "--%s %s is negative", name, value)
		}
		return err
	})
}

// parse reads the arguments, and finds the command's program: a missing program must fail before the wait for the
// lock, not after an hour.
func (c *holdConfig) parse(f *flags.Set, args []string) error {
	example := "redlock " + f.Name() + " demo -- sh -c 'echo hello'"
	rest, err := f.Parse(args)
	// The key is the first argument, or follows flags if "--" marks the beginning of the command.
	named := err == nil && len(c.Keys) == 0 && len(rest) > 0 && f.ArgsLenAtDash() < 0 && (len(rest) == len(args) || slices.Contains(rest, "--"))
	if named {
		if err := c.AddKey("the key", rest[0]); err != nil {
			return err
		}
		rest, err = f.Parse(rest[1:])
	}
	if err != nil {
		return err
	}
	c.argv = rest
	if f.Changed("once") {
		if err := c.tick(f); err != nil {
			return err
		}
	}
	if err := c.Check(f, example); err != nil {
		return err
	}
	if !f.Changed("lost-grace") {
		c.grace = min(time.Second, c.TTL/4).Truncate(time.Millisecond)
	}
	switch {
	case named && len(rest) > 0 && f.ArgsLenAtDash() != 0:
		// If the key was forgotten, the first word of the command would be the key, and the second the program.
		return exit.Fail(exit.Usage, "for example: "+example, "-- is missing between the key %q and the command %q", c.Keys[0], rest[0])
	case c.grace > c.TTL/2:
		return exit.Fail(exit.Usage, "the lock is renewed every third of --ttl, and the command has to end before it does", "--lost-grace %v is more than half of --ttl %v", c.grace, c.TTL)
	case f.Changed("max-hold") && c.MaxHold < leastHold:
		return exit.Fail(exit.Usage, "it is how long the command may take", "--max-hold %v is too short: the least is %v", c.MaxHold, leastHold)
	case f.Changed("max-hold") && c.MinHold > c.MaxHold:
		return exit.Fail(exit.Usage, "", "--min-hold %v is more than --max-hold %v", c.MinHold, c.MaxHold)
	case len(c.argv) == 0:
		return exit.Fail(exit.Usage, "for example: "+example, "the command to run is missing")
	}
	if f.Changed("max-hold") {
		c.grace = min(c.grace, c.MaxHold/2) // the other half is the command's
	}
	if c.shell {
		c.argv = []string{"sh", "-c", strings.Join(c.argv, " ")}
	}
	if c.path, err = exec.LookPath(c.argv[0]); err != nil {
		return notExecutable(c.argv[0], err)
	}
	return nil
}
