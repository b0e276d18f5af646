package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
)

// chaosConfig is what the command line of redlock chaos says.
type chaosConfig struct {
	arenas    []*chaos.Arena
	all       bool // --arena all: those that there are here
	names     []string
	scenarios []*chaos.Scenario
	schedules int           // of each arena; 0: not said
	seed      uint64        // not said: a fresh one
	limit     time.Duration // of all arenas together; 0: not said
	nodes     int           // 0: not said
	ttl       time.Duration // 0: not said

	report, history, save string // files and a directory; "": none
	json, list            bool
}

const chaosFlags = "the flags are --arena, --scenario, --schedules, --seed, --for, --report, --history, --save, --nodes, --ttl, --json and --list; see redlock help chaos"

// parseChaos reads the arguments of redlock chaos.
func parseChaos(args []string) (*chaosConfig, error) {
	cfg := &chaosConfig{arenas: slices.Clone(usualArenas), seed: chaos.FreshSeed()}
	given := make(map[string]bool)
	flags := cfg.flags(given)
	switches := map[string]*bool{"--json": &cfg.json, "--list": &cfg.list}
	for len(args) > 0 {
		name, value, inline := strings.Cut(args[0], "=")
		set, takesValue := flags[name]
		on, isSwitch := switches[name]
		args = args[1:]
		switch {
		case name == "-h" || name == "--help":
			return nil, errHelp
		case isSwitch && inline:
			return nil, exit.Fail(exit.Usage, "", "%s takes no value", name)
		case isSwitch:
			*on = true
			given[name] = true
			continue
		case !takesValue && !strings.HasPrefix(name, "-"):
			return nil, exit.Fail(exit.Usage, "a name of several words goes in quotes: --scenario \"crashing nodes\", or has hyphens: crashing-nodes",
				"chaos: %q is not a flag", name)
		case !takesValue:
			return nil, exit.Fail(exit.Usage, chaosFlags, "chaos: unknown flag %s", name)
		case given[name] && name != "--arena" && name != "--scenario":
			return nil, exit.Fail(exit.Usage, "", "%s is given twice", name)
		case !inline && (len(args) == 0 || strings.HasPrefix(args[0], "--")):
			return nil, exit.Fail(exit.Usage, "if the value begins with dashes, write "+name+"=VALUE", "%s has no value", name)
		case !inline:
			value, args = args[0], args[1:]
		}
		if value == "" {
			return nil, exit.Fail(exit.Usage, "", "%s is empty", name)
		}
		if err := set(value); err != nil {
			return nil, err
		}
		given[name] = true
	}
	return cfg, cfg.check(given)
}

// flags are those that have a value.
func (cfg *chaosConfig) flags(given map[string]bool) map[string]func(string) error {
	text := func(to *string) func(string) error {
		return func(value string) error { *to = value; return nil }
	}
	number := func(flag string, to *int, most int, hint string) func(string) error {
		return func(value string) (err error) {
			*to, err = strconv.Atoi(value)
			switch {
			case err != nil && !errors.Is(err, strconv.ErrRange):
				return exit.Fail(exit.Usage, hint, "%s %q is not a whole number", flag, value)
			case *to < 1:
				return exit.Fail(exit.Usage, hint, "%s %s is too few: the least is 1", flag, value)
			case *to > most:
				return exit.Fail(exit.Usage, hint, "%s %s is too many: the most is %s", flag, value, phrase.Digits(most))
			}
			return nil
		}
	}
	return map[string]func(string) error{
		"--arena": func(value string) error {
			if !given["--arena"] {
				cfg.arenas = nil
			}
			return cfg.addArenas(value)
		},
		"--scenario": func(value string) error {
			cfg.names = append(cfg.names, strings.Split(value, ",")...)
			return nil
		},
		"--schedules": number("--schedules", &cfg.schedules, 1_000_000_000, "leave it out to have as many as there is time for"),
		"--nodes":     number("--nodes", &cfg.nodes, chaos.MostNodes, "leave it out to have what each scenario has"),
		"--seed": func(value string) (err error) {
			if cfg.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
				return exit.Fail(exit.Usage, "leave it out to have a fresh one", "--seed %q is not a whole number from 0 to 18446744073709551615", value)
			}
			return nil
		},
		"--for": func(value string) (err error) {
			if cfg.limit, err = duration("--for", value); err == nil && cfg.limit <= 0 {
				return exit.Fail(exit.Usage, "write 10m or 8h, say", "--for %s is no time at all", value)
			}
			return err
		},
		"--ttl": func(value string) (err error) {
			cfg.ttl, err = duration("--ttl", value)
			switch {
			case err != nil:
				return err
			case cfg.ttl < chaos.LeastTTL:
				return exit.Fail(exit.Usage, "leave it out to have what each scenario has", "--ttl %s is too short: the least is %v", value, chaos.LeastTTL)
			case cfg.ttl%time.Millisecond != 0:
				return exit.Fail(exit.Usage, "Redis counts milliseconds", "--ttl %s is not a whole number of milliseconds", value)
			}
			return nil
		},
		"--report":  text(&cfg.report),
		"--history": text(&cfg.history),
		"--save":    text(&cfg.save),
	}
}

// addArenas takes one name, or several with commas between them.
func (cfg *chaosConfig) addArenas(value string) error {
	for name := range strings.SplitSeq(value, ",") {
		if name == "all" {
			cfg.all = true
			cfg.arenas = slices.Clone(chaos.Arenas)
			continue
		}
		i := slices.IndexFunc(chaos.Arenas, func(a *chaos.Arena) bool { return a.Name == name })
		if i < 0 {
			var names []string
			for _, a := range chaos.Arenas {
				names = append(names, a.Name)
			}
			return exit.Fail(exit.Usage, "the arenas are "+strings.Join(names, ", ")+" and all", "--arena: there is no arena %q", name)
		}
		if !slices.Contains(cfg.arenas, chaos.Arenas[i]) {
			cfg.arenas = append(cfg.arenas, chaos.Arenas[i])
		}
	}
	return nil
}

// check checks the flags as a set, and finds the scenarios.
func (cfg *chaosConfig) check(given map[string]bool) (err error) {
	if delete(given, "--json"); cfg.list && len(given) > 1 {
		return exit.Fail(exit.Usage, "", "--list goes with --json and with nothing else")
	}
	if cfg.scenarios, err = chaos.FindScenarios(cfg.names); err != nil {
		var unknown *chaos.UnknownScenario
		if errors.As(err, &unknown) {
			return exit.Fail(exit.Usage, "there are: "+strings.Join(unknown.Closest(), ", ")+"; see redlock chaos --list",
				"--scenario: there is no scenario %q", unknown.Name)
		}
		return exit.Fail(exit.Usage, "", "--scenario: %v", err)
	}
	if err := chaos.CheckOptions(cfg.options(), cfg.nodes, cfg.scenarios); err != nil {
		return exit.Fail(exit.Usage, "", "the locks cannot be had: %v", err)
	}
	if cfg.history != "" && !cfg.replays() {
		return exit.Fail(exit.Usage, "give one --arena and one --scenario, --seed, and --schedules 1; --save DIR keeps those that violate something",
			"--history is of one schedule")
	}
	return nil
}

// replays reports whether the flags name one schedule, to be shown in full.
func (cfg *chaosConfig) replays() bool {
	return cfg.schedules == 1 && len(cfg.arenas) == 1 && len(cfg.names) == 1
}

// options are nil if nothing is said of any.
func (cfg *chaosConfig) options() *redlock.Options {
	if cfg.ttl == 0 {
		return nil
	}
	return &redlock.Options{TTL: cfg.ttl}
}
