// Package flags parses the flags of a verb with pflag, and says in redlock's words what is wrong with them.
package flags

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
)

// A Set has the flags of one verb. Its errors name the flag and its value and say what to do. Unlike pflag it rejects
// a flag that is given twice.
type Set struct {
	*pflag.FlagSet
	repeats []string // the flags that may be given more than once
}

// New makes the Set of a verb. Its flags end at the first argument, unless the caller calls SetInterspersed(true).
func New(verb string) *Set {
	f := &Set{FlagSet: pflag.NewFlagSet(verb, pflag.ContinueOnError)}
	f.SetInterspersed(false)
	f.Usage = func() {} // main prints the help when Parse returns pflag.ErrHelp
	return f
}

// Value adds a flag with a value. set checks and keeps the value. short is one letter, or "".
func (f *Set) Value(name, short string, set func(value string) error) {
	f.FuncP(name, short, "", set)
}

// Text adds a flag whose value must not be empty, and keeps it in to. The hint says what to give instead.
func (f *Set) Text(name, hint string, to *string) {
	f.Value(name, "", func(value string) error {
		if *to = value; value == "" {
			return exit.Fail(exit.Usage, hint, "--%s is empty", name)
		}
		return nil
	})
}

// Values adds a flag with a value that may be repeated.
func (f *Set) Values(name string, set func(value string) error) {
	f.repeats = append(f.repeats, name)
	f.Value(name, "", set)
}

// Toggle adds a flag without a value.
func (f *Set) Toggle(name, short string, on *bool) { f.BoolVarP(on, name, short, false, "") }

// nextFlag matches a flag in the place of a value, --ttl or -n, but no negative number.
var nextFlag = regexp.MustCompile("^-[-a-zA-Z]")

// Parse reads the flags and returns the other arguments.
func (f *Set) Parse(args []string) ([]string, error) {
	err := f.ParseAll(args, func(flag *pflag.Flag, value string) error {
		name := "--" + flag.Name
		toggle, inline := flag.NoOptDefVal != "", slices.Contains(args, name+"="+value)
		switch {
		case flag.Changed && !slices.Contains(f.repeats, flag.Name):
			return exit.Fail(exit.Usage, f.repeatable(), "%s is given twice", name)
		case toggle && (inline || value != flag.NoOptDefVal):
			return exit.Fail(exit.Usage, "", "%s takes no value", name)
		case !toggle && nextFlag.MatchString(value) && !inline:
			return noValue(name)
		}
		return f.Set(flag.Name, value)
	})
	var (
		unknown *pflag.NotExistError
		syntax  *pflag.InvalidSyntaxError
		bare    *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return nil, f.unknown("-" + unknown.GetSpecifiedShortnames())
	case errors.As(err, &unknown):
		return nil, f.unknown("--" + unknown.GetSpecifiedName())
	case errors.As(err, &syntax):
		return nil, f.unknown(syntax.GetSpecifiedFlag())
	case errors.As(err, &bare):
		return nil, noValue("--" + bare.GetFlag().Name)
	}
	return f.Args(), err
}

// OnlyJSON parses the arguments of a verb that has the flag --json and nothing else.
func OnlyJSON(verb string, args []string) (asJSON bool, err error) {
	f := New(verb)
	f.Toggle("json", "", &asJSON)
	rest, err := f.Parse(args)
	if err == nil && len(rest) > 0 {
		err = exit.Fail(exit.Usage, "see redlock help", "%s takes no arguments, and was given %q", verb, rest[0])
	}
	return asJSON, err
}

func (f *Set) unknown(name string) error {
	var all []string
	f.VisitAll(func(flag *pflag.Flag) { all = append(all, "--"+flag.Name) })
	return exit.Fail(exit.Usage, fmt.Sprintf("the flags are %s; see redlock help %s", strings.Join(all, ", "), f.Name()), "%s: unknown flag %s", f.Name(), name)
}

// repeatable is the hint that lists the flags that may be repeated.
func (f *Set) repeatable() string {
	if len(f.repeats) == 0 {
		return ""
	}
	return "these may be repeated, and no others: --" + strings.Join(f.repeats, ", --")
}

func noValue(name string) error {
	return exit.Fail(exit.Usage, "if the value begins with a dash, write "+name+"=VALUE", "%s has no value", name)
}

// durations matches a duration of any length; time.ParseDuration rejects those that overflow.
var durations = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// Duration parses a duration. The error names flag, the flag or other source that the value is from.
func Duration(flag, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil && durations.MatchString(value) {
		return 0, exit.Fail(exit.Usage, "", "%s %s is too long: the most is %v", flag, value, time.Duration(math.MaxInt64).Truncate(time.Hour))
	}
	if err != nil {
		return 0, exit.Fail(exit.Usage, "write 500ms, 30s or 1m30s, say", "%s %q is not a duration", flag, value)
	}
	return d, nil
}
