package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/internal/wire"
)

// lockFlags are the flags that several verbs have.
type lockFlags struct {
	nodes   []string // the values of --node and the lines of --nodes; nil: none
	secret  []string // the files of --nodes with a password
	config  string   // the configuration file; "": not given
	quiet   bool     // only errors
	ttl     time.Duration
	timeout time.Duration // negative: none
	owner   string        // "": the library's default

	// On these all clients of the same nodes must agree.
	prefix     *string // nil: not given
	separator  string
	maxTTL     time.Duration // 0: not given
	maxTTLFrom string        // the flag, the variable, or the line of the configuration file
}

const (
	defaultTTL = 10 * time.Second

	// leastTTL is far above the library's least. With a shorter one, a renewal that is late
	// on a busy machine is enough to lose the lock, and the command.
	leastTTL = 100 * time.Millisecond

	// mostTTL is the library's most.
	mostTTL = 365 * 24 * time.Hour
)

// noFlags has the defaults.
var noFlags = lockFlags{ttl: defaultTTL, timeout: -1}

// addNodes adds the flags that name the nodes.
func (f *lockFlags) addNodes(to *flagSet) {
	to.values("node", func(value string) error {
		f.nodes = append(f.nodes, value)
		return nil
	})
	to.values("nodes", func(value string) error {
		found, err := readNodes("--nodes", value)
		if f.nodes = append(f.nodes, found...); slices.ContainsFunc(found, hasPassword) {
			f.secret = append(f.secret, value)
		}
		return err
	})
	to.value("config", "", func(value string) error {
		if f.config = value; value == "" {
			return exit.Fail(exit.Usage, "leave it out, or give a file; see redlock help config", "--config is empty")
		}
		return nil
	})
	to.toggle("quiet", "q", &f.quiet)
	to.value("prefix", "", func(value string) error {
		f.prefix = &value
		return nil
	})
}

func (f *lockFlags) addTTL(to *flagSet) {
	to.value("ttl", "", func(value string) (err error) {
		f.ttl, err = duration("--ttl", value)
		switch {
		case err != nil:
			return err
		case f.ttl < leastTTL:
			return exit.Fail(exit.Usage, "the default is 10s", "--ttl %s is too short: the least is %v", value, leastTTL)
		case f.ttl > mostTTL:
			return exit.Fail(exit.Usage, "the default is 10s", "--ttl %s is too long: the most is %v", value, mostTTL)
		case f.ttl%time.Millisecond != 0:
			return exit.Fail(exit.Usage, "Redis counts milliseconds", "--ttl %s is not a whole number of milliseconds", value)
		}
		return nil
	})
}

// addEvery adds the flag that says how often a verb looks.
func addEvery(to *flagSet, every *time.Duration) {
	to.value("every", "", func(value string) (err error) {
		if *every, err = duration("--every", value); err == nil && *every < leastTTL {
			return exit.Fail(exit.Usage, "the default is 1s", "--every %s is too often: the least is %v", value, leastTTL)
		}
		return err
	})
}

func (f *lockFlags) addTimeout(to *flagSet) {
	to.value("timeout", "w", func(value string) (err error) {
		f.timeout, err = duration("--timeout", value)
		if err == nil && f.timeout < 0 {
			return exit.Fail(exit.Usage, "0s asks once; leave --timeout out to wait without limit", "--timeout %s is negative", value)
		}
		return err
	})
}

// maxTTLVariable sets --max-ttl for all commands on the same nodes.
const maxTTLVariable = "REDLOCK_MAX_TTL"

// prefixVariable sets --prefix for all commands on the same nodes.
const prefixVariable = "REDLOCK_PREFIX"

func (f *lockFlags) addMaxTTL(to *flagSet) {
	to.value("max-ttl", "", func(value string) (err error) {
		f.maxTTLFrom = "--max-ttl"
		f.maxTTL, err = maxTTL(f.maxTTLFrom, value)
		return err
	})
}

