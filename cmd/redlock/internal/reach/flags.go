package reach

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/internal/wire"
)

// Flags are the flags that name the nodes, and those that several verbs have.
type Flags struct {
	nodes   []string // the values of --node, and the lines of the files of --nodes; nil: neither was given
	secret  []string // the files of --nodes with a password
	config  string   // the configuration file; "": not given
	Quiet   bool     // only errors
	TTL     time.Duration
	Timeout time.Duration // negative: none
	owner   string        // "": the library's default

	// All clients of the same nodes must agree on these.
	Prefix     *string // nil: not given
	Separator  string
	MaxTTL     time.Duration // 0: not given
	MaxTTLFrom string        // the flag, the variable, or the line of the configuration file
}

const (
	DefaultTTL = 10 * time.Second

	// LeastTTL is far above the library's least. With a shorter TTL, one late renewal on a busy machine loses the
	// lock, and with it the command.
	LeastTTL = 100 * time.Millisecond

	// mostTTL is the library's longest TTL.
	mostTTL = 365 * 24 * time.Hour
)

// Defaults are the Flags of a command line without flags.
var Defaults = Flags{TTL: DefaultTTL, Timeout: -1}

// AddNodes adds the flags that name the nodes, --quiet and --prefix.
func (f *Flags) AddNodes(to *flags.Set) {
	to.Values("node", func(value string) error {
		f.nodes = append(f.nodes, value)
		return nil
	})
	to.Values("nodes", func(value string) error {
		found, err := readNodes("--nodes", value)
		if f.nodes = append(f.nodes, found...); slices.ContainsFunc(found, hasPassword) {
			f.secret = append(f.secret, value)
		}
		return err
	})
	to.Text("config", "leave it out, or give a file; see redlock help config", &f.config)
	to.Toggle("quiet", "q", &f.Quiet)
	to.Value("prefix", "", func(value string) error {
		f.Prefix = &value
		return nil
	})
}

// AddTTL adds --ttl.
func (f *Flags) AddTTL(to *flags.Set) {
	to.Value("ttl", "", func(value string) (err error) {
		f.TTL, err = flags.Duration("--ttl", value)
		switch {
		case err != nil:
			return err
		case f.TTL < LeastTTL:
			return exit.Fail(exit.Usage, "the default is 10s", "--ttl %s is too short: the least is %v", value, LeastTTL)
		case f.TTL > mostTTL:
			return exit.Fail(exit.Usage, "the default is 10s", "--ttl %s is too long: the most is %v", value, mostTTL)
		case f.TTL%time.Millisecond != 0:
			return exit.Fail(exit.Usage, "Redis counts milliseconds", "--ttl %s is not a whole number of milliseconds", value)
		}
		return nil
	})
}

// AddEvery adds --every: the pause between two looks.
func AddEvery(to *flags.Set, every *time.Duration) {
	to.Value("every", "", func(value string) (err error) {
		if *every, err = flags.Duration("--every", value); err == nil && *every < LeastTTL {
			return exit.Fail(exit.Usage, "the default is 1s", "--every %s is too often: the least is %v", value, LeastTTL)
		}
		return err
	})
}

// AddTimeout adds --timeout.
func (f *Flags) AddTimeout(to *flags.Set) {
	to.Value("timeout", "w", func(value string) (err error) {
		f.Timeout, err = flags.Duration("--timeout", value)
		if err == nil && f.Timeout < 0 {
			return exit.Fail(exit.Usage, "0s asks once; leave --timeout out to wait without limit", "--timeout %s is negative", value)
		}
		return err
	})
}

// MaxTTLVariable is the environment variable for --max-ttl.
const MaxTTLVariable = "REDLOCK_MAX_TTL"

// PrefixVariable is the environment variable for --prefix.
const PrefixVariable = "REDLOCK_PREFIX"

// AddMaxTTL adds --max-ttl.
func (f *Flags) AddMaxTTL(to *flags.Set) {
	to.Value("max-ttl", "", func(value string) (err error) {
		f.MaxTTLFrom = "--max-ttl"
		f.MaxTTL, err = MaxTTL(f.MaxTTLFrom, value)
		return err
	})
}

