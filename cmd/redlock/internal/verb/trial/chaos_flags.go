package trial

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
)

// chaosConfig has the flags of redlock chaos.
type chaosConfig struct {
	arenas    []*chaos.Arena
	all       bool // --arena all: skip arenas that cannot run here
	names     []string
	scenarios []*chaos.Scenario
	schedules int           // of each arena; 0: not given
	seed      uint64        // default: a fresh one
	limit     time.Duration // of all arenas together; 0: not given
	nodes     int           // 0: not given
	ttl       time.Duration // 0: not given

	report, history, save string // files and a directory; "": none
	json, list, coverage  bool
}

// parseChaos reads the arguments of redlock chaos.
func parseChaos(args []string) (*chaosConfig, error) {
	cfg := &chaosConfig{arenas: slices.Clone(usualArenas), seed: chaos.FreshSeed()}
	f := flags.New("chaos")
	f.Toggle("json", "", &cfg.json)
	f.Toggle("list", "", &cfg.list)
	f.Toggle("coverage", "", &cfg.coverage)
	f.Values("arena", func(value string) error {
		if !f.Changed("arena") {
			cfg.arenas = nil
		}
		return cfg.addArenas(value)
	})
	f.Values("scenario", func(value string) error {
		cfg.names = append(cfg.names, strings.Split(value, ",")...)
		return nil
	})
	addNumber(f, "schedules", &cfg.schedules, 1_000_000_000, "leave it out for as many as there is time for")
	addNumber(f, "nodes", &cfg.nodes, chaos.MostNodes, "leave it out for the default of each scenario")
	f.Value("seed", "", func(value string) (err error) {
		if cfg.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return exit.Fail(exit.Usage, "leave it out for a fresh one", "--seed %q is not a whole number from 0 to 18446744073709551615", value)
		}
		return nil
	})
	f.Value("for", "", func(value string) (err error) {
		if cfg.limit, err = flags.Duration("--for", value); err == nil && cfg.limit <= 0 {
			return exit.Fail(exit.Usage, "write 10m or 8h, say", "--for %s is not longer than 0", value)
		}
		return err
	})
	f.Value("ttl", "", func(value string) (err error) {
		cfg.ttl, err = flags.Duration("--ttl", value)
		switch {
		case err != nil:
			return err
		case cfg.ttl < chaos.LeastTTL:
			return exit.Fail(exit.Usage, "leave it out for the default of each scenario", "--ttl %s is too short: the least is %v", value, chaos.LeastTTL)
		case cfg.ttl%time.Millisecond != 0:
			return exit.Fail(exit.Usage, "Redis counts milliseconds", "--ttl %s is not a whole number of milliseconds", value)
		}
		return nil
	})
	for name, to := range map[string]*string{"report": &cfg.report, "history": &cfg.history, "save": &cfg.save} {
		f.Text(name, "", to)
	}
	rest, err := f.Parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, exit.Fail(exit.Usage, "a name of several words goes in quotes: --scenario \"crashing nodes\", or has hyphens: crashing-nodes",
			"chaos: %q is not a flag", rest[0])
	case cfg.list && f.NFlag() > 1 && (f.NFlag() > 2 || !cfg.json):
		return nil, exit.Fail(exit.Usage, "", "--list goes with --json and with nothing else")
	}
	return cfg, cfg.check()
}

// addNumber adds a flag whose value is a number from 1 to most.
func addNumber(to *flags.Set, name string, n *int, most int, hint string) {
	to.Value(name, "", func(value string) (err error) {
		*n, err = strconv.Atoi(value)
		switch {
		case err != nil && !errors.Is(err, strconv.ErrRange):
			return exit.Fail(exit.Usage, hint, "--%s %q is not a whole number", name, value)
		case *n < 1:
			return exit.Fail(exit.Usage, hint, "--%s %s is too few: the least is 1", name, value)
		case *n > most:
			return exit.Fail(exit.Usage, hint, "--%s %s is too many: the most is %s", name, value, phrase.Digits(most))
		}
		return nil
	})
}

// addArenas adds the arenas that a value of --arena names.
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

// check returns an error if the flags do not fit together, and finds the scenarios that they name.
func (cfg *chaosConfig) check() (err error) {
	if cfg.scenarios, err = chaos.FindScenarios(cfg.names); err != nil {
		var unknown *chaos.UnknownScenario
		if errors.As(err, &unknown) {
			return exit.Fail(exit.Usage, "there are: "+strings.Join(unknown.Closest(), ", ")+"; see redlock chaos --list",
				"--scenario: there is no scenario %q", unknown.Name)
		}
		return exit.Fail(exit.Usage, "", "--scenario: %v", err)
	}
	if err := chaos.CheckOptions(cfg.options(), cfg.nodes, cfg.scenarios); err != nil {
		return exit.Fail(exit.Usage, "", "no lock can have these options: %v", err)
	}
	if cfg.history != "" && !cfg.replays() {
		return exit.Fail(exit.Usage, "give one --arena and one --scenario, --seed, and --schedules 1; --save DIR keeps those with violations",
			"--history is of one schedule")
	}
	if cfg.coverage && !slices.Contains(cfg.arenas, chaos.Model) {
		return exit.Fail(exit.Usage, "give --arena model", "--coverage counts in the arena model alone")
	}
	return nil
}

// replays reports whether the flags name exactly one schedule, which is shown in full.
func (cfg *chaosConfig) replays() bool {
	return cfg.schedules == 1 && len(cfg.arenas) == 1 && len(cfg.names) == 1
}

// options returns the options of the clients; nil if no flag sets one.
func (cfg *chaosConfig) options() *redlock.Options {
	if cfg.ttl == 0 {
		return nil
	}
	return &redlock.Options{TTL: cfg.ttl}
}
