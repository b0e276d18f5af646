package set

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// Each node of a set keeps a description of it: epoch, members, quorum, separator and longest TTL (wire.Description). A
// client learns of it when it joins a node, and each vote counts by the description that the client knows: of two clients
// that know different members, or another quorum, the nodes serve one. So the nodes that a program is given are where it
// begins to look, and not what it counts by.
//
// No node decides alone which description that is (wire.Believed). A client goes by one that a majority of the given nodes
// keeps. From then on it goes by the next one, or a later one, that a majority of the members which it knows keeps. If a
// majority of the given nodes keeps none, and none keeps any, the first client has one chosen from its own options (choose).
// A description becomes known to a node, or to a client, only when it has been chosen.
//
// The client gives its description to each node that keeps an earlier one. A member that keeps none has lost its data, and
// is given it again (mayTell). If a majority of the members keeps the description of another set, that is the set from then
// on: they have lost the one before. If most members of a set that was changed keep none, nobody can know which description
// was the last, and an operator decides (forgotten). A node that keeps anything else has no vote until it is made to forget
// that, and a Warning says so (strangers).

// observe records n's answer to a join (join.lua) that left at sent: told, what n keeps (the set's description, and n's own
// address), and that n has shown mark, its marker: a key that shows that n has not lost data. told is recorded first, and no
// vote counts under mark before: what n kept before may be out of date. observe takes s.mu.
func (s *Set) observe(n *node, told wire.Kept, mark wire.Marker, sent time.Time) {
	s.mu.Lock()
	if n.vote.Keep(told, mark); told.Description == nil {
		n.untaken = n.offered
	}
	n.vote.Vouched(sent)
	s.identify(n, told, mark.RunID)
	s.consider()
}

// consider acts on what all nodes keep now: it decides which description of the set the client goes by, retires and joins
// lanes, warns the operator, and wakes those that wait for s.news. Caller holds s.mu; consider unlocks it.
func (s *Set) consider() {
	stale := s.learn()
	behind := append(s.behind(), stale...)
	gone := s.gone()
	s.strangers()
	s.finishChoice()
	close(s.news)
	s.news = make(chan struct{})
	s.mu.Unlock()
	for _, n := range gone {
		n.end()
	}
	rejoinAll(behind)
}

// learn makes the client go by the latest description of the set that it may believe (wire.Believed), and sets s.refused.
// The caller must join stale again: the answers may show that most nodes have lost it (forgotten). Caller holds s.mu.
func (s *Set) learn() (stale []*node) {
	for steps := 0; ; steps++ {
		d := wire.Believed(s.witnesses(), s.known)
		if d == nil {
			break
		}
		next := s.known == nil || d.Set == s.known.Set && d.Epoch > s.known.Epoch
		if !next && (s.quorumKeeps() || steps > 0) {
			break // a quorum keeps the known one: that is the set. And from one set to another is one step
		}
		s.adopt(d)
	}
	if s.known != nil {
		s.adopt(s.known) // an address may turn out to be that of another member
	} else {
		s.refused = s.copies()
	}
	if s.refused == nil {
		if stale, s.refused = s.forgotten(); s.refused != nil {
			s.ready.Store(nil)
		}
	}
	return stale
}

// heeded returns the nodes that decide which description of the set the client goes by: the members, or, while the client
// has none, the given nodes. Caller holds s.mu.
func (s *Set) heeded() []*node {
	if s.known != nil {
		return s.View().nodes
	}
	return (*s.nodes.Load())[:len(s.given)]
}

// witnesses returns the nodes that decide (heeded), and which description each keeps, for wire.Believed. Caller holds s.mu.
func (s *Set) witnesses() (all []wire.Witness) {
	for _, n := range s.heeded() {
		all = append(all, wire.Witness{Name: n.Name, Kept: n.vote.Kept(), Met: n.vote.HasMet()})
	}
	return all
}

// ahead reports whether node n keeps a later description of the same set than s.known, by which the client goes; false if
// that is nil. Caller holds s.mu.
func (s *Set) ahead(n *node) bool {
	t := n.vote.Kept()
	return s.known != nil && t.Description != nil && t.Set == s.known.Set && t.Epoch > s.known.Epoch
}

