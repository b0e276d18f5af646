package main

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
)

// errHelp says that help was asked for among the flags.
var errHelp = errors.New("help")

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
			return nil, nil, exit.Fail(exit.Usage, "the flags are "+strings.Join(append(slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(switches))...), ", ")+"; see redlock help "+command,
				"%s: unknown flag %s", command, name)
		case given[name] && name != "--node" && name != "--nodes" && name != "--key":
			return nil, nil, exit.Fail(exit.Usage, "of all flags, only --node, --nodes and --key may be repeated", "%s is given twice", name)
		case isSwitch && inline:
			return nil, nil, exit.Fail(exit.Usage, "", "%s takes no value", name)
		case isSwitch:
			*on, given[name] = true, true
			continue
		case !inline && (len(args) == 0 || strings.HasPrefix(args[0], "--")):
			return nil, nil, exit.Fail(exit.Usage, "if the value begins with dashes, write "+name+"=VALUE", "%s has no value", name)
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
		return 0, exit.Fail(exit.Usage, "write 500ms, 30s or 1m30s, say", "%s %q is not a duration", flag, value)
	}
	return d, nil
}