// MaxTTL parses the longest TTL of a set. The error names source.
func MaxTTL(source, value string) (time.Duration, error) {
	d, err := flags.Duration(source, value)
	if err == nil && !CanBeTTL(d) {
		err = exit.Fail(exit.Usage, "it is the longest --ttl that a new set allows", "%s %s is not a value that --ttl can have", source, value)
	}
	return d, err
}

// OwnerVariable is the environment variable for --owner.
const OwnerVariable = "REDLOCK_OWNER"

// AddOwner adds --owner: who has the lock.
func (f *Flags) AddOwner(to *flags.Set) {
	to.Value("owner", "", func(value string) error {
		if f.owner = value; value == "" {
			return exit.Fail(exit.Usage, "leave it out: the default is the host's name and the process id", "--owner is empty")
		}
		return checkOwner("--owner", value)
	})
}

func checkOwner(source, value string) error {
	if len(value) > redlock.MaxOwner {
		return exit.Fail(exit.Usage, "others see it when they look at the lock", "%s is too long: it has %d bytes, and the most is %d", source, len(value), redlock.MaxOwner)
	}
	return nil
}

// CanBeTTL reports whether --ttl accepts the duration d.
func CanBeTTL(d time.Duration) bool {
	return d >= LeastTTL && d <= mostTTL && d%time.Millisecond == 0
}

// complete sets what the flags leave open from the environment, and what both leave open from the configuration file.
func (f *Flags) complete(env []string, file *config) (err error) {
	from := "--prefix"
	if value, ok := console.Lookup(env, PrefixVariable); ok && f.Prefix == nil {
		f.Prefix, from = &value, PrefixVariable
	}
	if value := file.get("prefix"); f.Prefix == nil {
		f.Prefix, from = &value, file.where("prefix")
	}
	if len(*f.Prefix) >= redlock.MaxName {
		return exit.Fail(exit.Usage, "it begins the names of all locks", "%s is too long: it has %d bytes, and the most is %d", from, len(*f.Prefix), redlock.MaxName-1)
	}
	f.Separator = cmp.Or(f.Separator, file.get("separator"))
	if value, ok := console.Lookup(env, OwnerVariable); ok && f.owner == "" {
		if f.owner, err = value, checkOwner(OwnerVariable, value); err != nil {
			return err
		}
	}
	if f.MaxTTL > 0 {
		return nil
	}
	if value, ok := console.Lookup(env, MaxTTLVariable); ok {
		f.MaxTTLFrom = MaxTTLVariable
		f.MaxTTL, err = MaxTTL(f.MaxTTLFrom, value)
	} else if value := file.get("max-ttl"); value != "" {
		f.MaxTTLFrom = file.where("max-ttl")
		f.MaxTTL, err = MaxTTL(f.MaxTTLFrom, value)
	}
	return err
}

// Options returns the options of a Locker that acquires locks. Nodes must have been called before: it completes the
// flags.
func (f *Flags) Options() (*redlock.Options, error) {
	if f.MaxTTL > 0 && f.MaxTTL < f.TTL {
		return nil, exit.Fail(exit.Usage, "it is the longest --ttl that a new set allows", "--ttl %v is longer than %s %v", f.TTL, f.MaxTTLFrom, f.MaxTTL)
	}
	return &redlock.Options{TTL: f.TTL, MaxTTL: f.MaxTTL, Prefix: *f.Prefix, Separator: f.Separator, Owner: f.owner}, nil
}

// LookOptions returns the options of a Locker that inspects and acquires nothing. Its quarantines are those of the
// set, also where the set allows less than the default. Like Options, it needs complete flags.
func (f *Flags) LookOptions(d *peek.View) *redlock.Options {
	ttl, most := f.TTL, f.MaxTTL
	if most > 0 {
		ttl = min(ttl, most)
	}
	if d.Set != nil {
		ttl = wire.Milliseconds(d.Set.MaxTTL)
		most = ttl
	}
	return &redlock.Options{TTL: ttl, MaxTTL: most, NodeTimeout: min(peek.Patience, ttl/2), Prefix: *f.Prefix, Separator: f.Separator}
}

// AddSeparator adds --separator: what divides the names of locks into paths.
func (f *Flags) AddSeparator(to *flags.Set) {
	to.Text("separator", "leave it out if keys are no paths", &f.Separator)
}
