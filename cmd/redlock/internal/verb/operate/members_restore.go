package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/fresh"
	"github.com/quorumlock/redlock/internal/wire"
)

// If no majority of a changed set's members keeps the last description, since they have lost it or have gone back to
// an earlier one, nobody can know which one was the last, and no program gets a lock. The operator says which nodes
// it has: redlock members restore.

// parseRestore checks the arguments of redlock members restore.
func (cfg *membersConfig) parseRestore(f *flags.Set, rest []string) error {
	cfg.verb = "restore"
	switch {
	case len(rest) > 0:
		return exit.Fail(exit.Usage, "for example: redlock members restore --node redis://a:6379,redis://b:6379,redis://c:6379", "members restore takes the members as --node, and was given the argument %q", rest[0])
	case cfg.plan || cfg.stopped || cfg.over || cfg.json || f.Changed("timeout"):
		return exit.Fail(exit.Usage, "members restore knows --yes and the flags that name nodes", "--plan, --programs-stopped, --locks-over, --json and --timeout do not go with members restore")
	}
	return nil
}

// restore makes a new set of the given nodes, on the operator's word.
func restore(c *console.Console, cfg *membersConfig) error {
	if !cfg.yes {
		if err := c.MayAsk("members restore", "--yes"); err != nil {
			return err
		}
	}
	servers, err := reach.Real(c, &cfg.Flags, "restore")
	if err != nil {
		return err
	}
	set, found, others, err := restored(servers)
	if err != nil {
		return err
	}
	tell := c.Note
	if !cfg.yes { // the question refers to it
		tell = c.Say
	}
	for _, k := range slices.Concat(found, others) {
		tell("%s: %s", k.Addr, says(&k))
	}
	separator := "no separator"
	if set.Separator != "" {
		separator = fmt.Sprintf("the separator %q", set.Separator)
	}
	longest := set.Longest()
	tell("the set will have the members %s, a quorum of %d, %s, and locks of %v at most", strings.Join(set.Members, ", "), set.Needs(), separator, longest)
	if len(others) > 0 {
		tell("%s: no member any more. If one of them runs, or comes back with its data, two programs may hold the same lock: keep them stopped while programs run that were started before", strings.Join(keepers(others), ", "))
	}
	if !cfg.yes {
		if !c.Asks(fmt.Sprintf("Locks end, and nobody can lock for %v. Restore? Type yes: ", longest)) {
			return exit.Fail(exit.Busy, "", "nothing was restored")
		}
		// Programs may have gone on while the operator thought: the set may not be lost any more.
		_, again, more, err := restored(servers)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(slices.Concat(found, others), slices.Concat(again, more), peek.Node.Same) {
			return exit.Fail(exit.Busy, "give the same command again, and look at what the nodes keep by now", "the nodes keep something else than was shown, and nothing was restored")
		}
	}
	// A node that keeps something can be taken once. These come first, in an order that all operators share: if two
	// restore a set with the same node and different new ones, the second fails before it has made a set.
	order := make([]int, len(servers))
	for i := range order {
		order[i] = i
	}
	rank := func(i int) string { return fmt.Sprint(found[i].Text == "", " ", set.Members[i]) } // "false" sorts before "true"
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(rank(i), rank(j)) })
	for n, i := range order {
		is, err := restoreAt(servers[i], wire.Kept{Self: set.Members[i], Description: set}, found[i].Text)
		if is {
			continue
		}
		code, why, hint := exit.Busy, "it keeps something else by now", "redlock members shows what the nodes keep by now"
		if err != nil {
			code, why, hint = exit.NoQuorum, facts.Discreet(err).Error(), cmp.Or(remedyFor(err), "give the same command again")
		}
		if n == 0 {
			return exit.Fail(code, hint, "%s was not restored, nor was another node: %s", servers[i].Addr, why)
		}
		if n >= set.Needs() {
			hint = "the set can be used as it is; the next program tells the node, if it keeps nothing: otherwise redlock members forget makes it forget what it keeps"
		}
		var done []string
		for _, i := range order[:n] {
			done = append(done, set.Members[i])
		}
		return exit.Fail(code, hint, "%s was restored, and %s was not: %s", strings.Join(done, ", "), servers[i].Addr, why)
	}
	c.Result("%s are the members of the set, and vote when %v are over at the soonest", strings.Join(set.Members, ", "), longest)
	return nil
}

// keepers returns the addresses of the nodes.
func keepers(nodes []peek.Node) (all []string) {
	for _, k := range nodes {
		all = append(all, k.Addr)
	}
	return all
}

func restoreAt(o *redis.Options, told wire.Kept, before string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), peek.Patience)
	defer cancel()
	n := peek.Client(o)
	defer n.Close()
	return fresh.Restore(ctx, n, told, before)
}

