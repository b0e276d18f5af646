package recording

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/wire"
)

// ModeExclusive is the mode of a hold that excludes all others.
const ModeExclusive redlock.Mode = "exclusive"

// A Story is what a record says of one lock.
type Story struct {
	Name     string
	From, To time.Time // of the record
	Holds    []*Hold   // in the order in which they began
	Waits    []*Wait   // in the order in which they began
	Nodes    []string  // all that were members of the set, sorted
	Silences []Silence // in which a node, or the record, is missing; in the order in which they ended
	Fenced   int       // how many of the exclusive holds have a known fence
	Unfenced [][2]*Hold

	changes []change // in order
}

// A Hold is a time for which a quorum of nodes had a token.
type Hold struct {
	Token    string
	By       redlock.Identity
	Mode     redlock.Mode
	From, To time.Time // To is zero if it had not ended when the record does
	Fence    int64     // the number that a quorum of these nodes had; 0: the record cannot tell
	Nodes    []string  // that had the token, in the order in which they had it
	Quorum   int
	Before   bool   // it may have begun earlier: it was there when the record began
	Lost     []Loss // how the nodes lost the token, in order

	most int64 // the number is not larger: attempts of others raise it while the lock is held
}

// An End is how a node lost a token.
type End string

const (
	EndReleased End = "released"  // deleted: at the holder's word, or at that of redlock break
	EndHanded   End = "handed on" // the same, and the next waiter had it at once
	EndExpired  End = "ran out"   // its TTL was over: nobody had extended it
	EndEvicted  End = "evicted"   // the server dropped it for want of memory
	EndForgot   End = "forgotten" // the node was emptied, or started without its data
	EndReplaced End = "replaced"  // another token is in its place: how that came was not seen
	EndUnseen   End = "unseen"    // the node could not be seen for longer than a TTL
)

// A Loss is how one node lost a token.
type Loss struct {
	Time time.Time
	Node string
	How  End
	Left time.Duration // of its TTL, as far as that is known
}

// How is how the hold ended, by most of its nodes; "": it had not ended.
func (h *Hold) How() (how End) {
	if h.To.IsZero() {
		return ""
	}
	counts := make(map[End]int)
	for _, l := range h.Lost {
		counts[l.How]++
		if counts[l.How] > counts[how] {
			how = l.How
		}
	}
	return how
}

// A Wait is a time for which a process waited.
type Wait struct {
	Waiter, Owner string
	Since         time.Time // when it came, by the nodes
	Until         time.Time // when no node knew of it any more; zero: some still did when the record ends
	Nodes         []string  // that knew of it
	Got           *Hold     // what it got in the end; nil: nothing
}

// A Silence is a time for which nothing is known of a node; Node "": nothing was recorded.
type Silence struct {
	Node     string
	From, To time.Time // To is zero: until the end
	Error    string
}

// A change is something that changes what is known.
type change struct {
	at   time.Time
	line *Line
}

