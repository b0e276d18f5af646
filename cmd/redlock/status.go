package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/printable"
)

// patientLook is how long a node has to answer to somebody who only looks.
const patientLook = 2 * time.Second

// lookConfig is what the command lines of redlock status, watch and wait say.
type lookConfig struct {
	lockFlags
	key, separator string
	json           bool
	every          time.Duration
}

// parseLook reads the arguments of a command that looks at a lock.
func parseLook(command string, args []string) (*lookConfig, error) {
	cfg := &lookConfig{lockFlags: noFlags, every: time.Second}
	values := cfg.values()
	delete(values, "--ttl")
	values["--separator"] = separator(&cfg.separator)
	switches := map[string]*bool{"--json": &cfg.json}
	switch command {
	case "status":
		delete(values, "--timeout")
	case "watch":
		delete(values, "--timeout")
		values["--every"] = func(value string) (err error) {
			if cfg.every, err = duration("--every", value); err == nil && cfg.every < leastTTL {
				return fail(exitUsage, "the default is 1s", "--every %s is too often: the least is %v", value, leastTTL)
			}
			return err
		}
	case "wait":
		delete(switches, "--json")
	}
	rest, err := scanAround(command, args, values, switches)
	switch {
	case err != nil:
		return nil, err
	case len(rest) != 1 || rest[0] == "":
		return nil, fail(exitUsage, "for example: redlock "+command+" backup", "%s takes the name of one lock, and was given %q", command, rest)
	}
	cfg.key = rest[0]
	return cfg, nil
}

// look is redlock status, watch and wait, which ask the nodes about a lock and have no
// part in it.
func (c *command) look(command string, args []string) (code int, err error) {
	cfg, err := parseLook(command, args)
	if errors.Is(err, errHelp) {
		return 0, c.help([]string{command})
	}
	if err != nil {
		return 0, err
	}
	urls, err := c.realNodes(cfg.nodes, "ask")
	if err != nil {
		return 0, err
	}
	signals, restore := catchSignals()
	defer restore()
	locker, nodes, err := c.connect(urls, &redlock.Options{TTL: cfg.ttl, NodeTimeout: patientLook, Separator: cfg.separator})
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	ctx, stop := untilSignal(signals)
	defer stop()
	nodes.tell("", "")

	switch command {
	case "status":
		return 0, c.status(ctx, locker, cfg)
	case "watch":
		err = c.watch(ctx, locker, cfg)
	case "wait":
		err = c.wait(ctx, locker, cfg)
	}
	if by := (interrupted{}); errors.As(context.Cause(ctx), &by) {
		return by.code(), nil
	}
	return 0, err
}

// status shows once what the nodes say.
func (c *command) status(ctx context.Context, locker *redlock.Locker, cfg *lookConfig) error {
	s, err := locker.Inspect(ctx, cfg.key)
	if err != nil {
		return fail(exitUsage, "see redlock help status", "%s", plain(err))
	}
	if cfg.json {
		err = json.NewEncoder(c.stdout).Encode(report(s))
	} else {
		err = show(c.stdout, s)
	}
	if err == nil && s.Verdict == redlock.Unknown {
		return untold(s, "")
	}
	return err
}

// watch shows it again whenever it has changed.
func (c *command) watch(ctx context.Context, locker *redlock.Locker, cfg *lookConfig) error {
	for before := ""; ; {
		s, err := locker.Inspect(ctx, cfg.key)
		if err != nil {
			return fail(exitUsage, "see redlock help watch", "%s", plain(err))
		}
		if now := news(s); now != before && ctx.Err() == nil {
			before = now
			at := time.Now()
			if cfg.json {
				r := report(s)
				r.Time = &at
				err = json.NewEncoder(c.stdout).Encode(r)
			} else {
				_, err = fmt.Fprintln(c.stdout, at.Format("15:04:05.000"), now)
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-time.After(cfg.every):
		case <-ctx.Done():
			return nil
		}
	}
}

// wait returns when nobody has the lock.
func (c *command) wait(ctx context.Context, locker *redlock.Locker, cfg *lookConfig) error {
	watched := ctx
	if cfg.timeout >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.timeout)
		defer cancel()
	}
	for {
		s, err := locker.Inspect(watched, cfg.key)
		if err != nil {
			return fail(exitUsage, "see redlock help wait", "%s", plain(err))
		}
		if s.Verdict == redlock.Free {
			return nil
		}
		rest := 200 * time.Millisecond // it may be released at any time
		if s.TTL > 0 {
			rest = min(rest, s.TTL+time.Millisecond)
		}
		select {
		case <-time.After(rest):
			continue
		case <-ctx.Done():
		}
		switch {
		case watched.Err() != nil:
			return nil
		case s.Verdict == redlock.Unknown:
			return untold(s, fmt.Sprintf(" within --timeout %v", cfg.timeout))
		}
		return fail(exitBusy, "wait longer, or without --timeout for as long as it takes", "not free within --timeout %v: %s", cfg.timeout, news(s))
	}
}

// untold says why nobody knows who has the lock.
func untold(s *redlock.Status, within string) error {
	down := absent(s)
	if !slices.ContainsFunc(down, func(e *redlock.NodeError) bool { return e.Outcome != redlock.Quarantined }) {
		return fail(exitNoQuorum, remedyForAll(down, len(s.Nodes)), "too few nodes have a vote%s: those that may have forgotten cannot tell", within)
	}
	if within == "" {
		within = " to tell"
	}
	return fail(exitNoQuorum, remedy(down, len(s.Nodes)/2+1), "too few nodes have answered%s", within)
}