// finishChoice completes, in a goroutine, a change of the set that stopped halfway (unfinished), as when the operator's
// program has died. It lets the members choose (choose) the description that only some of them keep, if a second member
// shows that it was chosen. It starts one goroutine at a time, and none after Close. Caller holds s.mu.
func (s *Set) finishChoice() {
	if s.finishing || s.closed || !s.unfinished() {
		return
	}
	s.finishing = true
	s.tasks.Add(1)
	w := s.newWait(s.ctx, 2*s.cfg.NodeTimeout)
	go func() {
		defer s.tasks.Done()
		defer w.stop()
		w.pause(lane.Jittered(s.cfg.NodeTimeout/4, s.cfg.Host.Jitter())) // as a rule the operator lives
		s.mu.Lock()
		v, so := s.View(), s.unfinished()
		s.mu.Unlock()
		if so && !w.over {
			if d := s.choose(w, nil, v, nil); d != nil {
				s.chosen(d)
			}
		}
		s.mu.Lock()
		s.finishing = false
		s.mu.Unlock()
	}()
}

// unfinished reports whether a change has stopped halfway, or is under way: a member keeps a later description of the set
// than s.known, by which the client goes, and no quorum keeps s.known. False if that is nil. Caller holds s.mu.
func (s *Set) unfinished() bool {
	return s.known != nil && !s.quorumKeeps() && slices.ContainsFunc(s.View().nodes, s.ahead)
}

// forgotten returns an error if most members of a set that was changed have lost its description: one of them may have kept
// a later one than any that is still known, so an operator must say which nodes the set has. Until then no client gives
// these members a description (mayTell). A set that was never changed heals by itself: no error.
//
// A member has lost it if a join has offered it s.known, by which the client goes, and it keeps none all the same: before,
// it may have just been added. While s.known is nil, the members are the given nodes that the latest description names. One
// that keeps none has lost it only if it said so after the client first heard of that description: before, the set may have
// been new. stale are the nodes whose answer is older: the caller must join them again. Caller holds s.mu.
func (s *Set) forgotten() (stale []*node, _ error) {
	nodes := s.heeded()
	var kept *wire.Description  // the latest one that a node keeps
	var other *wire.Description // one that a node keeps of another set
	var heard time.Time         // since when the client has known kept
	for _, n := range nodes {
		t := n.vote.Kept()
		if s.known != nil && t.Description != nil && t.Set != s.known.Set {
			other = t.Description
		}
		if t.Description != nil && (s.known == nil || t.Set == s.known.Set) && (kept == nil || t.Epoch > kept.Epoch) {
			kept, heard = t.Description, n.vote.KeptSince()
		}
	}
	last := kept
	if kept == nil || s.known != nil && s.known.Epoch > kept.Epoch {
		last = s.known
	}
	if last == nil || s.known != nil && last.Epoch == 1 {
		return nil, nil
	}
	var members []string
	none := 0
	for _, n := range nodes {
		member := cmp.Or(n.vote.Taken(), n.vote.Member(last.Set), n.Name)
		if !last.Has(member) {
			continue
		}
		members = append(members, member)
		t := n.vote.Kept()
		switch {
		case t.Description != nil || t.Damage != nil || !n.vote.HasMet() || n.untaken != s.known:
		case s.known == nil && !n.vote.ShownSince(heard):
			stale = append(stale, n)
		default:
			none++
		}
	}
	switch {
	case 2*none <= len(members):
		return stale, nil
	case other != nil:
		return nil, fmt.Errorf("redlock: %d of the nodes %s have lost the description of their set (the key redlock:set), and another one has become a node of the set with the members %s: if the set was restored with these, give this program all of them", none, strings.Join(members, ", "), strings.Join(other.Members, ", "))
	case kept == nil:
		return nil, fmt.Errorf("redlock: %d of the nodes %s have lost the description of their set (the key redlock:set), and no other one that answers keeps it: if none does, the next program that is started makes a new set, or redlock prepare; otherwise bring that node back, and restore the set with redlock members restore", none, strings.Join(members, ", "))
	}
	return nil, fmt.Errorf("redlock: %d of the nodes %s have lost the description of their set (the key redlock:set), and another one keeps its epoch %d, with the members %s: nobody can know whether that was the last one. If most of these members keep it, give this program all of them; otherwise restore the set with redlock members restore", none, strings.Join(members, ", "), kept.Epoch, strings.Join(kept.Members, ", "))
}

