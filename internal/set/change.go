package set

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
)

// A change of members, or of what the set has agreed on, is one description after another. Its rules are those of docs/adr,
// 9. members.pml in docs/model finds a violation without each of the first three:
//
//   - One node comes or goes at a time. So any majority of the members before shares a node with any majority of those
//     afterwards, and there is no phase in which both must agree.
//   - The description of epoch e+1 is proposed when no lock counts any more by that of epoch e-1. When a majority of the
//     former members keeps e, no client counts by e-1, and what counted by it is over after the longest time that a lock
//     lives (settle). The longest TTL has rules of its own (wire.Description.Toward).
//   - The members before choose it (choose).
//   - Before that, the fence counters of a majority of them are merged into those of all (merge). So a majority of the next
//     members knows the fence of a lock that was counted by the members of two descriptions ago.
//   - A node that comes is proposed when its quarantine is over: until then it has no vote. Otherwise the set would have one
//     member more, and not one vote more.
//
// The operator may die at any moment. The next change, or a client that meets a member with the next one (finishChoice),
// finishes what a majority may have taken; what no majority has taken was never there.

// candidate returns the node at the address name, for a change that looks whether it can become a member; it makes the lane
// if there is none. Until the caller calls decided, which it must, the lane is not retired, even if the node keeps the
// description of the set that removed it (gone). It takes s.mu.
func (s *Set) candidate(name string) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := s.lasting()
	i := slices.IndexFunc(nodes, func(n *node) bool { return n.Name == name && !n.Retired() })
	if i < 0 {
		i = len(nodes)
		s.addNode(&nodes, name)
		s.nodes.Store(&nodes)
	}
	nodes[i].considered++
	return nodes[i]
}

// decided is called once for each node n that candidate returned, when its change ends. If n is no member then, is no given
// node, and no other change looks at it, decided ends its lane.
func (s *Set) decided(n *node) {
	s.mu.Lock()
	n.considered--
	ends := n.considered == 0 && n.Index >= len(s.given) && !slices.Contains(s.View().nodes, n) && n.Retire()
	s.mu.Unlock()
	if ends {
		n.end()
	}
}

