package look

import (
	"context"
	"fmt"
	"os"
	"slices"
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
	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
)

// lsConfig has the flags of redlock ls.
type lsConfig struct {
	listFlags
	json  bool
	watch bool
}

// parseLs reads the arguments of redlock ls.
func parseLs(args []string) (*lsConfig, error) {
	cfg := &lsConfig{listFlags: newListFlags()}
	f := flags.New("ls")
	cfg.add(f)
	f.Toggle("json", "", &cfg.json)
	f.Toggle("watch", "", &cfg.watch)
	if err := cfg.parse(f, args); err != nil {
		return nil, err
	}
	if f.Changed("every") && !cfg.watch {
		return nil, exit.Fail(exit.Usage, "add --watch, or leave it out", "--every is for --watch")
	}
	return cfg, nil
}

// List is redlock ls: it lists the locks of a set, once or again and again.
func List(c *console.Console, _ string, args []string) (code int, err error) {
	cfg, err := parseLs(args)
	if err != nil {
		return 0, err
	}
	servers, err := reach.Real(c, &cfg.Flags, "ask")
	if err != nil {
		return 0, err
	}
	return reach.Look(c, &cfg.Flags, servers, func(ctx context.Context, locker *redlock.Locker) (int, error) {
		for {
			l, err := peek.Locks(ctx, locker, servers, cfg.query(), cfg.all)
			if err != nil { // ctx has ended
				return reach.Looked(ctx, err)
			}
			locks.Sort(l.Rows, cfg.sort)
			if err := printList(c, l, cfg); err != nil || !cfg.watch || !pauseFor(ctx, cfg.every) {
				return reach.Looked(ctx, err)
			}
		}
	})
}

// printList prints the locks, and says why some may be missing.
func printList(c *console.Console, l *peek.List, cfg *lsConfig) error {
	var err error
	if cfg.json {
		err = c.PrintLine(listReportOf(l))
	} else {
		if cfg.watch {
			fmt.Fprint(c.Stdout, clears(c), l.At.Format(time.TimeOnly), "\n")
		}
		err = showList(c.Stdout, l)
	}
	if err != nil {
		return err
	}
	unlisted, quarantined := l.Absent()
	remedy := explain.Remedy(unlisted, l.Members.Quorum)
	if slices.ContainsFunc(unlisted, func(e *redlock.NodeError) bool { return e.Outcome == redlock.OutcomeDenied }) {
		remedy = "redlock ls needs SCAN besides what locks need: add +scan to the user's ACL; docs/operations.md has the rest"
	}
	if len(l.Nodes)-len(unlisted)-len(quarantined) >= l.Members.Quorum {
		if len(unlisted) > 0 {
			c.Note("hint: %s", remedy)
		}
		return nil
	}
	why := "too few nodes were listed and have a vote: locks may be missing"
	if len(unlisted) == 0 {
		why, remedy = "too few nodes have a vote: those in quarantine may have forgotten locks", explain.RemedyForAll(quarantined, len(l.Nodes))
	}
	err = exit.Fail(exit.NoQuorum, remedy, "%s", why)
	if cfg.watch {
		c.Say("%v", err)
		return nil
	}
	return err
}

// clears returns the text that clears the screen; an empty line if stdout is no screen.
func clears(c *console.Console) string {
	f, ok := c.ForPrograms().(*os.File)
	if kind, _ := console.Lookup(c.Env, "TERM"); !ok || kind == "dumb" || term.Width(f) == 0 {
		return "\n"
	}
	return "\x1b[H\x1b[2J"
}

// summary returns a line: how many locks there are, and which nodes are missing.
func summary(l *peek.List) string {
	left, waited := 0, 0
	for _, r := range l.Rows {
		if r.Leftover {
			left++
		}
		if len(r.Waiting) > 0 {
			waited++
		}
	}
	text := fmt.Sprintf("%s on %s", phrase.Counted(len(l.Rows), "lock"), phrase.Count(len(l.Nodes), "node"))
	if left > 0 {
		text += fmt.Sprintf(", %s", phrase.Counted(left, "leftover"))
	}
	if waited > 0 {
		text += fmt.Sprintf(", %s waited for", phrase.Digits(waited))
	}
	unlisted, quarantined := l.Absent()
	if len(unlisted) > 0 {
		text += "; " + explain.Without("could not be listed", unlisted, len(l.Nodes))
	}
	if len(quarantined) > 0 {
		text += "; " + explain.Voteless(quarantined, len(l.Nodes))
	}
	return text
}

// pauseFor waits for d. It returns false if ctx ends first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
