// Package look has the verbs that show locks and change nothing: status, watch and wait for one lock, ls and top for
// all.
package look

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/listing"
)

// listFlags are the flags of ls and top.
type listFlags struct {
	reach.Flags
	pattern string // "": all locks
	sort    string
	all     bool // also folders that are locked only because something below them is
	every   time.Duration
}

func newListFlags() listFlags {
	return listFlags{Flags: reach.Defaults, sort: locks.Orders[0], every: time.Second}
}

func (f *listFlags) add(to *flags.Set) {
	to.SetInterspersed(true)
	f.AddNodes(to)
	to.Value("sort", "", func(value string) error {
		if f.sort = value; !slices.Contains(locks.Orders, value) {
			return exit.Fail(exit.Usage, "age is the oldest lock first, wait the longest wait first, name by name", "--sort is age, wait or name, and not %q", value)
		}
		return nil
	})
	to.Toggle("all", "", &f.all)
	reach.AddEvery(to, &f.every)
}

// parse reads the flags, and the pattern that follows them.
func (f *listFlags) parse(flags *flags.Set, args []string) error {
	rest, err := flags.Parse(args)
	switch verb := flags.Name(); {
	case err != nil:
		return err
	case len(rest) > 1 || len(rest) == 1 && rest[0] == "":
		return exit.Fail(exit.Usage, "for example: redlock "+verb+" 'jobs/*'; in quotes, or the shell puts the names of files in its place", "%s takes one pattern, and was given %q", verb, rest)
	case len(rest) == 1:
		f.pattern = rest[0]
	}
	return nil
}

func (f *listFlags) query() listing.Query {
	return listing.Query{Prefix: *f.Prefix, Pattern: f.pattern}
}
