package main

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/redlock"
	lua "github.com/quorumlock/redlock/internal/script"
)

// errHelp says that help was asked for among the flags.
var errHelp = errors.New("help")

// lockFlags are those that everybody needs who uses the nodes.
type lockFlags struct {
	nodes   []string // the values of --node as they are; nil: none
	ttl     time.Duration
	maxTTL  time.Duration // 0: it is not said
	timeout time.Duration // negative: none
}

// runConfig is what the command line of redlock run says.
type runConfig struct {
	lockFlags
	embedded  bool     // on nodes inside this process
	keys      []string // one at least
	shared    bool
	slots     int // 0: it is no matter of slots
	separator string

	busy             int // what to exit with when others have the lock
	minHold, maxHold time.Duration
	signal           string // which ends the command when the lock does: its name
	sign             syscall.Signal
	grace            time.Duration // how long it has then
	shell            bool
	elect            bool
	argv             []string // the command
	path             string   // where it is
}

// kind is what is asked of the library beyond the first key.
func (c *runConfig) kind() (options []redlock.AcquireOption) {
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
	return append(options, redlock.Renewed())
}

// prepareConfig is what the command line of redlock prepare says.
type prepareConfig struct {
	lockFlags
	noWait bool
	reset  []string // nodes whose numbers of the future are to be dropped
}

const (
	defaultTTL = 10 * time.Second

	// leastTTL is far above what the library takes. But with less, a busy machine
	// that comes late to a renewal is enough to lose the lock, and the command.
	leastTTL = 100 * time.Millisecond

	// mostTTL is the most that the library takes.
	mostTTL = 365 * 24 * time.Hour
)

// parseRun reads the arguments of redlock run, elect, or lock.
func parseRun(command string, args []string) (*runConfig, error) {
	cfg := &runConfig{elect: command == "elect", lockFlags: noFlags, busy: exitBusy, signal: "TERM", sign: syscall.SIGTERM, grace: -1}
	values := cfg.values()
	values["--max-ttl"] = cfg.takeMaxTTL
	nonblock := false
	values["--key"] = func(value string) error {
		cfg.keys = append(cfg.keys, value)
		switch {
		case value == "":
			return fail(exitUsage, "give the lock a name", "--key is empty")
		case lua.Lasting(value):
			return fail(exitUsage, "take another name", "--key %s is what the nodes keep something else under", value)
		}
		return nil
	}
	values["--slots"] = func(value string) (err error) {
		if cfg.slots, err = strconv.Atoi(value); err != nil || cfg.slots < 1 || cfg.slots > redlock.MaxSlots {
			return fail(exitUsage, "it is how many may have the lock at a time", "--slots %s is not a number from 1 to %d", value, redlock.MaxSlots)
		}
		return nil
	}
	values["--separator"] = separator(&cfg.separator)
	values["--conflict-exit-code"] = func(value string) (err error) {
		if cfg.busy, err = strconv.Atoi(value); err != nil || cfg.busy < 0 || cfg.busy > 255 {
			return fail(exitUsage, "it is what to exit with when others have the lock", "--conflict-exit-code %s is not a number from 0 to 255", value)
		}
		return nil
	}
	values["--lost-signal"] = func(value string) error {
		cfg.signal = strings.TrimPrefix(strings.ToUpper(value), "SIG")
		if cfg.sign = signalNames[cfg.signal]; cfg.sign == 0 {
			return fail(exitUsage, "they are "+strings.Join(slices.Sorted(maps.Keys(signalNames)), ", "), "--lost-signal %s is no signal that can be sent here", value)
		}
		return nil
	}
	for name, d := range map[string]*time.Duration{"--min-hold": &cfg.minHold, "--max-hold": &cfg.maxHold, "--lost-grace": &cfg.grace} {
		values[name] = func(value string) (err error) {
			if *d, err = duration(name, value); err == nil && *d < 0 {
				return fail(exitUsage, "see redlock help run", "%s %s is negative", name, value)
			}
			return err
		}
	}
	switches := map[string]*bool{"--embedded": &cfg.embedded, "--shared": &cfg.shared, "--nonblock": &nonblock, "--shell": &cfg.shell}
	if cfg.elect { // it waits for as long as it takes, and there is one leader
		for _, name := range []string{"--timeout", "--conflict-exit-code", "--min-hold", "--max-hold", "--slots"} {
			delete(values, name)
		}
		delete(switches, "--nonblock")
		delete(switches, "--shared")
	}
	if command == "lock" { // there is no command
		for _, name := range []string{"--min-hold", "--max-hold", "--lost-signal", "--lost-grace"} {
			delete(values, name)
		}
		delete(switches, "--shell")
		delete(switches, "--embedded") // they would be gone when it has printed the lock
	}
	given, rest, err := scan(command, args, values, switches)
	if err != nil {
		return nil, err
	}
	cfg.argv = rest
	if nonblock {
		cfg.timeout = 0
	}
	if !given["--lost-grace"] {
		cfg.grace = min(time.Second, cfg.ttl/4).Truncate(time.Millisecond)
	}
	example := "for example: redlock " + command + " --key demo -- sh -c 'echo hello'"
	if command == "lock" {
		example = "for example: lock=$(redlock lock --key demo)"
	}
	switch {
	case !given["--key"]:
		return nil, fail(exitUsage, example, "--key is missing: the name of the lock")
	case given["--slots"] && cfg.shared:
		return nil, fail(exitUsage, "one command has one slot alone", "--slots and --shared do not go together")
	case given["--slots"] && len(cfg.keys) > 1:
		return nil, fail(exitUsage, "a slot is of one key", "--slots and several --key do not go together")
	case nonblock && given["--timeout"]:
		return nil, fail(exitUsage, "--nonblock is --timeout 0s", "--nonblock and --timeout do not go together")
	case cfg.grace > cfg.ttl/2:
		return nil, fail(exitUsage, "the lock is renewed every third of --ttl, and the command has to end before it does", "--lost-grace %v is more than half of --ttl %v", cfg.grace, cfg.ttl)
	case given["--max-hold"] && cfg.maxHold < cfg.grace+cfg.ttl/10:
		return nil, fail(exitUsage, "it has to leave time for the command besides --lost-grace", "--max-hold %v is too short for --lost-grace %v and --ttl %v", cfg.maxHold, cfg.grace, cfg.ttl)
	case given["--max-hold"] && cfg.minHold > cfg.maxHold:
		return nil, fail(exitUsage, "", "--min-hold %v is more than --max-hold %v", cfg.minHold, cfg.maxHold)
	case command == "lock" && len(cfg.argv) > 0:
		return nil, fail(exitUsage, "redlock run has a command run under a lock", "lock takes flags only, and was given %q", cfg.argv[0])
	case command != "lock" && len(cfg.argv) == 0:
		return nil, fail(exitUsage, example, "the command to run is missing")
	}
	return cfg, nil
}