// Read reads what a record says of the lock with this name.
func Read(file, name string) (*Story, error) {
	s := &Story{Name: name}
	sorted, last := 0, time.Time{}
	order := func() {
		slices.SortStableFunc(s.changes[sorted:], func(a, b change) int { return a.at.Compare(b.at) })
		sorted = len(s.changes)
	}
	err := Lines(file, func(l *Line) {
		if s.From.IsZero() {
			s.From = l.Time
		}
		l.Time = later(l.Time, s.From) // what a node told of before a file began is judged by the set of the file
		if l.Set != nil && !l.Set.Again {
			s.changes = append(s.changes, change{last, new(Line)})
			order() // the clock may have been set back meanwhile
		}
		last, s.To = l.Time, later(s.To, l.Time)
		at := l.Time
		switch {
		case l.State == StateSilent:
			at = later(l.Since, s.From)
		case l.Node != "" && l.State == "" && l.Name != name:
			return
		}
		if !l.First.IsZero() {
			s.changes = append(s.changes, change{later(l.First, s.From), l})
		}
		s.changes = append(s.changes, change{at, l})
	})
	if err != nil {
		return nil, err
	}
	order()
	p := newPlay(s)
	p.until(s.To)
	s.Nodes = slices.Sorted(maps.Keys(p.nodes))
	for _, n := range s.Nodes {
		if q := p.nodes[n].silence; q != nil {
			s.Silences = append(s.Silences, *q)
		}
	}
	s.match()
	s.fences()
	return s, nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// match finds what the waiters got: the lock that was handed to them, or the first one of their owner's.
func (s *Story) match() {
	waits, owned := make(map[string][]*Wait), make(map[string][]*Hold)
	for _, w := range s.Waits {
		waits[w.Waiter] = append(waits[w.Waiter], w)
	}
	for _, h := range s.Holds {
		for i, b := range []byte(wire.Secret(h.Token)) {
			if b != '.' {
				continue
			}
			for _, w := range waits[h.Token[:i]] {
				if _, handed := wire.HandedTo(w.Waiter, h.Token); handed {
					w.Got = h
				}
			}
		}
		if h.By.Owner != "" {
			owned[h.By.Owner] = append(owned[h.By.Owner], h)
		}
	}
	for _, w := range s.Waits {
		all := owned[w.Owner]
		i := sort.Search(len(all), func(i int) bool { return !all[i].From.Before(w.Since) })
		if w.Got == nil && i < len(all) && all[i].From.Before(cmp.Or(w.Until, s.To).Add(time.Second)) {
			w.Got = all[i]
		}
	}
}

// settled is how long a lock must be held for its fence to be known for certain. A holder raises the number
// at the nodes before it relies on the lock, which may be after the nodes were read, and they are read
// again in the next beat.
const settled = 2 * beat

// fences compares the fences of the exclusive holds. A number that may be too small, since it was read too early,
// is left out.
func (s *Story) fences() {
	var highest *Hold
	for _, h := range s.Holds {
		if h.Mode != ModeExclusive || h.Fence == 0 {
			continue
		}
		if highest != nil && h.Fence <= highest.Fence {
			if h.Token == highest.Token {
				continue
			}
			handed := wire.HandedOver(h.Token) // perhaps to a waiter that was gone, and did not take it
			if handed || h.most > highest.Fence || cmp.Or(h.To, s.To).Sub(h.From) < settled {
				h.Fence = 0
				continue
			}
			s.Unfenced = append(s.Unfenced, [2]*Hold{highest, h})
		}
		s.Fenced++
		highest = h
	}
}

// At is what the nodes had at an instant, judged as [redlock.Locker.Inspect] does it. How long a lock was to live
// then is not known, since extensions are not recorded.
func (s *Story) At(at time.Time) *redlock.Status {
	p := newPlay(&Story{Name: s.Name, From: s.From, changes: s.changes})
	p.until(at)
	var all []redlock.NodeStatus
	for _, name := range p.set.Nodes {
		n := p.node(name)
		one := redlock.NodeStatus{Node: name, Fence: n.fence}
		for _, h := range n.has {
			if h.mode == ModeExclusive {
				one.Token = h.token
			} else {
				one.Holders = append(one.Holders, redlock.Holder{Token: h.token, By: redlock.Identify(h.token), Mode: h.mode, Nodes: 1})
			}
		}
		for _, w := range n.waiting {
			one.Waiting = append(one.Waiting, redlock.Waiter{Waiter: w.Waiter, Owner: w.Owner, For: max(0, at.Sub(w.Since)), Nodes: 1})
		}
		if n.silence != nil {
			one.Err = &redlock.NodeError{Node: name, Outcome: redlock.OutcomeUnreachable, Err: errors.New(n.silence.Error)}
		}
		if s.broken(at) {
			one = redlock.NodeStatus{Node: name, Err: &redlock.NodeError{Node: name, Outcome: redlock.OutcomeUnreachable, Err: errors.New(Nothing)}}
		}
		all = append(all, one)
	}
	return redlock.Judge(s.Name, all, p.set.Quorum)
}

// Nothing is why nothing is known of an instant.
const Nothing = "nothing was recorded"

// broken reports whether nothing was recorded at an instant.
func (s *Story) broken(at time.Time) bool {
	return slices.ContainsFunc(s.Silences, func(q Silence) bool { return q.Node == "" && at.After(q.From) && at.Before(q.To) })
}

// A play goes through the changes of a story, and knows what the nodes have meanwhile.
//
// A node that cannot be seen counts for what it had, until a TTL is over since it was seen last: its
// keys end by then unless they are extended, and the holder's client may well reach it.
type play struct {
	story  *Story
	set    Set
	nodes  map[string]*node
	latest map[key]*Hold
	waits  map[string]*Wait // open ones
	ended  time.Time        // the last line before the record broke off
}

func newPlay(s *Story) *play {
	return &play{story: s, nodes: make(map[string]*node), latest: make(map[key]*Hold), waits: make(map[string]*Wait)}
}

type node struct {
	has     []has
	waiting []Waiter
	fence   int64
	fresh   bool     // all that it has had when the record began is not known yet
	silence *Silence // nil: it answers
}

type has struct {
	token string
	mode  redlock.Mode
	ttl   time.Duration
	fence int64 // when it was read first
	most  int64 // when it was read last
	stale bool  // known from before the record broke off
}

// A key is what a hold is of.
type key struct {
	token string
	mode  redlock.Mode
}

func (h has) key() key { return key{h.token, h.mode} }

func (h has) is(o has) bool { return h.key() == o.key() }

func (p *play) node(name string) *node {
	n := p.nodes[name]
	if n == nil {
		n = &node{fresh: true}
		p.nodes[name] = n
	}
	return n
}

// until goes on to an instant.
func (p *play) until(at time.Time) {
	for _, c := range p.story.changes {
		if c.at.After(at) {
			break
		}
		p.forget(c.at)
		p.take(c)
		p.ended = c.at
	}
	p.forget(at)
}

// forget drops what nodes had that have not been seen for too long.
func (p *play) forget(at time.Time) {
	for name, n := range p.nodes {
		if n.silence == nil {
			continue
		}
		for _, h := range slices.Clone(n.has) {
			if end := n.silence.From.Add(h.ttl); end.Before(at) {
				p.lose(name, h, Loss{end, name, EndUnseen, 0})
			}
		}
	}
}

// take applies a change.
func (p *play) take(c change) {
	l := c.line
	switch {
	case l.Set != nil:
		p.begin(l)
	case l.Node == "":
	case l.State == StateAnswers:
		p.answers(p.node(l.Node), l.Time)
	case l.State == StateSilent:
		if n := p.node(l.Node); n.silence == nil {
			n.silence = &Silence{Node: l.Node, From: c.at, Error: l.Error}
			n.waiting = nil // a wait that goes on is known to others
		}
	case l.State == StateForgot:
		for _, h := range slices.Clone(p.node(l.Node).has) {
			p.lose(l.Node, h, Loss{l.Time, l.Node, EndForgot, 0})
		}
	case l.State == StateWalked:
		n := p.node(l.Node)
		for _, h := range slices.Clone(n.has) {
			if h.stale {
				p.lose(l.Node, h, Loss{l.Time, l.Node, EndUnseen, 0})
			}
		}
		n.fresh = false
	case l.Name != "":
		p.read(l, c.at)
	}
}

// begin takes the set of a record, or of a part of it.
func (p *play) begin(l *Line) {
	p.set = *l.Set
	for name, n := range p.nodes {
		if !slices.Contains(p.set.Nodes, name) {
			p.leave(name, n, l.Time)
		}
	}
	if p.set.Again {
		return
	}
	if !p.ended.IsZero() {
		p.story.Silences = append(p.story.Silences, Silence{From: p.ended, To: l.Time})
	}
	for _, n := range p.nodes {
		n.fresh = true
		for i := range n.has {
			n.has[i].stale = true
		}
	}
}

// leave drops what a node had that is no member any more, and is not seen from here on.
func (p *play) leave(name string, n *node, at time.Time) {
	p.answers(n, at)
	for _, h := range slices.Clone(n.has) {
		p.lose(name, h, Loss{at, name, EndUnseen, 0})
	}
	n.waiting, n.fresh = nil, true
	p.gone(at)
}

// answers ends the silence of a node.
func (p *play) answers(n *node, at time.Time) {
	if n.silence != nil {
		n.silence.To = at
		p.story.Silences = append(p.story.Silences, *n.silence)
		n.silence = nil
	}
}

// read takes what a node has of the lock.
func (p *play) read(l *Line, at time.Time) {
	n := p.node(l.Node)
	var now []has
	if l.Token != "" {
		now = append(now, has{token: l.Token, mode: ModeExclusive, ttl: ms(l.TTL), fence: l.Fence, most: l.Fence})
	}
	for _, h := range l.Holders {
		now = append(now, has{token: h.Token, mode: h.Mode, ttl: ms(h.TTL), fence: l.Fence, most: l.Fence})
	}
	for _, h := range slices.Clone(n.has) {
		if !slices.ContainsFunc(now, h.is) {
			p.lose(l.Node, h, n.how(h, l, at))
		}
	}
	if at.Before(l.Time) { // what is there now came later
		return
	}
	n.fence = l.Fence
	for _, h := range now {
		if i := slices.IndexFunc(n.has, h.is); i >= 0 {
			n.has[i].stale, n.has[i].most = false, l.Fence
			p.number(h)
			continue
		}
		n.has = append(n.has, h)
		p.gain(l, h, n.fresh && len(l.By) == 0)
	}
	p.wait(l, n)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// nearly is how much of a TTL may be left, as it is known, when it ran out.
const nearly = 20 * time.Millisecond

// how tells how a node lost a token, from the line that says so.
func (n *node) how(h has, l *Line, at time.Time) Loss {
	loss := Loss{Time: at, Node: l.Node, How: EndReleased}
	out := false
	for _, e := range l.Ended {
		if e.Token == h.token {
			loss.Left = ms(e.Left)
			out = loss.Left <= nearly
		}
	}
	told := func(event string) bool { return slices.Contains(l.By, event) }
	switch {
	case told("evicted"):
		loss.How = EndEvicted
	case h.mode == ModeExclusive && l.Token != "" && slices.ContainsFunc(n.waiting, func(w Waiter) bool {
		_, handed := wire.HandedTo(w.Waiter, l.Token)
		return handed
	}):
		loss.How = EndHanded
	case told("expired"), out && !told("del") && !told("zrem"):
		loss.How = EndExpired
	case h.mode == ModeExclusive && l.Token != "" && !told("del"):
		loss.How = EndReplaced
	}
	return loss
}

// members are the nodes of the set that have a token.
func (p *play) members(h has) (all []string) {
	for _, name := range p.set.Nodes {
		if n := p.nodes[name]; n != nil && slices.ContainsFunc(n.has, h.is) {
			all = append(all, name)
		}
	}
	return all
}

// open is the hold of a token that has not ended; nil: there is none.
func (p *play) open(h has) *Hold {
	if o := p.latest[h.key()]; o != nil && o.To.IsZero() {
		return o
	}
	return nil
}

// last is the hold of a token that has ended, if no other one has begun since; nil: there is none.
func (p *play) last(h has) *Hold {
	if o, all := p.latest[h.key()], p.story.Holds; o != nil && o == all[len(all)-1] {
		return o
	}
	return nil
}

// gain notes that a node has a token that it did not have before.
func (p *play) gain(l *Line, h has, before bool) {
	all := p.members(h)
	o := p.open(h)
	if o == nil {
		if len(all) < p.set.Quorum {
			return
		}
		if o = p.last(h); o != nil { // its nodes have it again
			o.To = time.Time{}
		} else {
			o = &Hold{Token: h.token, By: redlock.Identify(h.token), Mode: h.mode, From: l.Time, Nodes: all, Quorum: p.set.Quorum, Before: before}
			p.story.Holds = append(p.story.Holds, o)
			p.latest[h.key()] = o
		}
	}
	o.Lost = slices.DeleteFunc(o.Lost, func(l Loss) bool { return slices.Contains(all, l.Node) }) // they have it again
	if !slices.Contains(o.Nodes, l.Node) {
		o.Nodes = append(o.Nodes, l.Node)
	}
	p.number(h)
}

// number finds the number that a quorum of the nodes with the token has stored, if its hold has not ended.
func (p *play) number(h has) {
	o := p.open(h)
	if o == nil {
		return
	}
	var fences, most []int64
	for _, name := range p.members(h) {
		n := p.nodes[name]
		has := n.has[slices.IndexFunc(n.has, h.is)]
		fences, most = append(fences, has.fence), append(most, has.most)
	}
	slices.Sort(fences)
	slices.Sort(most)
	if at := len(fences) - o.Quorum; at >= 0 {
		o.most = max(o.most, most[at])
		if o.Fence == 0 {
			o.Fence = fences[at]
		}
	}
}

// lose notes that a node has a token no more.
func (p *play) lose(name string, h has, loss Loss) {
	n := p.node(name)
	n.has = slices.DeleteFunc(n.has, h.is)
	o := p.latest[h.key()] // it may have ended, and still be at some nodes
	if o == nil {
		return
	}
	o.Lost = append(o.Lost, loss)
	if o.To.IsZero() && len(p.members(h)) < o.Quorum {
		o.To = later(loss.Time, o.From)
	}
}

// wait takes who waits at a node.
func (p *play) wait(l *Line, n *node) {
	n.waiting = l.Waiting
	for _, w := range l.Waiting {
		one := p.waits[w.Waiter]
		if one == nil {
			one = &Wait{Waiter: w.Waiter, Owner: w.Owner, Since: w.Since}
			p.waits[w.Waiter] = one
			p.story.Waits = append(p.story.Waits, one)
		}
		if !slices.Contains(one.Nodes, l.Node) {
			one.Nodes = append(one.Nodes, l.Node)
		}
	}
	p.gone(l.Time)
}

// gone ends the waits of which no node knows any more.
func (p *play) gone(at time.Time) {
	for waiter, one := range p.waits {
		known := false
		for _, other := range p.nodes {
			known = known || slices.ContainsFunc(other.waiting, func(w Waiter) bool { return w.Waiter == waiter })
		}
		if !known {
			one.Until = at
			delete(p.waits, waiter)
		}
	}
}

// Then are the holds that there were at an instant.
func (s *Story) Then(at time.Time) (all []*Hold) {
	for _, h := range s.Holds {
		if !h.From.After(at) && (h.To.IsZero() || at.Before(h.To)) {
			all = append(all, h)
		}
	}
	return all
}

// WhoWaited are those who waited at an instant, the longest wait first.
func (s *Story) WhoWaited(at time.Time) (all []*Wait) {
	for _, w := range s.Waits {
		if !w.Since.After(at) && (w.Until.IsZero() || at.Before(w.Until)) {
			all = append(all, w)
		}
	}
	slices.SortStableFunc(all, func(a, b *Wait) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Waiter, b.Waiter)) })
	return all
}