// restored returns the description of a new set of these servers, with the settings of what they keep; what they keep
// (found); and what the other members keep of all sets to which they have belonged (others).
func restored(servers []*redis.Options) (set *wire.Description, found, others []peek.Node, err error) {
	found = peek.Ask(servers, false)
	for i, k := range found {
		if k.Err != nil {
			return nil, nil, nil, exit.Fail(exit.NoQuorum, cmp.Or(remedyFor(k.Err), "name the nodes that the set is to have, without those that are gone; redlock members add adds others later"), "%s does not answer, and nothing was restored: %v", k.Addr, k.Err)
		}
		if j := slices.IndexFunc(found[:i], func(o peek.Node) bool { return k.RunID != "" && o.RunID == k.RunID }); j >= 0 {
			return nil, nil, nil, exit.Fail(exit.Usage, "name each Redis server once", "%s and %s are the same server", found[j].Addr, k.Addr)
		}
	}
	var last *wire.Description // the last description of the set that most of them keep
	longest, most := time.Duration(0), 0
	for i := 0; i < len(found)+len(others); i++ {
		k := slices.Concat(found, others)[i]
		d := k.Told.Description
		if d == nil || k.Copy {
			continue
		}
		of := &peek.View{Given: found, More: others, Set: d}
		others = append(others, peek.Ask(of.Missing(servers), false)...)
		of.More = others
		keep, none := 0, 0
		epoch, now := int64(0), 0 // the last one that the members keep, and how many of them keep it
		var unnamed []string      // members that keep a description of the set, and were not given
		for _, member := range d.Members {
			switch m := of.Node(member); {
			case m == nil || m.Copy:
			case m.Answers():
				return nil, nil, nil, exit.Fail(exit.Usage, cmp.Or(remedyFor(m.Err), "name it with --node, or have it stopped"), "the member %s runs, and does not say what it keeps: %v", m.Addr, m.Err)
			case m.Told.Description != nil && m.Told.Set == d.Set:
				keep++
				longest = max(longest, m.Told.Longest())
				if m.Told.Epoch > epoch {
					epoch, now = m.Told.Epoch, 0
				}
				if m.Told.Epoch == epoch {
					now++
				}
				if !slices.ContainsFunc(found, func(k peek.Node) bool { return k.Addr == m.Addr }) {
					unnamed = append(unnamed, m.Addr)
				}
			case m.Err == nil && m.Text == "":
				none++
			}
		}
		switch {
		case 2*now > len(d.Members):
			return nil, nil, nil, exit.Fail(exit.Usage, "redlock members --node "+strings.Join(urlsOf(d.Members), ",")+" shows the set; a node that keeps something else is made to forget it with redlock members forget", "the set of %s is not lost: %d of these %d members keep its last description (epoch %d)", strings.Join(d.Members, ", "), now, len(d.Members), epoch)
		case epoch == 1 && 2*(keep+none) > len(d.Members):
			return nil, nil, nil, exit.Fail(exit.Usage, "redlock prepare --node "+strings.Join(urlsOf(d.Members), ",")+" waits for it", "the set of %s heals by itself: as far as is known it was never changed, and any program tells it again to the %d of these members that have lost it", strings.Join(d.Members, ", "), none)
		}
		// A majority keeps the last description or an earlier one: members have gone back to an old file, or a change is
		// under way. Programs may count by an earlier one, so no member that keeps one may be left out of the new set.
		if 2*keep > len(d.Members) && len(unnamed) > 0 {
			return nil, nil, nil, exit.Fail(exit.Usage, "name them with --node, too", "%s: a majority of the set of %s keeps a description of it, and these members were not named", strings.Join(unnamed, ", "), strings.Join(d.Members, ", "))
		}
		later := last == nil || keep > most || keep == most && d.Epoch > last.Epoch
		if last != nil && d.Set == last.Set {
			later = d.Epoch > last.Epoch
		}
		if later {
			last, most = d, keep
		}
	}
	if last == nil {
		return nil, nil, nil, exit.Fail(exit.Usage, "the next program that is started makes a set of the nodes that it is given, and redlock prepare --max-ttl does that, too; one that has a copy of another server's data is made to forget it with redlock members forget", "none of these nodes keeps a description of its own, and there is nothing to restore: %s", strings.Join(keepers(found), ", "))
	}
	// The epoch differs from that of the last description, so a client that goes by that one counts no node that
	// keeps this one.
	set = &wire.Description{Epoch: last.Epoch + 1, Set: wire.SetName(uuid.NewString()), Separator: last.Separator, Quorum: last.Quorum, MaxTTL: longest.Milliseconds(), Since: time.Now().UnixMilli()}
	for _, k := range found {
		self := k.Addr
		if d := k.Told.Description; d != nil && d.Set == last.Set && !k.Copy {
			self = k.Told.Self // the address at which programs reach it
		}
		set.Members = append(set.Members, self)
	}
	if n := len(set.Members); set.Quorum <= n/2 || set.Quorum > n {
		set.Quorum = 0 // a majority
	}
	if err := set.Check(); err != nil {
		return nil, nil, nil, exit.Fail(exit.Usage, "name each Redis server once", "these nodes are no set: %v", err)
	}
	return set, found, others, nil
}

// urlsOf returns the addresses as URLs for --node.
func urlsOf(addresses []string) (urls []string) {
	for _, a := range addresses {
		urls = append(urls, "redis://"+a)
	}
	return urls
}
