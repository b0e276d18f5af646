package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/printable"
)

// breakConfig has the flags of redlock break.
type breakConfig struct {
	reach.Flags
	key   string
	token string // "": there must be one holder
	yes   bool   // do not ask
	json  bool
}

// parseBreak reads the arguments of redlock break.
func parseBreak(args []string) (*breakConfig, error) {
	cfg := &breakConfig{Flags: reach.Defaults}
	f := flags.New("break")
	f.SetInterspersed(true)
	cfg.AddNodes(f)
	cfg.AddSeparator(f)
	f.Text("token", "redlock status KEY shows it", &cfg.token)
	f.Toggle("yes", "", &cfg.yes)
	f.Toggle("json", "", &cfg.json)
	rest, err := f.Parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) != 1 || rest[0] == "":
		return nil, exit.Fail(exit.Usage, "for example: redlock break backup", "break takes the name of one lock, and was given %q", rest)
	case cfg.yes && cfg.token == "":
		return nil, exit.Fail(exit.Usage, "redlock status KEY shows it", "--yes goes with --token: without a question, the token says which lock is meant")
	}
	cfg.key = rest[0]
	return cfg, nil
}

// Break is redlock break: it takes a lock away from its holder.
func Break(c *console.Console, _ string, args []string) (int, error) {
	cfg, err := parseBreak(args)
	if err != nil {
		return 0, err
	}
	if !cfg.yes {
		if err := c.MayAsk("break", "KEY --token TOKEN --yes"); err != nil {
			return 0, err
		}
	}
	servers, err := reach.Real(c, &cfg.Flags, "ask")
	if err != nil {
		return 0, err
	}
	locker, _, err := reach.Connect(c, servers, cfg.LookOptions(peek.Read(servers, true)))
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	ctx := context.Background()
	s, err := locker.Inspect(ctx, cfg.key)
	if err != nil {
		return 0, exit.Fail(exit.Usage, "see redlock help break", "%s", phrase.Plain(err))
	}
	c.Flush()
	of, err := cfg.choose(c.Stderr, s)
	if err != nil {
		return 0, err
	}
	if !cfg.yes {
		showBreak(c.Stderr, s, of)
		if !c.Asks("Break it? Type yes: ") {
			return 0, exit.Fail(exit.Busy, "", "%q is not broken", s.Name)
		}
	}
	if err := locker.Break(ctx, cfg.key, of.Token); err != nil {
		return 0, notBroken(s.Name, err)
	}
	if cfg.json {
		return 0, c.PrintJSON(brokenReport(s, of))
	}
	c.Result("%q is broken: %s does not have it any more%s", s.Name, explain.Holder(of.Token), next(s))
	return 0, nil
}

// choose returns the holder to break. If there are several, and none is named, it prints them to to and fails.
func (cfg *breakConfig) choose(to io.Writer, s *redlock.Status) (of redlock.Holder, err error) {
	all := holdersOf(s)
	if cfg.token != "" {
		all = slices.DeleteFunc(all, func(h redlock.Holder) bool { return h.Token != cfg.token })
	}
	below := slices.ContainsFunc(all, isBelow)
	all = slices.DeleteFunc(all, isBelow)
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(all) > 1:
		showHolders(to, all)
		return of, exit.Fail(exit.Usage, "--token TOKEN says which, with a token as shown", "%q has %d holders", s.Name, len(all))
	case below:
		return of, exit.Fail(exit.Usage, "name the lock itself: redlock break PATH", "%q: what is held is a lock below it", s.Name)
	case s.State == redlock.StateUnknown:
		return of, explain.Unknown(s, "")
	case cfg.token != "":
		return of, exit.Fail(exit.Lost, "redlock status shows who has it", "%q: the token has no lock any more, and nothing was broken: %s", s.Name, locks.News(s))
	}
	return of, exit.Fail(exit.Lost, "", "%s: there is nothing to break", locks.News(s))
}

func isBelow(h redlock.Holder) bool {
	return h.Mode == redlock.ModeBelow || h.Mode == redlock.ModeSharedBelow
}