// adopt makes the client go by d, a description of the set, from now on: it sets members, View, quarantines and s.refused,
// and calls Events.Joined or Members if d is new. If the program cannot use the set that d describes, no vote counts by d,
// and each call for a lock returns why. The program still follows the set: the next d may be usable. Caller holds s.mu.
func (s *Set) adopt(d *wire.Description) {
	before := s.known
	if s.known = d; before != d {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	if s.refused = s.cfg.Accept(d); s.refused != nil {
		s.ready.Store(nil)
		s.group.Refuse(d)
	}
	if s.closed {
		return
	}
	nodes, members := s.nodesOf(d)
	for _, n := range nodes {
		if i := slices.Index(members, n); i >= 0 {
			n.vote.TakeFor(&d.Members[i])
			n.epoch = d.Epoch
			continue
		}
		n.vote.TakeFor(nil)
		if before != nil && before.Set != d.Set {
			n.epoch = 0 // of another set
		}
	}
	s.nodes.Store(&nodes)
	was, is := s.group.Bound(d.Longest()) // before anything counts by d
	if v := s.View(); v.Description != d || !slices.Equal(v.nodes, members) {
		s.setView(newView(members, d.Needs(), d))
	}
	if is != was {
		for _, n := range s.View().nodes {
			n.vote.Requarantine(is > was)
		}
	}
	switch {
	case before == nil:
		s.cfg.Events.Joined(d)
	case before != d:
		s.cfg.Events.Members(d)
	}
}

// nodesOf returns all nodes, which the caller stores in s.nodes, and those that are members by d, a description of the set,
// in its order. It makes lanes where there are none. A node that says which member it is, is that one, whatever its address;
// the address counts only where no node says so. Each member has its own lane: go-redis clients that ask sentinels have one
// address for all. A node at A's address that says that it is member B has a copy of B's data, or is B: it counts as A, has
// no vote (vote.CopyError), and no further lane is made to that address. Caller holds s.mu.
func (s *Set) nodesOf(d *wire.Description) (nodes, members []*node) {
	nodes = s.lasting()
	for _, member := range d.Members {
		var it *node
		for _, is := range []func(*node) bool{
			func(n *node) bool { return n.vote.Member(d.Set) == member },
			func(n *node) bool { return n.vote.Member(d.Set) == "" && n.Name == member },
			func(n *node) bool { return n.Name == member },
		} {
			free := func(n *node) bool { return !n.Retired() && !slices.Contains(members, n) && is(n) }
			if i := slices.IndexFunc(nodes, free); it == nil && i >= 0 {
				it = nodes[i]
			}
		}
		if it == nil {
			it = s.addNode(&nodes, member)
		}
		members = append(members, it)
	}
	return nodes, members
}

// strangers calls Events.Warning for each useless node, once: a given one that is no member, a copy of another node, or one
// that keeps something else than s.known, the set's description (nil: no warnings). Caller holds s.mu.
func (s *Set) strangers() {
	if s.known == nil {
		return
	}
	v := s.View()
	for _, n := range *s.nodes.Load() {
		t, given, is, why := n.vote.Kept(), n.Index < len(s.given), slices.Contains(v.nodes, n), ""
		switch {
		case n.vote.CopyOf() != "":
			why = fmt.Sprintf("says that it is the member %s, and that address answers as another server: it has a copy of its data, and no vote; make it forget, with redlock members forget", n.vote.CopyOf())
		case !n.vote.HasMet() || n.considered > 0 || !given && n.Retired():
			continue
		case t.Damage != nil:
			why = fmt.Sprintf("keeps what cannot be the description of a set (%v), and has no vote: make it forget that, with redlock members forget", t.Damage)
		case is && s.ahead(n):
			if since := n.vote.KeptSince(); since.Add(4 * s.cfg.NodeTimeout).After(s.cfg.Clock.Now()) {
				s.lookLater() // as a rule a change is under way
				continue
			}
			old := fmt.Sprintf("this program goes by epoch %d", s.known.Epoch)
			for _, o := range v.nodes {
				if k := o.vote.Kept(); k.Precedes(t.Description) {
					old += fmt.Sprintf(", %s keeps epoch %d", o.Name, k.Epoch)
				}
			}
			why = fmt.Sprintf("keeps a later description of the set (epoch %d, with the members %s), which no majority of the members keeps, and has no vote: if no change is under way, the others may be out of date (%s); restore the set with redlock members restore", t.Epoch, strings.Join(t.Members, ", "), old)
		case t.Other(s.known) && t.Set == s.known.Set:
			why = fmt.Sprintf("keeps another description of the epoch %d than the one by which this program goes, and has no vote: restore the set with redlock members restore, or make the node forget that with redlock members forget", t.Epoch)
		case t.Other(s.known):
			why = fmt.Sprintf("keeps the description of another set, with the members %s, and has no vote: this program uses the set with the members %s; give it the nodes of one set, or make the node forget the other with redlock members forget", strings.Join(t.Members, ", "), strings.Join(s.known.Members, ", "))
		case is:
			n.stranger = false
		case !given || s.selfOf(n) != "" || t.Description != nil && t.Epoch < s.known.Epoch: // no harm, or the node is given the known one
		case t.Description == nil:
			why = fmt.Sprintf("was given, has the address of no member, and keeps no description: it gets no requests; the members are %s: give this program these, or make the node one with redlock members add", strings.Join(s.known.Members, ", "))
		default:
			why = fmt.Sprintf("was given, and is no member of the set any more: it gets no requests; the members are %s: give this program these", strings.Join(s.known.Members, ", "))
		}
		if why == "" || n.stranger {
			continue
		}
		n.stranger = true
		s.cfg.Events.Warning(fmt.Errorf("redlock: node %s %s", n.Name, why))
	}
}

// lookLater makes strangers (it warns of useless nodes) run in 4 NodeTimeouts: most changes are over. Caller holds s.mu.
func (s *Set) lookLater() {
	if s.later != nil || s.closed {
		return
	}
	s.later = time.AfterFunc(4*s.cfg.NodeTimeout+time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.later = nil
		s.strangers()
	})
}