// parsePrepare reads the arguments of redlock prepare.
func parsePrepare(args []string) (*prepareConfig, error) {
	cfg := &prepareConfig{lockFlags: noFlags}
	values := cfg.values()
	values["--max-ttl"] = cfg.takeMaxTTL
	values["--reset-fences"] = func(value string) error {
		cfg.reset = append(cfg.reset, strings.Split(value, ",")...)
		return nil
	}
	given, rest, err := scan("prepare", args, values, map[string]*bool{"--no-wait": &cfg.noWait})
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, fail(exitUsage, "see redlock help prepare", "prepare takes flags only, and was given %q", rest[0])
	case cfg.noWait && given["--timeout"]:
		return nil, fail(exitUsage, "--timeout 0s asks once whether all nodes vote", "--no-wait and --timeout do not go together")
	case cfg.noWait && given["--reset-fences"]:
		return nil, fail(exitUsage, "what is to be forgotten goes when the nodes vote again", "--no-wait and --reset-fences do not go together")
	}
	return cfg, nil
}

// noFlags is what counts where nothing is said.
var noFlags = lockFlags{ttl: defaultTTL, timeout: -1}

// values are the flags, each with what takes its value in.
func (f *lockFlags) values() map[string]func(value string) error {
	return map[string]func(value string) error{
		"--node": func(value string) error {
			f.nodes = append(f.nodes, value)
			return nil
		},
		"--nodes": func(value string) error {
			found, err := readNodes("--nodes", value)
			f.nodes = append(f.nodes, found...)
			return err
		},
		"--ttl": func(value string) (err error) {
			f.ttl, err = duration("--ttl", value)
			switch {
			case err != nil:
				return err
			case f.ttl < leastTTL:
				return fail(exitUsage, "the default is 10s", "--ttl %s is too short: the least is %v", value, leastTTL)
			case f.ttl > mostTTL:
				return fail(exitUsage, "the default is 10s", "--ttl %s is too long: the most is %v", value, mostTTL)
			case f.ttl%time.Millisecond != 0:
				return fail(exitUsage, "Redis counts milliseconds", "--ttl %s is not a whole number of milliseconds", value)
			}
			return nil
		},
		"--timeout": func(value string) (err error) {
			f.timeout, err = duration("--timeout", value)
			if err == nil && f.timeout < 0 {
				return fail(exitUsage, "0s asks once; leave --timeout out to wait for as long as it takes", "--timeout %s is negative", value)
			}
			return err
		},
	}
}

