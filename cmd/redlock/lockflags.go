package main

import (
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
)

// lockFlags are the flags that several verbs have.
type lockFlags struct {
	nodes   []string // the values of --node and the lines of --nodes; nil: none
	ttl     time.Duration
	maxTTL  time.Duration // 0: not given
	timeout time.Duration // negative: none
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
		f.nodes = append(f.nodes, found...)
		return err
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

func (f *lockFlags) addMaxTTL(to *flagSet) {
	to.value("max-ttl", "", func(value string) (err error) {
		f.maxTTL, err = maxTTL("--max-ttl", value)
		return err
	})
}

func maxTTL(source, value string) (time.Duration, error) {
	d, err := duration(source, value)
	if err == nil && !canBeTTL(d) {
		err = exit.Fail(exit.Usage, "it is the longest --ttl of all clients of these nodes", "%s %s is not a value that --ttl can have", source, value)
	}
	return d, err
}

// canBeTTL reports whether a --ttl can have this value.
func canBeTTL(d time.Duration) bool {
	return d >= leastTTL && d <= mostTTL && d%time.Millisecond == 0
}

// options are those on which all clients of the same nodes must agree.
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
		return nil, exit.Fail(exit.Usage, "it is the longest --ttl of all clients of these nodes", "--ttl %v is longer than %s %v", f.ttl, source, o.MaxTTL)
	}
	return o, nil
}

func addSeparator(to *flagSet, separator *string) {
	to.value("separator", "", func(value string) error {
		if *separator = value; value == "" {
			return exit.Fail(exit.Usage, "leave it out if keys are no paths", "--separator is empty")
		}
		return nil
	})
}
