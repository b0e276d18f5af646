package recording

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock"
)

// A play replays the changes of a story, one after another, and keeps what the nodes have at that point.
//
// A node that cannot be seen counts for what it had, until a TTL is over since it was seen last: its keys end by then
// unless they are extended, and the holder's client may well reach it.
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

// until applies the changes of p.story to p, from the first one to those of the instant at. Call it only once for each play.
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

// forget drops the tokens of silent nodes whose TTL, counted from when the node was last seen, is over at an instant.
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

// take applies one change: what a line of the record says of the set, of a node, or of a lock on a node.
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

// begin applies a line that names the set: nodes that are not in it leave. Unless it only continues the record in a new
// file, there is a gap before it: begin notes a Silence, and marks each token stale, for a walk to confirm or drop.
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

// leave drops all that a node had: it is no longer a member of the set, and the record does not follow it after at.
func (p *play) leave(name string, n *node, at time.Time) {
	p.answers(n, at)
	for _, h := range slices.Clone(n.has) {
		p.lose(name, h, Loss{at, name, EndUnseen, 0})
	}
	n.waiting, n.fresh = nil, true
	p.gone(at)
}

// answers ends the silence of a node at an instant, if it was silent.
func (p *play) answers(n *node, at time.Time) {
	if n.silence != nil {
		n.silence.To = at
		p.story.Silences = append(p.story.Silences, *n.silence)
		n.silence = nil
	}
}

// read applies a line about the lock on a node. At an instant before l's time, that of the line's first event (Line.First),
// it applies only losses: what l shows as gone. A second call, at l's time, applies the rest.
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

// how returns how the node lost the token h at an instant, from l, the first line without it.
func (n *node) how(h has, l *Line, at time.Time) Loss {
	loss := Loss{Time: at, Node: l.Node, How: EndDeleted}
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
	case told("expired"):
		loss.How = EndExpired
	case told("del"), told("zrem"):
		loss.How = EndReleased
	case out && l.Told: // nothing else was told
		loss.How = EndExpired
	case h.mode == ModeExclusive && l.Token != "":
		loss.How = EndReplaced
	case out:
		loss.How = EndGone
	}
	return loss
}

// members returns the names of the nodes that, at this point of the replay, are in the set and have h's token in h's mode.
func (p *play) members(h has) (all []string) {
	for _, name := range p.set.Nodes {
		if n := p.nodes[name]; n != nil && slices.ContainsFunc(n.has, h.is) {
			all = append(all, name)
		}
	}
	return all
}

// open returns the Hold of the token h (the time for which a quorum had it) if it has not ended; nil: there is none.
func (p *play) open(h has) *Hold {
	if o := p.latest[h.key()]; o != nil && o.To.IsZero() {
		return o
	}
	return nil
}

// last returns the ended Hold of the token h, for gain to reopen; nil: none, or another Hold of the lock began since.
func (p *play) last(h has) *Hold {
	if o, all := p.latest[h.key()], p.story.Holds; o != nil && o == all[len(all)-1] {
		return o
	}
	return nil
}

// gain notes that the node of line l has got the token h. If it makes a quorum, a Hold begins, or goes on. before: the
// node may have had it already when the record began.
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

// number sets the fence of the token's Hold if that goes on: the largest number that a quorum of its nodes has reached.
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

// lose notes that the node of this name has the token h no more. If fewer than a quorum have it now, its Hold ends.
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

// wait applies the waiters that line l shows at the node n: their Waits begin, or go on; others may end.
func (p *play) wait(l *Line, n *node) {
	for _, w := range n.waiting {
		if one := p.waits[w.Waiter]; one != nil {
			one.left = true
		}
	}
	n.waiting = l.Waiting
	for _, w := range l.Waiting {
		one := p.waits[w.Waiter]
		if one == nil {
			one = p.again(w)
			p.waits[w.Waiter] = one
		}
		one.left = false
		if !slices.Contains(one.Nodes, l.Node) {
			one.Nodes = append(one.Nodes, l.Node)
		}
	}
	p.gone(l.Time)
}

// again returns the Wait of a waiter that no node knew a moment ago. If the waiter came before its last Wait ended,
// that one goes on: nodes were only emptied, or not seen. Else it is a new one.
func (p *play) again(w Waiter) *Wait {
	for _, one := range slices.Backward(p.story.Waits) {
		if one.Waiter == w.Waiter {
			if w.Since.Before(one.Until) {
				one.Until, one.Unseen = time.Time{}, false
				return one
			}
			break
		}
	}
	one := &Wait{Waiter: w.Waiter, Owner: w.Owner, Since: w.Since}
	p.story.Waits = append(p.story.Waits, one)
	return one
}

// gone ends, at an instant, the Waits of waiters that no node knows any more.
func (p *play) gone(at time.Time) {
	for waiter, one := range p.waits {
		known := false
		for _, other := range p.nodes {
			known = known || slices.ContainsFunc(other.waiting, func(w Waiter) bool { return w.Waiter == waiter })
		}
		if !known {
			one.Until, one.Unseen = at, !one.left
			delete(p.waits, waiter)
		}
	}
}
