package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
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
	f := newFlags("ls")
	cfg.add(f)
	f.toggle("json", "", &cfg.json)
	f.toggle("watch", "", &cfg.watch)
	if err := cfg.parse(f, args); err != nil {
		return nil, err
	}
	if f.Changed("every") && !cfg.watch {
		return nil, exit.Fail(exit.Usage, "add --watch, or leave it out", "--every is for --watch")
	}
	return cfg, nil
}

// ls is redlock ls, which lists the locks of a set.
func (c *command) ls(_ string, args []string) (code int, err error) {
	cfg, err := parseLs(args)
	if err != nil {
		return 0, err
	}
	servers, err := c.realNodes(&cfg.lockFlags, "ask")
	if err != nil {
		return 0, err
	}
	return c.looking(&cfg.lockFlags, servers, func(ctx context.Context, locker *redlock.Locker) (int, error) {
		for {
			l, err := list(ctx, locker, servers, cfg.query(), cfg.all)
			if err != nil { // ctx has ended
				return looked(ctx, err)
			}
			locks.Sort(l.rows, cfg.sort)
			if err := c.printList(l, cfg); err != nil || !cfg.watch || !pauseFor(ctx, cfg.every) {
				return looked(ctx, err)
			}
		}
	})
}

// printList prints the locks, and says why some may be missing.
func (c *command) printList(l *lockList, cfg *lsConfig) error {
	var err error
	if cfg.json {
		err = c.printLine(listReportOf(l))
	} else {
		if cfg.watch {
			fmt.Fprint(c.stdout, c.clears(), l.at.Format(time.TimeOnly), "\n")
		}
		err = showList(c.stdout, l)
	}
	if err != nil {
		return err
	}
	unlisted, quarantined := l.absent()
	remedy := explain.Remedy(unlisted, l.members.Quorum)
	if slices.ContainsFunc(unlisted, func(e *redlock.NodeError) bool { return e.Outcome == redlock.OutcomeDenied }) {
		remedy = "redlock ls needs SCAN besides what locks need: add +scan to the user's ACL; docs/operations.md has the rest"
	}
	if len(l.nodes)-len(unlisted)-len(quarantined) >= l.members.Quorum {
		if len(unlisted) > 0 {
			c.note("hint: %s", remedy)
		}
		return nil
	}
	why := "too few nodes were listed and have a vote: locks may be missing"
	if len(unlisted) == 0 {
		why, remedy = "too few nodes have a vote: those in quarantine may have forgotten locks", explain.RemedyForAll(quarantined, len(l.nodes))
	}
	err = exit.Fail(exit.NoQuorum, remedy, "%s", why)
	if cfg.watch {
		c.say("%v", err)
		return nil
	}
	return err
}

// clears is what clears the screen, if stdout is one; else an empty line keeps the lists apart.
func (c *command) clears() string {
	f, ok := c.forPrograms().(*os.File)
	if kind, _ := lookup(c.env, "TERM"); !ok || kind == "dumb" || term.Width(f) == 0 {
		return "\n"
	}
	return "\x1b[H\x1b[2J"
}

// summary says how many locks there are, and which nodes are missing.
func (l *lockList) summary() string {
	left, waited := 0, 0
	for _, r := range l.rows {
		if r.Leftover {
			left++
		}
		if len(r.Waiting) > 0 {
			waited++
		}
	}
	text := fmt.Sprintf("%s on %s", phrase.Counted(len(l.rows), "lock"), phrase.Count(len(l.nodes), "node"))
	if left > 0 {
		text += fmt.Sprintf(", %s", phrase.Counted(left, "leftover"))
	}
	if waited > 0 {
		text += fmt.Sprintf(", %s waited for", phrase.Digits(waited))
	}
	unlisted, quarantined := l.absent()
	if len(unlisted) > 0 {
		text += "; " + explain.Without("could not be listed", unlisted, len(l.nodes))
	}
	if len(quarantined) > 0 {
		text += "; " + explain.Voteless(quarantined, len(l.nodes))
	}
	return text
}

// pauseFor waits until the next look, and reports whether ctx goes on.
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
