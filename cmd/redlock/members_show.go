package main

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
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// showUndescribed shows nodes that keep no description.
func (c *command) showUndescribed(cfg *membersConfig, d *described) error {
	if cfg.json {
		r := &membersReport{}
		for _, k := range d.given {
			r.Members = append(r.Members, memberOf(&k, true, nil))
		}
		return c.printJSON(r)
	}
	fmt.Fprintln(c.stdout, "epoch 0: the nodes keep no description of their set. The first program that locks on them writes it: the nodes that it was given, and its Quorum, Separator and MaxTTL")
	t := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nnode\tkeeps")
	for _, k := range d.given {
		fmt.Fprintf(t, "%s\t%s\n", printable.Text(k.node), printable.Text(k.column(nil)))
	}
	return t.Flush()
}

// showMembers shows the set.
func (c *command) showMembers(cfg *membersConfig, servers []*redis.Options, d *described) error {
	votes, err := c.voters(cfg, servers, d)
	if err != nil {
		return err
	}
	if now := readSet(servers, false); now.set != nil { // a member that kept an earlier one has been told by now
		now.complete(servers)
		d = now
	}
	r := &membersReport{Next: d.nextReport()}
	r.Members, r.Others = []memberReport{}, nil
	for _, member := range d.set.Members {
		k := d.keeping(member)
		if k == nil { // it has become one meanwhile
			k = &keeping{node: member, err: context.DeadlineExceeded}
		}
		one := memberOf(k, slices.ContainsFunc(d.given, func(g keeping) bool { return g.node == k.node }), d.set)
		one.Node = member
		if n, ok := votes[k.node]; ok {
			can := n.Err == nil
			if one.Vote = &can; !can {
				one.Outcome, one.Error = n.Err.Outcome.String(), strings.TrimPrefix(n.Err.Error(), n.Node+": ")
			}
		}
		r.Members = append(r.Members, one)
	}
	for _, k := range d.given {
		if !d.isMember(&k) {
			r.Others = append(r.Others, memberOf(&k, true, d.set))
		}
	}
	r.of(membersIn(d.set))
	if cfg.json {
		return c.printJSON(r)
	}
	return c.printMembers(r, d)
}

// voters are the answers of the members, by the addresses at which they were reached.
func (c *command) voters(cfg *membersConfig, servers []*redis.Options, d *described) (map[string]redlock.NodeStatus, error) {
	locker, err := c.operator(cfg, servers, d)
	if err != nil {
		return nil, err
	}
	defer locker.Close()
	votes := make(map[string]redlock.NodeStatus)
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		waiting := false // a member that was not given is connected to after the others
		for _, n := range asked(context.Background(), locker).Nodes {
			votes[n.Node] = n
			waiting = waiting || n.Err != nil && n.Err.Outcome == redlock.OutcomeTimeout
		}
		if !waiting || time.Since(begin) > patientLook/2 {
			return votes, nil
		}
	}
}

func memberOf(k *keeping, given bool, set *wire.Description) memberReport {
	r := memberReport{Node: k.node, Given: given, Keeps: k.told.At()}
	if k.told.Description != nil && set != nil && k.told.Set != set.Set {
		r.Set = k.told.Set
	}
	if k.err != nil {
		r.Error = k.err.Error()
	}
	return r
}

// column is what a node keeps, in a table.
func (k *keeping) column(set *wire.Description) string {
	switch {
	case k.err != nil:
		return "? " + k.err.Error()
	case k.told.Description == nil:
		return "nothing"
	case set != nil && k.told.Set != set.Set:
		return fmt.Sprintf("epoch %d of another set", k.told.Epoch)
	}
	return fmt.Sprintf("epoch %d", k.told.Epoch)
}

// printMembers prints the set as text.
func (c *command) printMembers(r *membersReport, d *described) error {
	separator, most, quorum := "none", maxTTLInWords(membersIn(d.set)), ""
	if r.Separator != "" {
		separator = fmt.Sprintf("%q", r.Separator)
	}
	if d.set.Quorum == 0 {
		quorum = ", a majority"
	}
	fmt.Fprintf(c.stdout, "set %s, epoch %d, since %s\nquorum %d of %s%s; separator %s; %s\n", printable.Text(r.Set), r.Epoch, r.Since.Format(time.RFC3339), r.Quorum, phrase.Count(len(r.Members), "member"), quorum, separator, most)
	t := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
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
	for _, k := range d.given {
		if d.isMember(&k) {
			continue
		}
		fmt.Fprintf(c.stdout, "%s was given and is no member; it keeps: %s\n", printable.Text(k.node), printable.Text(k.column(d.set)))
	}
	if next := r.Next; next != nil {
		fmt.Fprintf(c.stdout, "a change has begun and is not in force: epoch %d, %s (%s), quorum %d, taken by %s. The same command finishes it, and so does any other change\n",
			next.Epoch, phrase.Count(len(next.Members), "member"), printable.Text(strings.Join(next.Members, ", ")), next.Quorum, phrase.Count(next.Taken, "member"))
	}
	return nil
}

// nextReport is a change that members have taken and that is not in force; nil: there is none.
func (d *described) nextReport() (next *nextReport) {
	for _, k := range append(slices.Clone(d.given), d.more...) {
		switch {
		case k.next == nil || k.next.Set != d.set.Set || k.next.Epoch != d.set.Epoch+1:
		case next == nil:
			next = &nextReport{k.next.Epoch, k.next.Members, k.next.Needs(), 1}
		case slices.Equal(next.Members, k.next.Members) && next.Quorum == k.next.Needs():
			next.Taken++
		}
	}
	return next
}