// absent are the nodes without a say.
func absent(s *redlock.Status) (nodes []*redlock.NodeError) {
	for _, n := range s.Nodes {
		if n.Err != nil {
			nodes = append(nodes, n.Err)
		}
	}
	return nodes
}

// news is a status in a line, less what changes by itself.
func news(s *redlock.Status) string {
	var say strings.Builder
	fmt.Fprintf(&say, "%q: %v", s.Name, s.Verdict)
	if s.Token != "" {
		fmt.Fprintf(&say, " by token %s, fence %d", printable.Text(s.Token), s.Fence)
	}
	for _, h := range s.Holders {
		fmt.Fprintf(&say, ", %s by token %s", h.How, printable.Text(h.Token))
	}
	if n := len(s.Waiting); n > 0 {
		fmt.Fprintf(&say, "; %d waiting, the first is %s", n, owner(s.Waiting[0]))
	}
	if down := absent(s); len(down) > 0 {
		fmt.Fprintf(&say, "; %d of %s without a say", len(down), count(len(s.Nodes), "node"))
	}
	return say.String()
}

func owner(w redlock.Waiting) string {
	return printable.Text(cmp.Or(w.Owner, w.Waiter))
}

// show writes a status for people.
func show(to io.Writer, s *redlock.Status) error {
	fmt.Fprintln(to, news(s))
	if s.TTL > 0 {
		fmt.Fprintf(to, "%v left unless renewed\n", s.TTL)
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if len(s.Waiting) > 0 {
		fmt.Fprintln(t, "\nwaiting\tfor\tknown to")
		for _, w := range s.Waiting {
			fmt.Fprintf(t, "%s\t%v\t%s\n", owner(w), w.For.Round(time.Millisecond), count(w.Nodes, "node"))
		}
	}
	fmt.Fprintln(t, "\nnode\thas\tleft\tfence\twaiting\t")
	for _, n := range s.Nodes {
		has, left, fence, note := "-", "-", "-", ""
		if n.Token != "" {
			has = printable.Text(n.Token)
		} else if len(n.Holders) > 0 {
			has = fmt.Sprintf("%s %s", count(len(n.Holders), "holder"), n.Holders[0].How)
		}
		if n.TTL > 0 {
			left = n.TTL.String()
		}
		if n.Fence > 0 {
			fence = fmt.Sprint(n.Fence)
		}
		if n.Err != nil {
			note = strings.TrimPrefix(n.Err.Error(), n.Node+": ")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", n.Node, has, left, fence, len(n.Waiting), note)
	}
	return t.Flush()
}

// A statusReport is a status for machines. Durations are in milliseconds.
type statusReport struct {
	Time    *time.Time     `json:"time,omitempty"`
	Name    string         `json:"name"`
	Verdict string         `json:"verdict"` // free, held, split or unknown
	Token   string         `json:"token,omitempty"`
	TTL     int64          `json:"ttl_ms,omitempty"`
	Fence   int64          `json:"fence,omitempty"`
	Holders []holderReport `json:"holders,omitempty"`
	Waiting []waitReport   `json:"waiting"`
	Nodes   []nodeReport   `json:"nodes"`
}

type holderReport struct {
	Token string `json:"token"`
	How   string `json:"how"`
	TTL   int64  `json:"ttl_ms"`
	Nodes int    `json:"nodes,omitempty"`
}

type waitReport struct {
	Waiter string `json:"waiter"`
	Owner  string `json:"owner"`
	For    int64  `json:"for_ms"`
	Nodes  int    `json:"nodes"`
}

type nodeReport struct {
	Node    string         `json:"node"`
	Token   string         `json:"token,omitempty"`
	TTL     int64          `json:"ttl_ms,omitempty"`
	Fence   int64          `json:"fence,omitempty"`
	Holders []holderReport `json:"holders,omitempty"`
	Waiting int            `json:"waiting"`
	Outcome string         `json:"outcome,omitempty"` // why it has no say
	Error   string         `json:"error,omitempty"`
}

func report(s *redlock.Status) *statusReport {
	holders := func(of []redlock.Holder) (all []holderReport) {
		for _, h := range of {
			all = append(all, holderReport{h.Token, h.How, h.TTL.Milliseconds(), h.Nodes})
		}
		return all
	}
	r := &statusReport{Name: s.Name, Verdict: s.Verdict.String(), Token: s.Token, TTL: s.TTL.Milliseconds(), Fence: s.Fence, Holders: holders(s.Holders), Waiting: []waitReport{}}
	for _, w := range s.Waiting {
		r.Waiting = append(r.Waiting, waitReport{w.Waiter, w.Owner, w.For.Milliseconds(), w.Nodes})
	}
	for _, n := range s.Nodes {
		one := nodeReport{Node: n.Node, Token: n.Token, TTL: n.TTL.Milliseconds(), Fence: n.Fence, Holders: holders(n.Holders), Waiting: len(n.Waiting)}
		if n.Err != nil {
			one.Outcome, one.Error = n.Err.Outcome.String(), n.Err.Error()
		}
		r.Nodes = append(r.Nodes, one)
	}
	return r
}
