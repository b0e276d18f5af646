package main

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	timeout time.Duration // negative: none
}

// runConfig is what the command line of redlock run says.
type runConfig struct {
	lockFlags
	keys      []string // one at least
	shared    bool
	slots     int // 0: it is no matter of slots
	separator string
	argv      []string // the command
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
	return append(options, redlock.Renewed())
}

// prepareConfig is what the command line of redlock prepare says.
type prepareConfig struct {
	lockFlags
	noWait bool
}

const (
	defaultTTL = 10 * time.Second

	// leastTTL is far above what the library takes. But with less, a busy machine
	// that comes late to a renewal is enough to lose the lock, and the command.
	leastTTL = 100 * time.Millisecond
)

// parseRun reads the arguments of redlock run.
func parseRun(args []string) (*runConfig, error) {
	cfg := &runConfig{lockFlags: noFlags}
	values := cfg.values()
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
	values["--separator"] = func(value string) error {
		if cfg.separator = value; value == "" {
			return fail(exitUsage, "leave it out if keys are no paths", "--separator is empty")
		}
		return nil
	}
	given, rest, err := scan("run", args, values, map[string]*bool{"--shared": &cfg.shared})
	if err != nil {
		return nil, err
	}
	cfg.argv = rest
	const example = "for example: redlock run --key demo -- sh -c 'echo hello'"
	switch {
	case !given["--key"]:
		return nil, fail(exitUsage, example, "--key is missing: the name of the lock")
	case given["--slots"] && cfg.shared:
		return nil, fail(exitUsage, "one command has one slot alone", "--slots and --shared do not go together")
	case given["--slots"] && len(cfg.keys) > 1:
		return nil, fail(exitUsage, "a slot is of one key", "--slots and several --key do not go together")
	case len(cfg.argv) == 0:
		return nil, fail(exitUsage, example, "the command to run is missing")
	}
	return cfg, nil
}

// parsePrepare reads the arguments of redlock prepare.
func parsePrepare(args []string) (*prepareConfig, error) {
	cfg := &prepareConfig{lockFlags: noFlags}
	given, rest, err := scan("prepare", args, cfg.values(), map[string]*bool{"--no-wait": &cfg.noWait})
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, fail(exitUsage, "see redlock help prepare", "prepare takes flags only, and was given %q", rest[0])
	case cfg.noWait && given["--timeout"]:
		return nil, fail(exitUsage, "--timeout 0s asks once whether all nodes vote", "--no-wait and --timeout do not go together")
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
		"--ttl": func(value string) (err error) {
			f.ttl, err = duration("--ttl", value)
			switch {
			case err != nil:
				return err
			case f.ttl < leastTTL:
				return fail(exitUsage, "the default is 10s", "--ttl %s is too short: the least is %v", value, leastTTL)
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
		set, takesValue := values[name]
		on, isSwitch := switches[name]
		switch {
		case slices.Contains([]string{"-h", "--help"}, arg):
			return nil, nil, errHelp
		case !takesValue && !isSwitch:
			return nil, nil, fail(exitUsage, "the flags are "+strings.Join(append(slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(switches))...), ", ")+"; see redlock help "+command,
				"%s: unknown flag %s", command, name)
		case given[name] && name != "--node" && name != "--key":
			return nil, nil, fail(exitUsage, "of all flags, only --node and --key may be repeated", "%s is given twice", name)
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
