package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
	"github.com/quorumlock/redlock/internal/listing"
)

// lsConfig has the flags of redlock ls.
type lsConfig struct {
	lockFlags
	pattern string // "": all locks
	sort    string
	all     bool // folders, too, of which only something below is locked
	json    bool
	watch   bool
	every   time.Duration
}

// orders are the values of --sort.
var orders = []string{"age", "wait", "name"}

// parseLs reads the arguments of redlock ls.
func parseLs(args []string) (*lsConfig, error) {
	cfg := &lsConfig{lockFlags: noFlags, sort: orders[0]}
	f := newFlags("ls")
	f.SetInterspersed(true)
	cfg.addNodes(f)
	f.value("sort", "", func(value string) error {
		if cfg.sort = value; !slices.Contains(orders, value) {
			return exit.Fail(exit.Usage, "age is the oldest lock first, wait the longest wait first, name by name", "--sort is age, wait or name, and not %q", value)
		}
		return nil
	})
	f.toggle("all", "", &cfg.all)
	f.toggle("json", "", &cfg.json)
	f.toggle("watch", "", &cfg.watch)
	f.value("every", "", func(value string) (err error) {
		if cfg.every, err = duration("--every", value); err == nil && cfg.every < leastTTL {
			return exit.Fail(exit.Usage, "the default is 1s", "--every %s is too often: the least is %v", value, leastTTL)
		}
		return err
	})
	rest, err := f.parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 1 || len(rest) == 1 && rest[0] == "":
		return nil, exit.Fail(exit.Usage, "for example: redlock ls 'jobs/*'; in quotes, or the shell puts the names of files in its place", "ls takes one pattern, and was given %q", rest)
	case cfg.every > 0 && !cfg.watch:
		return nil, exit.Fail(exit.Usage, "add --watch, or leave it out", "--every is for --watch")
	case cfg.every == 0:
		cfg.every = time.Second
	}
	if len(rest) == 1 {
		cfg.pattern = rest[0]
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
	signals, restore := proc.CatchSignals()
	defer restore()
	locker, nodes, err := c.connect(servers, cfg.lookOptions(readSet(servers, true)))
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	ctx, stop := proc.UntilSignal(signals)
	defer stop()
	nodes.tell("", "")

	for {
		var l *lockList
		if l, err = list(ctx, locker, servers, cfg); err != nil {
			break // ctx has ended
		}
		if err = c.printList(l, cfg); err != nil || !cfg.watch {
			break
		}
		select {
		case <-time.After(cfg.every):
		case <-ctx.Done():
		}
	}
	if by := (proc.Interrupted{}); errors.As(context.Cause(ctx), &by) {
		return by.Code(), nil
	}
	return 0, err
}

// A lockList is the locks that were found, and what is known of the nodes.
type lockList struct {
	at      time.Time
	members redlock.Members
	nodes   []listing.Node
	rows    []*lockRow
}

// list finds the locks. It fails only if ctx ends. Which nodes have a vote, the Locker knows.
func list(ctx context.Context, locker *redlock.Locker, servers []*redis.Options, cfg *lsConfig) (*lockList, error) {
	l := &lockList{members: locker.Members()}
	var nodes []listing.Node
	for _, n := range asked(ctx, locker).Nodes {
		at := slices.IndexFunc(servers, func(o *redis.Options) bool { return o.Addr == n.Node })
		o := optionsAt(servers[0], n.Node)
		if at >= 0 {
			o = servers[at]
		}
		nodes = append(nodes, listing.Node{Name: n.Node, Options: o, Err: n.Err})
	}
	found, err := listing.Find(ctx, nodes, listing.Query{Prefix: *cfg.prefix, Pattern: cfg.pattern, Quorum: l.members.Quorum, Patience: patientLook})
	if err != nil {
		return nil, err
	}
	l.at, l.nodes = time.Now(), found.Nodes()
	l.rows = rowsOf(found.All(), cfg.all)
	sortRows(l.rows, cfg.sort)
	return l, nil
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

// absent are the nodes that could not be listed, and those that were, and are in quarantine.
func (l *lockList) absent() (unlisted, quarantined []*redlock.NodeError) {
	for _, n := range l.nodes {
		switch {
		case n.Err == nil:
		case n.Walked():
			quarantined = append(quarantined, n.Err)
		default:
			unlisted = append(unlisted, n.Err)
		}
	}
	return unlisted, quarantined
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
		if r.leftover {
			left++
		}
		if len(r.waiting) > 0 {
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