func maxTTL(source, value string) (time.Duration, error) {
	d, err := duration(source, value)
	if err == nil && !canBeTTL(d) {
		err = exit.Fail(exit.Usage, "it is the longest --ttl that a new set allows", "%s %s is not a value that --ttl can have", source, value)
	}
	return d, err
}

// ownerVariable sets --owner.
const ownerVariable = "REDLOCK_OWNER"

// addOwner adds the flag that says who has the lock.
func (f *lockFlags) addOwner(to *flagSet) {
	to.value("owner", "", func(value string) error {
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

// canBeTTL reports whether a --ttl can have this value.
func canBeTTL(d time.Duration) bool {
	return d >= leastTTL && d <= mostTTL && d%time.Millisecond == 0
}

// complete adds what the flags leave to the environment, and what both leave to the configuration
// file.
func (f *lockFlags) complete(env []string, file *config) (err error) {
	from := "--prefix"
	if value, ok := lookup(env, prefixVariable); ok && f.prefix == nil {
		f.prefix, from = &value, prefixVariable
	}
	if value := file.get("prefix"); f.prefix == nil {
		f.prefix, from = &value, file.where("prefix")
	}
	if len(*f.prefix) >= redlock.MaxName {
		return exit.Fail(exit.Usage, "it begins the names of all locks", "%s is too long: it has %d bytes, and the most is %d", from, len(*f.prefix), redlock.MaxName-1)
	}
	f.separator = cmp.Or(f.separator, file.get("separator"))
	if value, ok := lookup(env, ownerVariable); ok && f.owner == "" {
		if f.owner, err = value, checkOwner(ownerVariable, value); err != nil {
			return err
		}
	}
	if f.maxTTL > 0 {
		return nil
	}
	if value, ok := lookup(env, maxTTLVariable); ok {
		f.maxTTLFrom = maxTTLVariable
		f.maxTTL, err = maxTTL(f.maxTTLFrom, value)
	} else if value := file.get("max-ttl"); value != "" {
		f.maxTTLFrom = file.where("max-ttl")
		f.maxTTL, err = maxTTL(f.maxTTLFrom, value)
	}
	return err
}

// options are those of a Locker that acquires locks. The nodes have been asked for before, and with
// that the flags are complete.
func (f *lockFlags) options() (*redlock.Options, error) {
	if f.maxTTL > 0 && f.maxTTL < f.ttl {
		return nil, exit.Fail(exit.Usage, "it is the longest --ttl that a new set allows", "--ttl %v is longer than %s %v", f.ttl, f.maxTTLFrom, f.maxTTL)
	}
	return &redlock.Options{TTL: f.ttl, MaxTTL: f.maxTTL, Prefix: *f.prefix, Separator: f.separator, Owner: f.owner}, nil
}

// quarantineOf is how long a node has no vote that is new to a program with these options: the library's default.
func quarantineOf(o *redlock.Options) time.Duration {
	longest := cmp.Or(o.MaxTTL, max(o.TTL, defaultTTL))
	return max(longest+longest/100+2*time.Millisecond, 2*time.Second)
}

// lookOptions are those of a Locker that inspects locks and acquires none. Its quarantines are those of the set, also
// where that allows less than the default.
func (f *lockFlags) lookOptions(d *described) *redlock.Options {
	ttl, most := f.ttl, f.maxTTL
	if most > 0 {
		ttl = min(ttl, most)
	}
	if d.set != nil {
		ttl = wire.Milliseconds(d.set.MaxTTL)
		most = ttl
	}
	return &redlock.Options{TTL: ttl, MaxTTL: most, NodeTimeout: min(patientLook, ttl/2), Prefix: *f.prefix, Separator: f.separator}
}

func (f *lockFlags) addSeparator(to *flagSet) {
	to.value("separator", "", func(value string) error {
		if f.separator = value; value == "" {
			return exit.Fail(exit.Usage, "leave it out if keys are no paths", "--separator is empty")
		}
		return nil
	})
}