// behind returns the nodes to join again. Joining gives s.known, the set's description, to those that keep an earlier one or
// have lost it. If a member that lost it may be given it only when others have answered (mayTell), behind sets s.lacking,
// and also returns these others; otherwise it clears s.lacking. Caller holds s.mu.
func (s *Set) behind() (nodes []*node) {
	if s.known == nil {
		return nil
	}
	lacking := false
	for _, n := range *s.nodes.Load() {
		switch t := n.vote.Kept(); {
		case !n.vote.HasMet():
		case t.Damage != nil: // nothing overwrites it
		case t.Precedes(s.known):
			nodes = append(nodes, n)
		case t.Description == nil && s.selfOf(n) != "":
			// A node that took part in the choice, or noted before that it comes (Set.comes), needs no leave: it is asked
			// once.
			if s.mayTell(n) || n.tried != s.known {
				n.tried = s.known
				nodes = append(nodes, n)
				break
			}
			lacking = true
			since, _ := n.vote.LostAt()
			nodes = append(nodes, s.notHeardSince(n, since)...)
		}
	}
	s.lacking.Store(lacking)
	return nodes
}

// mayTell reports whether member m, which keeps no description of the set, may be given s.known, the one by which the client
// goes. The client must be sure that this is the last one, or close to it. Otherwise a client that has slept through two
// changes, and finds a majority of the members that it knows without their data, would make them serve a description whose
// quorums need not meet those of other clients.
//
// So a majority of the members must have shown, since m lost its data, that they keep s.known. None of them had a later one
// at that time, and m has not kept one since: so m has been in no majority that keeps a later one, and s.known has its
// majority without m. Half of the members is enough if the client has heard from all, and the other half keeps none.
//
// If the set was never changed, as far as is known, it is enough that each other member has been heard from, or is known to
// be away, and keeps s.known or none: so the set heals by itself, and one node may be down while another loses its data. A
// member that kept something else when last heard from rules this out, also while it is away: it shows that there is a later
// description, or that an operator has made another set. (What that leaves open is in docs/safety.md.)
//
// But a member may keep the first description of a rival set, one of the same members (Kept.Rivals), if all members but m
// have said since the loss what they keep, and are not away. Programs make such sets when most nodes have lost their data.
// Then of three members one may keep s.known, one the rival, and m none: m may be given either (told.pml in docs/model). Any
// two quorums meet, and the node where they do has no vote for as long as a lock of either set can live. If an answer is
// from before the loss, the rival set may have changed since, and have a quorum elsewhere. Caller holds s.mu.
func (s *Set) mayTell(m *node) bool {
	if m.vote.Kept().Damage != nil {
		return false
	}
	v := s.View()
	since, _ := m.vote.LostAt()
	keep, all, now, rival := 0, true, true, false
	for _, n := range v.nodes {
		t := n.vote.Kept()
		if n != m {
			now = now && n.vote.ShownSince(since) && n.Away() == nil
		}
		switch {
		case n == m:
		case t.Same(s.known) && n.vote.ShownSince(since):
			keep++
		case s.known.Epoch == 1 && n.Away() != nil && (t.Description == nil || t.Same(s.known)):
		case t.Rivals(s.known):
			rival = true
		case t.Description != nil || !n.vote.HasMet():
			all = false
		}
	}
	return 2*keep > len(v.nodes) || all && (now || !rival) && (s.known.Epoch == 1 || 2*keep == len(v.nodes))
}

