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

// A Set is the flags of one verb. pflag parses them; the errors are those of redlock, which
// name the flag and its value and say what to do. pflag lets a second --ttl replace the first:
// that is an error here.
type Set struct {
	*pflag.FlagSet
	repeats []string // the flags that may be given more than once
}

// New makes the set of a verb whose flags end where its first argument begins.
func New(verb string) *Set {
	f := &Set{FlagSet: pflag.NewFlagSet(verb, pflag.ContinueOnError)}
	f.SetInterspersed(false)
	f.Usage = func() {} // main prints the help when parse returns pflag.ErrHelp
	return f
}

// Value adds a flag with a value, which set checks and keeps. An empty short is none.
func (f *Set) Value(name, short string, set func(value string) error) {
	f.FuncP(name, short, "", set)
}

// Text adds a flag whose value is kept as it is, and must not be empty. The hint says what to give instead.
func (f *Set) Text(name, hint string, to *string) {
	f.Value(name, "", func(value string) error {
		if *to = value; value == "" {
			return exit.Fail(exit.Usage, hint, "--%s is empty", name)
		}
		return nil
	})
}

// Values adds a flag with a value that may be given more than once.
func (f *Set) Values(name string, set func(value string) error) {
	f.repeats = append(f.repeats, name)
	f.Value(name, "", set)
}

// Toggle adds a flag without a value.
func (f *Set) Toggle(name, short string, on *bool) { f.BoolVarP(on, name, short, false, "") }

// nextFlag is a flag where a value is expected: --ttl or -n, and no number that is negative.
var nextFlag = regexp.MustCompile("^-[-a-zA-Z]")

// Parse reads the flags, and returns the arguments.
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

// OnlyJSON reads the arguments of a verb whose one flag is --json.
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

// repeatable says which flags may be given more than once.
func (f *Set) repeatable() string {
	if len(f.repeats) == 0 {
		return ""
	}
	return "these may be repeated, and no others: --" + strings.Join(f.repeats, ", --")
}

func noValue(name string) error {
	return exit.Fail(exit.Usage, "if the value begins with a dash, write "+name+"=VALUE", "%s has no value", name)
}

// durations have the form of a duration.
var durations = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

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
