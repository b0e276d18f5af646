package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// waits returns a text: what a change waits for, and for how long at most.
func waits(what string, most time.Duration) string {
	if most > 0 {
		return fmt.Sprintf("waits for %s: up to %v", what, phrase.Tenths(most))
	}
	return "waits for " + what
}

// unchanged reports that a change is not needed.
func unchanged(c *console.Console, cfg *membersConfig, report *changeReport, d *peek.View, why string) error {
	if !cfg.json {
		c.Result("%s: nothing to change", why)
		return nil
	}
	report.of(membersIn(d.Set))
	return c.PrintJSON(report)
}

// membersIn converts a description to the library's Members.
func membersIn(d *wire.Description) redlock.Members {
	return redlock.Members{Set: d.Set, Epoch: d.Epoch, Nodes: d.Members, Quorum: d.Needs(), Separator: d.Separator, MaxTTL: wire.Milliseconds(d.MaxTTL), LongerTTL: wire.Milliseconds(d.Other), Since: time.UnixMilli(d.Since)}
}

// planned returns the set as it is after the change c of m, which may be planned itself.
func planned(m redlock.Members, c redlock.Change) redlock.Members {
	majority := m.Quorum == len(m.Nodes)/2+1
	m.Epoch++
	m.Nodes = slices.DeleteFunc(slices.Clone(m.Nodes), func(n string) bool { return n == c.Remove })
	if c.Add != "" {
		m.Nodes = append(m.Nodes, c.Add)
	}
	if majority {
		m.Quorum = len(m.Nodes)/2 + 1
	}
	return m
}

// ableToChange returns an error if too few members vote for a change to take effect. For a change of MaxTTL (bound),
// members in quarantine are enough: a shorter MaxTTL may be what ends the quarantine.
func ableToChange(ctx context.Context, locker *redlock.Locker, bound bool) error {
	absent, m := explain.Absent(peek.Status(ctx, locker)), locker.Members()
	if bound {
		absent = slices.DeleteFunc(absent, func(n *redlock.NodeError) bool { return n.Outcome == redlock.OutcomeQuarantined })
	}
	if n := len(m.Nodes); n-len(absent) < m.Quorum {
		return exit.Fail(exit.NoQuorum, explain.Remedy(absent, m.Quorum), "the set was not changed: %d members must vote for a change, and %s", m.Quorum, explain.Without(explain.NoVote(len(absent)), absent, n))
	}
	return nil
}

// cautions prints what the operator must know before the change.
func cautions(c *console.Console, cfg *membersConfig, d *peek.View, steps []step) {
	for _, s := range steps {
		if s.MaxTTL != nil && s.MaxTTL.Milliseconds() < d.Set.MaxTTL {
			c.Note("a lock whose TTL is longer than %v is refused from then on, and one that is held is not extended any more", *s.MaxTTL)
		}
		if s.Add != "" && local(s.Add) && slices.ContainsFunc(d.Set.Members, func(m string) bool { return !local(m) }) {
			c.Note("%s is an address of each machine itself: a program on another machine finds another server there, or none", s.Add)
		}
	}
}

// local reports whether an address means another server on each machine: a socket, or a loopback address.
func local(addr string) bool {
	return strings.HasPrefix(addr, "/") || strings.HasPrefix(addr, "localhost:") || strings.HasPrefix(addr, "127.") || strings.HasPrefix(addr, "[::1]:")
}

// tellChange prints what a change has done, or with --plan would do.
func tellChange(c *console.Console, cfg *membersConfig, s step, before, after redlock.Members, report *changeReport) {
	if !cfg.plan {
		c.Result("%s: %s", s.what, inWords(after))
		if s.Remove != "" {
			c.Note("%s may be stopped. Do not empty it while programs run that were started before, and do not give it to new ones", s.Remove)
		}
		if n := len(after.Nodes); s.Change.Add+s.Change.Remove != "" && n%2 == 0 {
			c.Note("%d members survive no more failures than %d do: a change by one more makes their number odd again", n, n-1)
		}
		return
	}
	fmt.Fprintf(c.Stdout, "%s\n  before: %s\n  after:  %s\n", printable.Text(s.what), printable.Text(inWords(before)), printable.Text(inWords(after)))
	for _, w := range report.these {
		fmt.Fprintf(c.Stdout, "  %s\n", printable.Text(waits(w.What, time.Duration(w.Most)*time.Millisecond)))
	}
	switch {
	case s.Add+s.Remove != "" || s.Quorum != nil:
		fmt.Fprintf(c.Stdout, "  locks that are held stay: the next extension of each needs %d of the %d members. A member without the lock gets it with that extension, and counts from the one after it\n", after.Quorum, len(after.Nodes))
		if len(before.Nodes) < after.Quorum {
			fmt.Fprintf(c.Stdout, "  so one extension of each lock fails, and the next one succeeds\n")
		}
	case s.MaxTTL != nil:
		fmt.Fprintf(c.Stdout, "  locks that are held stay\n")
		if after.LongerTTL > 0 {
			fmt.Fprintf(c.Stdout, "  quarantines go by %v until no lock is left that lives for longer than %v\n", after.LongerTTL, *s.MaxTTL)
		}
	case s.Separator != nil:
		fmt.Fprintf(c.Stdout, "  all programs that use the set must be stopped, and --programs-stopped says that they are\n")
	}
}

// inWords returns a line about a set.
func inWords(m redlock.Members) string {
	text := fmt.Sprintf("epoch %d, %s (%s), quorum %d", m.Epoch, phrase.Count(len(m.Nodes), "member"), strings.Join(m.Nodes, ", "), m.Quorum)
	if m.Separator != "" {
		text += fmt.Sprintf(", separator %q", m.Separator)
	}
	if m.MaxTTL > 0 {
		text += ", " + maxTTLInWords(m)
	}
	return text
}

// maxTTLInWords returns MaxTTL as text, and the TTL that bounds quarantines if it differs.
func maxTTLInWords(m redlock.Members) string {
	text := fmt.Sprintf("MaxTTL %v", m.MaxTTL)
	if m.LongerTTL > 0 {
		text += fmt.Sprintf(" (quarantines go by %v)", m.LongerTTL)
	}
	return text
}