// maxTTLVariable has --max-ttl in one place for all who use the same nodes.
const maxTTLVariable = "REDLOCK_MAX_TTL"

// takeMaxTTL takes the value of --max-ttl in.
func (f *lockFlags) takeMaxTTL(value string) (err error) {
	f.maxTTL, err = maxTTL("--max-ttl", value)
	return err
}

func maxTTL(source, value string) (time.Duration, error) {
	d, err := duration(source, value)
	if err == nil && !canBeTTL(d) {
		err = fail(exitUsage, "it is the longest --ttl of anybody on these nodes", "%s %s is not a --ttl that there can be", source, value)
	}
	return d, err
}

// canBeTTL reports whether a --ttl can have this value.
func canBeTTL(d time.Duration) bool {
	return d >= leastTTL && d <= mostTTL && d%time.Millisecond == 0
}

// options are those of a Locker by which everybody on the same nodes goes.
func (f *lockFlags) options(env []string) (*redlock.Options, error) {
	o, source := &redlock.Options{TTL: f.ttl, MaxTTL: f.maxTTL}, "--max-ttl"
	if value, ok := lookup(env, maxTTLVariable); ok && o.MaxTTL == 0 {
		source = maxTTLVariable
		var err error
		if o.MaxTTL, err = maxTTL(source, value); err != nil {
			return nil, err
		}
	}
	if o.MaxTTL > 0 && o.MaxTTL < f.ttl {
		return nil, fail(exitUsage, "it is the longest --ttl of anybody on these nodes", "--ttl %v is longer than %s %v", f.ttl, source, o.MaxTTL)
	}
	return o, nil
}

// options are those for the lock, too.
func (c *runConfig) options(env []string) (*redlock.Options, error) {
	o, err := c.lockFlags.options(env)
	if err == nil {
		o.Separator = c.separator
	}
	return o, err
}

// separator takes the value of --separator in.
func separator(to *string) func(value string) error {
	return func(value string) error {
		if *to = value; value == "" {
			return fail(exitUsage, "leave it out if keys are no paths", "--separator is empty")
		}
		return nil
	}
}

// flockNames are the flags that have a second name, that of flock.
var flockNames = map[string]string{"-n": "--nonblock", "-w": "--timeout", "-E": "--conflict-exit-code", "-s": "--shared"}

// scanAround is scan for a command with one argument, which may come before the flags:
// redlock status KEY --json.
func scanAround(command string, args []string, values map[string]func(value string) error, switches map[string]*bool) (rest []string, err error) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		_, rest, err = scan(command, args, values, switches)
		return rest, err
	}
	_, rest, err = scan(command, args[1:], values, switches)
	return append(args[:1:1], rest...), err
}

// scan reads the flags at the beginning of a command's arguments, and gives those
// that are there, and what comes after them. It is written out, and not the flag
// package's, for errors that name flag and value, and to refuse what that one lets
// pass: a second --ttl would replace the first without a word.
func scan(command string, args []string, values map[string]func(value string) error, switches map[string]*bool) (given map[string]bool, rest []string, err error) {
	given = make(map[string]bool)
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		name, value, inline := strings.Cut(arg, "=")
		name = cmp.Or(flockNames[name], name)
		set, takesValue := values[name]
		on, isSwitch := switches[name]
		switch {
		case slices.Contains([]string{"-h", "--help"}, arg):
			return nil, nil, errHelp
		case !takesValue && !isSwitch:
			return nil, nil, fail(exitUsage, "the flags are "+strings.Join(append(slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(switches))...), ", ")+"; see redlock help "+command,
				"%s: unknown flag %s", command, name)
		case given[name] && name != "--node" && name != "--nodes" && name != "--key":
			return nil, nil, fail(exitUsage, "of all flags, only --node, --nodes and --key may be repeated", "%s is given twice", name)
		case isSwitch && inline:
			return nil, nil, fail(exitUsage, "", "%s takes no value", name)
		case isSwitch:
			*on, given[name] = true, true
			continue
		case !inline && (len(args) == 0 || strings.HasPrefix(args[0], "--")):
			return nil, nil, fail(exitUsage, "if the value begins with dashes, write "+name+"=VALUE", "%s has no value", name)
		case !inline:
			value, args = args[0], args[1:]
		}
		given[name] = true
		if err := set(value); err != nil {
			return nil, nil, err
		}
	}
	return given, args, nil
}

func duration(flag, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fail(exitUsage, "write 500ms, 30s or 1m30s, say", "%s %q is not a duration", flag, value)
	}
	return d, nil
}