// holdersOf returns all tokens that the nodes have. A token on fewer nodes than a quorum may be left of a failed
// attempt, or its lock may have lost nodes.
func holdersOf(s *redlock.Status) (all []redlock.Holder) {
	all = locks.Exclusive(s)
	if s.State == redlock.StateHeld && s.Token != "" { // leftovers of others do not count
		all = slices.DeleteFunc(all, func(h redlock.Holder) bool { return h.Token != s.Token })
	}
	return append(all, s.Holders...)
}

func showHolders(to io.Writer, all []redlock.Holder) {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "holder\tmode\tsince\tleft\ttrace\ttoken")
	for _, h := range all {
		fmt.Fprintln(t, strings.Join(locks.HolderRow(time.Now(), h.By, h.Mode, h.TTL, h.Token), "\t"))
	}
	t.Flush()
}

// showBreak prints who has the lock, and what it means to break it.
func showBreak(to io.Writer, s *redlock.Status, of redlock.Holder) {
	fmt.Fprintf(to, "%q: %s by %s", s.Name, string(of.Mode), explain.Holder(of.Token))
	if of.Token == s.Token && s.Fence > 0 {
		fmt.Fprintf(to, ", fence at most %d", s.Fence)
	}
	if since := of.By.Since; !since.IsZero() {
		fmt.Fprintf(to, ", since %s, %s ago", since.Format(time.DateTime), printable.Duration(max(0, time.Since(since))))
	}
	fmt.Fprintf(to, "\n%v left unless renewed, on %d of %s%s\n\n", of.TTL, of.Nodes, phrase.Count(len(s.Nodes), "node"), next(s))
	fmt.Fprint(to, `The holder is not stopped. It learns of it at its next renewal, within about a third of
its TTL, or when its TTL ends; until then it may go on writing. Resources that check the
fence refuse what it writes after the next holder has written.
`)
	if also := locks.Also(s.Name, of.By); also != "" {
		fmt.Fprintf(to, "It %s: these stay locked until its TTL ends, or each of them is broken.\n", also)
	}
}

// next returns a text: who gets the lock after the break.
func next(s *redlock.Status) string {
	if len(s.Waiting) == 0 {
		return "; nobody waits for it"
	}
	text := fmt.Sprintf("; next is %s", locks.Owner(s.Waiting[0]))
	if n := len(s.Waiting); n > 1 {
		text += fmt.Sprintf(", of %d that wait", n)
	}
	return text
}

// notBroken returns the failure that says why a lock was not broken; err is that of the library.
func notBroken(name string, err error) error {
	var why *redlock.QuorumError
	switch {
	case errors.Is(err, redlock.ErrLost):
		return exit.Fail(exit.Lost, "redlock status shows who has it", "%q: its holder does not have it any more, and nothing was broken: %s", name, phrase.Plain(err))
	case errors.As(err, &why):
		hint := cmp.Or(explain.Remedy(why.Nodes(), why.Need), "look at these nodes")
		return exit.Fail(exit.NoQuorum, hint+"; then break it again: until then its holder may keep it", "%s", phrase.Plain(err))
	}
	return exit.Fail(exit.Usage, "see redlock help break", "%s", phrase.Plain(err))
}

// A breakReport is the output of redlock break --json: what was known of the lock before the break.
type breakReport struct {
	Name  string `json:"name"`
	Mode  string `json:"mode"`
	Token string `json:"token"`
	locks.IdentityReport
	Fence   int64              `json:"fence_at_most,omitempty"`
	TTL     int64              `json:"ttl_ms,omitempty"`
	Waiting []locks.WaitReport `json:"waiting"`
}

func brokenReport(s *redlock.Status, of redlock.Holder) breakReport {
	r := breakReport{Name: s.Name, Mode: string(of.Mode), Token: of.Token, IdentityReport: locks.IdentityOf(s.Name, of.By), TTL: of.TTL.Milliseconds(), Waiting: locks.WaitReports(s.Waiting)}
	if of.Token == s.Token {
		r.Fence = s.Fence
	}
	return r
}
