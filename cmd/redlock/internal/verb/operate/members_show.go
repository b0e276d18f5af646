package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// showUndescribed shows nodes that keep no description.
func showUndescribed(c *console.Console, cfg *membersConfig, d *peek.View) error {
	if cfg.json {
		r := &membersReport{}
		for _, k := range d.Given {
			r.Members = append(r.Members, memberOf(&k, true, nil))
		}
		return c.PrintJSON(r)
	}
	fmt.Fprintln(c.Stdout, "epoch 0: the nodes keep no description of their set. The first program that locks on them writes it: the nodes that it was given, and its Quorum, Separator and MaxTTL")
	t := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nnode\tkeeps")
	for _, k := range d.Given {
		fmt.Fprintf(t, "%s\t%s\n", printable.Text(k.Addr), printable.Text(column(&k, nil)))
	}
	return t.Flush()
}

// showMembers shows the set.
func showMembers(c *console.Console, cfg *membersConfig, servers []*redis.Options, d *peek.View) error {
	votes, err := voters(cfg, servers, d)
	if err != nil {
		return err
	}
	if now := peek.Read(servers, false); now.Set != nil { // a member that was behind has been told meanwhile
		now.Complete(servers)
		d = now
	}
	r := &membersReport{Next: nextOf(d)}
	r.Members, r.Others = []memberReport{}, nil
	for _, member := range d.Set.Members {
		k := d.Node(member)
		if k == nil { // it has become one meanwhile
			k = &peek.Node{Addr: member, Err: context.DeadlineExceeded}
		}
		one := memberOf(k, slices.ContainsFunc(d.Given, func(g peek.Node) bool { return g.Addr == k.Addr }), d.Set)
		one.Node = member
		if n, ok := votes[k.Addr]; ok {
			can := n.Err == nil
			if one.Vote = &can; !can {
				one.Outcome, one.Error = n.Err.Outcome.String(), strings.TrimPrefix(n.Err.Error(), n.Node+": ")
			}
		}
		r.Members = append(r.Members, one)
	}
	for _, k := range d.Given {
		if !d.IsMember(&k) {
			r.Others = append(r.Others, memberOf(&k, true, d.Set))
		}
	}
	r.of(membersIn(d.Set))
	if cfg.json {
		return c.PrintJSON(r)
	}
	return printMembers(c, r, d)
}

// voters asks the members, and returns their answers by the addresses at which they were reached.
func voters(cfg *membersConfig, servers []*redis.Options, d *peek.View) (map[string]redlock.NodeStatus, error) {
	locker, err := operator(cfg, servers, d)
	if err != nil {
		return nil, err
	}
	defer locker.Close()
	votes := make(map[string]redlock.NodeStatus)
	for _, n := range settled(locker, func(n redlock.NodeStatus) bool { return n.Err != nil && n.Err.Outcome == redlock.OutcomeTimeout }).Nodes {
		votes[n.Node] = n
	}
	return votes, nil
}

func memberOf(k *peek.Node, given bool, set *wire.Description) memberReport {
	r := memberReport{Node: k.Addr, Given: given, Keeps: k.Told.At()}
	if k.Told.Description != nil && set != nil && k.Told.Set != set.Set {
		r.Set = k.Told.Set
	}
	if k.Err != nil {
		r.Error = k.Err.Error()
	}
	return r
}

// column returns what a node keeps, as a cell of a table.
func column(k *peek.Node, set *wire.Description) string {
	switch {
	case k.Err != nil:
		return "? " + k.Err.Error()
	case k.Told.Description == nil:
		return "nothing"
	case set != nil && k.Told.Set != set.Set:
		return fmt.Sprintf("epoch %d of another set", k.Told.Epoch)
	}
	return fmt.Sprintf("epoch %d", k.Told.Epoch)
}

// printMembers prints the set as text.
func printMembers(c *console.Console, r *membersReport, d *peek.View) error {
	separator, most, quorum := "none", maxTTLInWords(membersIn(d.Set)), ""
	if r.Separator != "" {
		separator = fmt.Sprintf("%q", r.Separator)
	}
	if d.Set.Quorum == 0 {
		quorum = ", a majority"
	}
	fmt.Fprintf(c.Stdout, "set %s, epoch %d, since %s\nquorum %d of %s%s; separator %s; %s\n", printable.Text(r.Set), r.Epoch, r.Since.Format(time.RFC3339), r.Quorum, phrase.Count(len(r.Members), "member"), quorum, separator, most)
	t := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nmember\tkeeps\tvote\tgiven")
	for _, m := range r.Members {
		keeps, vote, given := "nothing", "yes", "yes"
		switch {
		case m.Set != "":
			keeps = fmt.Sprintf("epoch %d of another set", m.Keeps)
		case m.Keeps > 0:
			keeps = fmt.Sprintf("epoch %d", m.Keeps)
		case m.Error != "" && (m.Vote == nil || m.Outcome != redlock.OutcomeQuarantined.String()):
			keeps = "?"
		}
		if m.Vote == nil || !*m.Vote {
			vote = "no: " + cmp.Or(m.Error, "it was not asked")
		}
		if !m.Given {
			given = "no"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", printable.Text(m.Node), keeps, printable.Text(vote), given)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, k := range d.Given {
		if d.IsMember(&k) {
			continue
		}
		fmt.Fprintf(c.Stdout, "%s was given and is no member; it keeps: %s\n", printable.Text(k.Addr), printable.Text(column(&k, d.Set)))
	}
	if next := r.Next; next != nil {
		fmt.Fprintf(c.Stdout, "a change has begun and is not in force: epoch %d, %s (%s), quorum %d, taken by %s. The same command finishes it, and so does any other change\n",
			next.Epoch, phrase.Count(len(next.Members), "member"), printable.Text(strings.Join(next.Members, ", ")), next.Quorum, phrase.Count(next.Taken, "member"))
	}
	return nil
}

// nextOf returns the change that members have accepted and that is not in force; nil if there is none.
func nextOf(d *peek.View) (next *nextReport) {
	for _, k := range append(slices.Clone(d.Given), d.More...) {
		switch {
		case k.Next == nil || k.Next.Set != d.Set.Set || k.Next.Epoch != d.Set.Epoch+1:
		case next == nil:
			next = &nextReport{k.Next.Epoch, k.Next.Members, k.Next.Needs(), 1}
		case slices.Equal(next.Members, k.Next.Members) && next.Quorum == k.Next.Needs():
			next.Taken++
		}
	}
	return next
}