// notHeardSince returns the members, except n (may be nil), that can be reached and once said what they keep, but have not
// shown their marker in answer to a request that left after since: they may keep something else now. Caller holds s.mu.
func (s *Set) notHeardSince(n *node, since time.Time) (nodes []*node) {
	for _, other := range s.View().nodes {
		if other != n && other.vote.HasMet() && other.Away() == nil && !other.vote.ShownSince(since) {
			nodes = append(nodes, other)
		}
	}
	return nodes
}

// tellLacking gives the set's description to members that lost it, if mayTell is true, by joining them again. It takes s.mu.
func (s *Set) tellLacking() {
	s.mu.Lock()
	behind := s.behind()
	s.mu.Unlock()
	rejoinAll(behind)
}

// gone retires the lanes to nodes that are no members any more, and returns those nodes: the caller must call node.end. A
// node that keeps the description that removed it needs no lane. Nor does one that an earlier change than the last has
// removed, even if it never said that it keeps that (it is dead, say): a change waits for former members only (settle), and
// a client that still counts by an earlier description finds the later one at the majority of the earlier one's members, who
// chose it. A given node keeps its lane until it keeps the description that removed it. Caller holds s.mu.
func (s *Set) gone() (nodes []*node) {
	if s.known == nil {
		return nil
	}
	v := s.View()
	for _, n := range *s.nodes.Load() {
		if slices.Contains(v.nodes, n) || n.considered > 0 {
			continue
		}
		member := n.vote.Member(s.known.Set)
		told := member != "" && !s.known.Has(member) && n.vote.Kept().At() >= s.known.Epoch
		waited := n.Index < len(s.given) || slices.Contains(s.known.Former, member) || slices.Contains(s.known.Former, n.Name)
		if (told || !waited) && n.Retire() {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// lasting returns a copy of s.nodes without those whose lanes (queues of requests) have ended, and whose last answers matter
// no more. They matter as long as the node is a member by s.known, the set's description, or by the one before. So a set has
// at most:
//
//   - one lane to each given node, each member, and each member before the last change: wire.MaxMembers each;
//   - one to each node at which a change looks that is under way (candidate);
//   - those to nodes that were just removed, until the requests under way are answered, or the connection is given up.
//
// Nothing that a node says makes another one: a lane is made to a member of a description that a majority keeps, and to a
// node that the operator names. Caller holds s.mu.
func (s *Set) lasting() []*node {
	v := s.View()
	return slices.DeleteFunc(slices.Clone(*s.nodes.Load()), func(n *node) bool {
		asked := n.Index < len(s.given) || slices.Contains(v.nodes, n) || n.considered > 0 || s.known != nil && n.epoch > 0 && n.epoch+1 >= s.known.Epoch
		return !asked && n.Ended()
	})
}

// selfOf returns n's own address in s.known (the set's description, not nil); "": none, as far as known. Caller holds s.mu.
func (s *Set) selfOf(n *node) string {
	self := cmp.Or(n.vote.Taken(), n.vote.Member(s.known.Set), n.Name)
	if !s.known.Has(self) {
		return ""
	}
	return self
}

// offer puts s.known, the set's description, into hello, what the client says when it joins n; if nil, it leaves hello. A
// node that keeps none stores it only if it took part in the choice of it, or its marker is still hello.While: then it has
// not lost its data again, and no other client has given it one. offer sets While if mayTell(n) is true. It takes s.mu.
func (s *Set) offer(n *node, hello *wire.Hello) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		return
	}
	hello.Keep = wire.Kept{Self: s.selfOf(n), Description: s.known}
	n.offered = s.known
	if hello.Keep.Self == "" || !n.vote.HasMet() {
		return
	}
	if n.vote.Kept().Description == nil && s.mayTell(n) {
		_, hello.While = n.vote.LostAt()
	}
}

// Refused returns why this program cannot use the set; nil: it can, as far as is known. If answers of nodes are missing that
// show whether most have lost the set's description (forgotten), it waits for them, for at most limit.
func (s *Set) Refused(limit time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stale := func() bool {
		nodes, _ := s.forgotten()
		return s.refused == nil && len(nodes) > 0
	}
	if !stale() {
		return s.refused
	}
	w := s.newWait(s.ctx, limit)
	defer w.stop()
	for stale() && !w.over {
		news := s.news
		s.mu.Unlock()
		w.wait(news)
		s.mu.Lock()
	}
	return s.refused
}

// Agreed reports whether votes can count: Agree has seen that a quorum of the members keeps the set's present description,
// or votes need none (Config.Described).
func (s *Set) Agreed() bool {
	v := s.View()
	return !s.cfg.Described || v.Description != nil && s.ready.Load() == v.Description
}

// Agree waits until a quorum of the members keeps the set's description, and then, for half of limit at most, for others
// that are just being given it. If the nodes keep none, Agree sets isNew and has them choose one: proposal, whose members
// are the given nodes, or another client's. It returns when limit is over, ctx ends, or done, called without s.mu after each
// news of the set, returns true; and at once if too few nodes can be reached: an attempt's replies then say why.
//
// The error is why the program cannot use the set; nil does not say that votes can count (Agreed). Before an error the
// members are asked whether the set was changed meanwhile: nobody else asks, as nothing is sent for a program that cannot
// use it.
func (s *Set) Agree(ctx context.Context, limit time.Duration, proposal *wire.Description, done func() bool) (isNew bool, _ error) {
	w := s.newWait(ctx, limit)
	defer w.stop()
	others := w.sooner(limit / 2)
	defer others.stop()
	asked, again, began := false, false, s.cfg.Clock.Now()
	for !w.over {
		s.mu.Lock()
		news, refused, ready, waits, fresh, known := s.news, s.refused, s.quorumKeeps(), s.awaits(), s.fresh(), s.View().Description
		s.mu.Unlock()
		switch {
		case refused != nil && asked:
			return isNew, refused
		case refused != nil:
			asked = true
			s.askAll(w)
		case done():
			return isNew, nil
		case ready && waits && others.wait(news): // half of the time, since one that hangs must leave some to the caller
		case ready:
			s.ready.Store(known)
			return isNew, nil
		case s.away():
			return isNew, nil
		case !fresh && known == nil && !again: // what a node said before may be out of date, and nobody else asks
			again = true
			s.mu.Lock()
			nodes := s.notHeardSince(nil, began)
			s.mu.Unlock()
			rejoinAll(nodes)
		case !fresh:
			w.wait(news)
		default:
			isNew = true
			if d := s.choose(w, proposal, s.View(), nil); d != nil {
				s.chosen(d)
			} else if !w.over {
				w.wait(news) // a node keeps one: joining tells which
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return isNew, s.refused
}

// Ask asks all members which description of the set they keep. It waits until a majority keeps the one by which the client
// goes (it may be a later one by then), too few can be reached for that, limit is over, or ctx ends.
func (s *Set) Ask(ctx context.Context, limit time.Duration) {
	w := s.newWait(ctx, limit)
	defer w.stop()
	s.askAll(w)
}

func (s *Set) askAll(w *wait) {
	began := s.cfg.Clock.Now()
	rejoinAll(s.View().nodes)
	for !w.over {
		s.mu.Lock()
		news := s.news
		s.mu.Unlock()
		if s.answered(began) {
			return
		}
		w.wait(news)
	}
}

// answered reports whether askAll is done: a majority of the members has said, to requests that left after since, that it
// keeps the client's description of the set, so that no later one is in force; or too few can be reached to tell.
func (s *Set) answered(since time.Time) bool {
	v, have, away := s.View(), 0, 0
	for _, n := range v.nodes {
		switch {
		case n.vote.ShownSince(since) && n.vote.Keeps(v.Description):
			have++
		case n.Away() != nil:
			away++
		}
	}
	return 2*have > len(v.nodes) || 2*(len(v.nodes)-away) <= len(v.nodes)
}

// quorumKeeps reports whether a quorum of members keeps s.known, the set's description; false if nil. Caller holds s.mu.
func (s *Set) quorumKeeps() bool {
	v, keep := s.View(), 0
	for _, n := range v.nodes {
		if v.Description != nil && n.vote.Keeps(v.Description) {
			keep++
		}
	}
	return v.Description != nil && keep >= v.Quorum
}

// awaits reports whether a member that can be reached has not said what it keeps, or is being given s.known, the set's
// description: it may vote soon, and without it an attempt might fail. It is false while s.known is nil. Caller holds s.mu.
func (s *Set) awaits() bool {
	if s.known == nil {
		return false
	}
	for _, n := range s.View().nodes {
		switch t := n.vote.Kept(); {
		case n.Away() != nil:
		case n.vote.CopyOf() != "" || t.Damage != nil:
		case !n.vote.HasMet(), t.Precedes(s.known), t.Description == nil && s.mayTell(n):
			return true
		}
	}
	return false
}

// fresh reports whether the set is yet to be made: no given node keeps a description of a set, as far as is known, and more
// than half of them have said so. Caller holds s.mu.
func (s *Set) fresh() bool {
	none := 0
	for _, n := range (*s.nodes.Load())[:len(s.given)] {
		switch {
		case n.vote.Kept().Description != nil || n.vote.CopyOf() != "":
			return false
		case n.vote.Kept().Damage != nil:
		case n.vote.HasMet():
			none++
		}
	}
	return s.known == nil && none > len(s.given)/2
}

// away reports whether too few members can be reached for a quorum, or, without a known set, a majority. It needs no mutex.
func (s *Set) away() bool {
	v, there := s.View(), 0
	for _, n := range v.nodes {
		if n.Away() == nil {
			there++
		}
	}
	if v.Description == nil {
		return there <= len(v.nodes)/2
	}
	return there < v.Quorum
}

// chosen makes the client go by d, a chosen description of the set, unless it has a later one, or one of another set. It
// joins again the members that keep none or an earlier one, to give them the client's. It takes s.mu, and does not wait.
func (s *Set) chosen(d *wire.Description) {
	s.mu.Lock()
	if s.known == nil || s.known.Set == d.Set && s.known.Epoch < d.Epoch {
		s.adopt(d)
	}
	close(s.news)
	s.news = make(chan struct{})
	behind := s.behind()
	s.strangers()
	s.mu.Unlock()
	rejoinAll(behind)
}