// Known returns the description of the set by which the client goes; nil: none yet.
func (s *Set) Known() *wire.Description {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// ErrOvertaken means that another client had the set's next description chosen first.
var ErrOvertaken = errors.New("another change of the set came first")

// Change has the members of v choose d as the set's next description, and returns nil when d is in force: a majority of v's
// members keeps it, and so does a quorum of d's. If the set was changed since v, the error is ErrOvertaken. After an error d
// may come into force all the same. add is the address of the node that d adds (then Change sets d.Since); "": none. With
// over, the operator declares that no lock lives longer than d allows. With plan, nothing is changed, and Change waits only
// for the answer of the node that d adds. tell (not nil) gets what it waits for, or would.
func (s *Set) Change(ctx context.Context, v *View, d *wire.Description, add string, over, plan bool, tell Progress) error {
	w := &wait{ctx: ctx, host: s.cfg.Host, timer: time.NewTimer(time.Hour), key: s.cfg.Host.Token(), plan: plan}
	w.timer.Stop()
	defer w.stop()
	var comes *node
	if add != "" {
		comes = s.candidate(add)
		defer s.decided(comes)
		if err := s.fit(w, comes, tell); err != nil {
			return err
		}
	}
	if err := s.settle(w, v, d, over, tell); err != nil || plan {
		return err
	}
	if err := s.merge(w, v); err != nil {
		return err
	}
	if comes != nil {
		if err := s.comes(w, comes, d, tell); err != nil {
			return err
		}
	}
	chosen := s.choose(w, d, v, tell)
	switch {
	case w.over:
		return w.why()
	case chosen == nil:
		return ErrOvertaken
	}
	s.chosen(chosen)
	if err := s.inForce(w, v, tell); err != nil {
		return err
	}
	if !alikeButTTL(chosen, d) || chosen.MaxTTL != d.MaxTTL || chosen.Other != d.Other { // equal: an operator had begun the same change, and died
		return ErrOvertaken
	}
	return nil
}

// comes writes a note of d, the next description of the set, at node n, which is to become a member by it, before d is
// proposed. The note also has n's marker (a key that shows that n lost no data). While both stand, n has lost nothing since,
// and any client that goes by d may give it to n (join.lua): a member that dies does not hold d up. Without it no client
// could tell if n took part in the choice after d and lost its data since: n would count there only if all members answer.
//
// comes sets d.Since to now, so that d differs from an equal description that another operator had n note before. Like fit,
// it waits until n may become a member (tell gets what it waits for), and returns an error if n cannot, or w ends.
func (s *Set) comes(w *wait, n *node, d *wire.Description, tell Progress) error {
	if err := s.fit(w, n, tell); err != nil { // n may have gone in the meantime
		return err
	}
	d.Since = s.cfg.Clock.Now().UnixMilli()
	_, err := s.ask(w, &View{nodes: []*node{n}}, wire.Choose, []string{strconv.FormatInt(d.Epoch, 10), "", d.Text(), d.Set, "comes"})
	return err
}

func (w *wait) why() error { return context.Cause(w.ctx) }

// until blocks until cond returns true. It calls cond, without s.mu, at first and each time the set has news (a node was
// joined, say). If w is over first, it returns the cause of w's context; nil if only w's time is over (Change sets w none).
func (s *Set) until(w *wait, cond func() bool) error {
	for !w.over {
		s.mu.Lock()
		news := s.news
		s.mu.Unlock()
		if cond() {
			return nil
		}
		w.wait(news)
	}
	return w.why()
}

// soon is for how many tries, 50 ms apart, fit bears with a node that cannot be reached; then it also says that it waits.
const soon = 5

// fit waits until n may become a member: n has answered, keeps no description of another set or as another member, and has a
// vote. It returns an error if that cannot be, or w ends. A plan (w.plan) does not wait for the vote. fit calls tell with
// what it waits for.
func (s *Set) fit(w *wait, n *node, tell Progress) error {
	for tries := 0; !w.over; {
		if away := n.Away(); away != nil && (away.Status == wire.Unfit || tries >= soon) {
			return fmt.Errorf("node %s: %w", n.Name, away.Err)
		}
		switch t, known := n.vote.Kept(), s.Known(); {
		case n.vote.CopyOf() != "":
			return fmt.Errorf("node %s: %w", n.Name, vote.CopyError{Of: n.vote.CopyOf()})
		case t.Description == nil:
		case t.Set != known.Set:
			return fmt.Errorf("node %s: %w", n.Name, vote.ForeignError{Kept: t})
		case t.Self != n.Name && known.Has(t.Self):
			return fmt.Errorf("node %s: %w", n.Name, vote.CopyError{Of: t.Self})
		}
		switch rest, why := n.vote.Suspended(); {
		case !n.vote.HasMet():
			if tries++; tries == soon {
				tell(fmt.Sprintf("node %s to answer", n.Name), 0)
			}
			w.pause(50 * time.Millisecond)
		case rest > 0:
			tell(fmt.Sprintf("node %s, which has no vote yet: %v", n.Name, why), rest)
			if w.plan {
				return nil
			}
			w.pause(rest + time.Millisecond)
		case n.vote.Skewed() != 0:
			return fmt.Errorf("node %s: %w", n.Name, vote.SkewError{Skew: n.vote.Skewed(), Limit: s.cfg.MaxNodeSkew})
		default:
			return nil
		}
	}
	return w.why()
}

// settle waits until next, the set's description to come after v's, may be proposed: until no lock is alive that was counted
// by the description before v's. If next has another Separator, the operator has stopped all programs that use the set, and
// settle waits for their locks. If only the longest TTL changes, Description.Toward says what must have come before. over
// declares that no lock is held that is longer than next allows. A plan (w.plan) waits for nothing: tell is called with what
// it would wait for. The error is that of w's context.
func (s *Set) settle(w *wait, v *View, next *wire.Description, over bool, tell Progress) error {
	d, what := v.Description, "the locks that were counted before the last change to be over"
	switch {
	case next.Separator != d.Separator:
		what = "the locks of the programs that were stopped to be over"
	case len(d.Former) == 0:
		return nil
	}
	former := s.former(d)
	if need := len(d.Former)/2 + 1; len(d.Former) > 0 {
		if err := s.untilKept(w, former, d, need, fmt.Sprintf("a majority of the members before the last change (%d of %d) to keep its description", need, len(d.Former)), tell); err != nil {
			return err
		}
	}
	if alikeButTTL(next, d) {
		if next.MaxTTL > d.MaxTTL {
			return s.untilKept(w, v.nodes, d, len(v.nodes), fmt.Sprintf("all %d members to keep the description by which quarantines outlast %v", len(v.nodes), d.Longest()), tell)
		}
		if over || next.Longest() >= d.Longest() {
			return nil
		}
		what = fmt.Sprintf("the locks to be over that may live for longer than %v", next.Longest())
	}
	rest := s.group.Quarantine()
	tell(what, rest)
	if w.plan {
		return nil
	}
	if w.pause(rest); w.over {
		return w.why()
	}
	return nil
}

// alikeButTTL reports whether d and o have the same members, quorum and separator; the longest TTL may differ.
func alikeButTTL(d, o *wire.Description) bool {
	return d.Alike(o) && d.Quorum == o.Quorum && d.Separator == o.Separator
}

// untilKept waits until need of the nodes keep d, a description of the set, or a later one with d in its past. If it must
// wait, it first calls tell with what; a plan (w.plan) does not wait. The error is that of w's context, the only end of w.
func (s *Set) untilKept(w *wait, nodes []*node, d *wire.Description, need int, what string, tell Progress) error {
	if s.keep(nodes, d) >= need {
		return nil
	}
	if tell(what, 0); w.plan {
		return nil
	}
	return s.until(w, func() bool { return s.keep(nodes, d) >= need })
}

// former returns the members by the description just before d, also those that still are. It makes lanes, and takes s.mu.
func (s *Set) former(d *wire.Description) (nodes []*node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.lasting()
	for _, member := range d.Former {
		// A node that has become a member again has another lane now than when it was one before.
		is := func(n *node) bool { return n.vote.Member(d.Set) == member || n.Name == member }
		i := slices.IndexFunc(all, func(n *node) bool { return is(n) && !n.Retired() })
		if i < 0 {
			i = slices.IndexFunc(all, is)
		}
		if i < 0 {
			i = len(all)
			s.addNode(&all, member)
		}
		all[i].epoch = max(all[i].epoch, d.Epoch-1)
		nodes = append(nodes, all[i])
	}
	s.nodes.Store(&all)
	return nodes
}

// keep counts the nodes that keep d, a description of the set, or a later one that has d in its past. Without that, a later
// one may be wrong, as one node alone may keep it: it does not show that the node ever kept d. The caller needs no mutex.
func (s *Set) keep(nodes []*node, d *wire.Description) (n int) {
	for _, l := range nodes {
		if l.vote.Kept().Follows(d) {
			n++
		}
	}
	return n
}

// inForce waits until the set's present description is in force: a majority of before's members, who chose it, and a quorum
// of its own keep it. Then it waits, for at most a NodeTimeout, until all of its own do: if those that keep it lost their
// data now, the others would know only the set before. tell gets what it waits for. The error is that of w's context.
func (s *Set) inForce(w *wait, before *View, tell Progress) error {
	s.mu.Lock()
	now := s.View()
	s.mu.Unlock()
	d := now.Description
	ready := func() bool {
		return s.keep(before.nodes, d) > len(before.nodes)/2 && s.keep(now.nodes, d) >= now.Quorum
	}
	if !ready() {
		tell("a majority of the members to keep the new description", 0)
	}
	if err := s.until(w, ready); err != nil {
		return err
	}
	rest := w.sooner(s.cfg.NodeTimeout)
	defer rest.stop()
	_ = s.until(rest, func() bool { return s.keep(now.nodes, d) == len(now.nodes) })
	return nil
}

// merge raises the fence counters of v's members to the largest that a majority of them has, before a change proposes the
// next description. A majority must answer, both when the counters are read and when they are written. A node has them in
// two tables, by bucket: several names share one counter.
//
// A counter so far ahead of the nodes' clocks that a grant with it is no vote (Group.Beyond) is no fence: a clock was wrong
// once, and that costs its node's vote. It is not copied if the nodes without one are a quorum. A fence that clients have
// conceded (acquisition.concede) is on enough nodes to leave no quorum without it, also among the members of the next epoch.
func (s *Set) merge(w *wait, v *View) error {
	var tables [2]map[string][]int64 // by bucket, the numbers that the nodes have
	for i := range tables {
		tables[i] = make(map[string][]int64)
	}
	said, err := s.ask(w, v, wire.Merge, nil)
	if err != nil {
		return err
	}
	for _, said := range said {
		both, ok := said.([]any)
		for i := 0; ok && i < len(both) && i < len(tables); i++ {
			pairs, _ := both[i].([]any)
			for j := 0; j+1 < len(pairs); j += 2 {
				bucket, _ := pairs[j].(string)
				text, _ := pairs[j+1].(string)
				if n, err := strconv.ParseFloat(text, 64); err == nil { // a server may write it as 1.76e+15
					tables[i][bucket] = append(tables[i][bucket], int64(n))
				}
			}
		}
	}
	middle := s.group.Middle(s.cfg.Clock.Now())
	ahead := func(number int64) bool { return s.group.Beyond(number, middle) > 0 }
	args := []string{""}
	for i, table := range tables {
		for _, bucket := range slices.Sorted(maps.Keys(table)) {
			numbers := table[bucket]
			slices.Sort(numbers)
			if rest := slices.IndexFunc(numbers, ahead); rest >= 0 && len(said)-(len(numbers)-rest) >= v.Quorum {
				numbers = numbers[:rest]
			}
			if len(numbers) > 0 {
				args = append(args, strconv.FormatInt(numbers[len(numbers)-1], 10), bucket)
			}
		}
		if i == 0 {
			args[0] = strconv.Itoa(len(args) / 2)
		}
	}
	_, err = s.ask(w, v, wire.Merge, args)
	return err
}

// ask sends the script of op with args to all members of v until a majority answers in the same round, and returns the
// replies. It returns an error if w ends, or, where no majority has answered, if a node may not or cannot run the script.
func (s *Set) ask(w *wait, v *View, op wire.Op, args []string) (said []any, err error) {
	need := len(v.nodes)/2 + 1
	for !w.over {
		p := s.poll(w, v, op, args, 0, func(p *poll) bool { return false })
		if len(p.said) >= need {
			return p.said, nil
		}
		if p.denied != nil {
			return nil, p.denied
		}
		w.pause(s.cfg.NodeTimeout)
	}
	return nil, w.why()
}
