package main

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// errHelp says that help was asked for among the flags.
var errHelp = errors.New("help")

// runConfig is what the command line of redlock run says.
type runConfig struct {
	key     string
	nodes   []string // the values of --node as they are; nil: none
	ttl     time.Duration
	timeout time.Duration // negative: none
	argv    []string      // the command
}

const (
	defaultTTL = 10 * time.Second

	// leastTTL is far above what the library takes. But with less, a busy machine
	// that comes late to a renewal is enough to lose the lock, and the command.
	leastTTL = 100 * time.Millisecond
)

// parseRun reads the arguments of redlock run. It is written out, and not the
// flag package's, for errors that name flag and value, and to refuse what that
// one lets pass: a second --key would replace the first without a word, where
// somebody may have meant to lock both.
func parseRun(args []string) (*runConfig, error) {
	cfg := &runConfig{ttl: defaultTTL, timeout: -1}
	flags := map[string]func(value string) error{
		"--key": func(value string) error {
			cfg.key = value
			if value == "" {
				return fail(exitUsage, "give the lock a name", "--key is empty")
			}
			return nil
		},
		"--node": func(value string) error {
			cfg.nodes = append(cfg.nodes, value)
			return nil
		},
		"--ttl": func(value string) (err error) {
			cfg.ttl, err = duration("--ttl", value)
			switch {
			case err != nil:
				return err
			case cfg.ttl < leastTTL:
				return fail(exitUsage, "the default is 10s", "--ttl %s is too short: the least is %v", value, leastTTL)
			case cfg.ttl%time.Millisecond != 0:
				return fail(exitUsage, "Redis counts milliseconds", "--ttl %s is not a whole number of milliseconds", value)
			}
			return nil
		},
		"--timeout": func(value string) (err error) {
			cfg.timeout, err = duration("--timeout", value)
			if err == nil && cfg.timeout < 0 {
				return fail(exitUsage, "0s asks once; leave --timeout out to wait for as long as it takes", "--timeout %s is negative", value)
			}
			return err
		},
	}

	given := make(map[string]bool)
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		name, value, inline := strings.Cut(arg, "=")
		set, known := flags[name]
		switch {
		case slices.Contains([]string{"-h", "--help"}, arg):
			return nil, errHelp
		case !known:
			return nil, fail(exitUsage, "the flags are --key, --node, --ttl and --timeout, then -- and the command; see redlock help run",
				"run: unknown flag %s", name)
		case given[name] && name != "--node":
			return nil, fail(exitUsage, "one lock has one", "%s is given twice", name)
		case !inline && (len(args) == 0 || strings.HasPrefix(args[0], "--")):
			return nil, fail(exitUsage, "if the value begins with dashes, write "+name+"=VALUE", "%s has no value", name)
		case !inline:
			value, args = args[0], args[1:]
		}
		given[name] = true
		if err := set(value); err != nil {
			return nil, err
		}
	}
	cfg.argv = args
	const example = "for example: redlock run --key demo -- sh -c 'echo hello'"
	switch {
	case !given["--key"]:
		return nil, fail(exitUsage, example, "--key is missing: the name of the lock")
	case len(cfg.argv) == 0:
		return nil, fail(exitUsage, example, "the command to run is missing")
	}
	return cfg, nil
}

func duration(flag, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fail(exitUsage, "write 500ms, 30s or 1m30s, say", "%s %q is not a duration", flag, value)
	}
	return d, nil
}
