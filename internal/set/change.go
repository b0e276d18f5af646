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

// A change of members, or of what the set has agreed on, is one description after another. Its rules are
// those of docs/adr, 9, and members.pml in docs/model finds two holders without each of them:
//
//   - One node comes or goes at a time. So any majority of the members before has a node in common with any
//     majority of those afterwards, and there is no phase in which both must agree.
//   - The next description is proposed when nothing is counted any more by the one before this one: when a
//     majority of the former members keeps this one, no client counts by the older one, and what it has
//     counted is over after the longest time that a lock lives (settle). The longest TTL has rules of its own
//     (wire.Description.Toward).
//   - The members before choose it (choose).
//   - Before, the tables of counters of a majority of them become those of all. So the fence of a lock
//     that was counted by the members of two descriptions ago is known to a majority of the next (merge).
//   - A node that comes has no vote before its quarantine is over, and is not proposed before. Otherwise the set
//     would have one member more, and not one vote more.
//
// The operator may die at any moment. What a majority may have taken is finished by the next change, or by
// the first client that asks for one; what none has taken was never there.

// candidate makes a lane to a node that is no member, to see whether it can become one. decided must follow. A
// node that was a member before, and keeps the description that says so, is not retired meanwhile (gone).
func (s *Set) candidate(name string) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	lanes := s.lasting()
	i := slices.IndexFunc(lanes, func(n *node) bool { return n.Name == name && !n.Retired() })
	if i < 0 {
		i = len(lanes)
		s.addNode(&lanes, name)
		s.nodes.Store(&lanes)
	}
	lanes[i].considered++
	return lanes[i]
}

// decided ends the lane to a node that was considered and has not become a member.
func (s *Set) decided(n *node) {
	s.mu.Lock()
	n.considered--
	ends := n.considered == 0 && n.Index >= len(s.given) && !slices.Contains(s.View().nodes, n) && n.Retire()
	s.mu.Unlock()
	if ends {
		n.end()
	}
}

// Known is the description of the set; nil: it is not known.
func (s *Set) Known() *wire.Description {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// ErrOvertaken means that another change came first.
var ErrOvertaken = errors.New("another change of the set came first")

// Change has the members of a view choose the description d, which follows theirs, and returns when it is in
// force: a majority of the members before keeps it, and so does a quorum of those that there are then. Add
// is the address of the node that comes; empty: none does. Over: the operator declares that no lock lives for longer than d allows.
// Plan: nothing is changed, and Change waits for nothing but the answer of the node that comes; it tells what it would
// wait for.
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
	if !alikeButTTL(chosen, d) || chosen.MaxTTL != d.MaxTTL || chosen.Other != d.Other { // an operator may have begun the same change, and died
		return ErrOvertaken
	}
	return nil
}

// comes writes a note at a node that is to become a member, before the description that makes it one is proposed
// (choose.lua). Without the note, no client could tell whether the node took part in the choice of the description after
// that, and has lost its data since: the node would count for that choice only if all members answer. And any client that
// goes by the description may tell the node (join.lua): with the note and the marker of that time, the node is as one that
// was told when the description was chosen. So a member that dies meanwhile does not keep the change from coming into force.
//
// The time of the proposal is that of now: so no other operator has made the same description, and had the node note that,
// since this one was chosen.
func (s *Set) comes(w *wait, n *node, d *wire.Description, tell Progress) error {
	if err := s.fit(w, n, tell); err != nil { // it may have gone in the meantime
		return err
	}
	d.Since = s.cfg.Clock.Now().UnixMilli()
	_, err := s.ask(w, &View{nodes: []*node{n}}, wire.Choose, []string{strconv.FormatInt(d.Epoch, 10), "", d.Text(), d.Set, "comes"})
	return err
}

func (w *wait) why() error { return context.Cause(w.ctx) }

// until waits for something that joining nodes may bring about.
func (s *Set) until(w *wait, so func() bool) error {
	for !w.over {
		s.mu.Lock()
		news := s.news
		s.mu.Unlock()
		if so() {
			return nil
		}
		w.wait(news)
	}
	return w.why()
}

// soon is after how many looks a node that comes should have answered.
const soon = 5

// fit waits until a node may become a member.
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

// settle waits until nothing is counted any more by the description before this one; and if names become other
// paths with the next one, until no lock lives of programs that do not run any more. Where only the longest TTL
// changes, Description.Toward says what must have come before. Over: no lock is held any more that is longer than the
// next one allows.
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

// alikeButTTL reports whether two descriptions differ in nothing but the longest TTL.
func alikeButTTL(d, o *wire.Description) bool {
	return d.Alike(o) && d.Quorum == o.Quorum && d.Separator == o.Separator
}

// untilKept waits until so many nodes keep a description, or a later one.
func (s *Set) untilKept(w *wait, lanes []*node, d *wire.Description, need int, what string, tell Progress) error {
	if s.keep(lanes, d) >= need {
		return nil
	}
	if tell(what, 0); w.plan {
		return nil
	}
	return s.until(w, func() bool { return s.keep(lanes, d) >= need })
}

// former gives the lanes to the members before.
func (s *Set) former(d *wire.Description) (lanes []*node) {
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
		lanes = append(lanes, all[i])
	}
	s.nodes.Store(&all)
	return lanes
}

// keep counts the nodes that keep a description, or a later one that has it in its past. Another one of a later epoch
// may be what one node keeps that is wrong: it does not show that the node has ever had this one.
func (s *Set) keep(lanes []*node, d *wire.Description) (n int) {
	for _, l := range lanes {
		if l.vote.Kept().Follows(d) {
			n++
		}
	}
	return n
}

// inForce waits until the description that follows that of a view is in force, and then for a NodeTimeout at most until
// all members keep it. One that does not would know only the set as it was before, if the others lost their data now.
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
	rest := w.until(s.cfg.NodeTimeout)
	defer rest.stop()
	_ = s.until(rest, func() bool { return s.keep(now.nodes, d) == len(now.nodes) })
	return nil
}

// merge makes the tables of counters of a majority of the members those of all that answer, which must be a
// majority, too.
//
// A number that is so far ahead of the time that a grant with it is no vote stays where it is, if a quorum
// has none like it: a clock was wrong once, and it costs that node its vote. It is no fence, since a fence that was
// conceded (fence.go) is on so many nodes that the others are no quorum, also among the members
// of the description after the one by which it was counted.
func (s *Set) merge(w *wait, v *View) error {
	var tables [2]map[string][]int64 // by bucket, the numbers of the nodes
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

// ask gives what the members answer: a majority of them at least.
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
