package recording

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
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
	EndReleased End = "released"  // deleted, as the node has told: at the holder's word, or at that of redlock break
	EndExpired  End = "ran out"   // its TTL was over: nobody had extended it, as the node has told
	EndEvicted  End = "evicted"   // the server dropped it for want of memory
	EndForgot   End = "forgotten" // the node was emptied, or started without its data
	EndDeleted  End = "deleted"   // before its TTL was over: by whom was not seen
	EndGone     End = "gone"      // released, or its TTL was over: which of them was not seen
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

// How returns how most nodes of the hold lost its token; "": the hold had not ended.
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
	Unseen        bool      // the nodes that knew of it were not seen at Until, so that it may have gone on

	left bool // the last node that knew of it has shown that it does not any more
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

// Read reads from a record, which begins in Earlier(file), what happened to the lock of this name; the Story may be empty.
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
	if s.From.IsZero() {
		return nil, fmt.Errorf("%s is empty: nothing was recorded in it", file)
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

// match sets Wait.Got: the first hold of the waiter's owner that began while it waited, or up to a second later.
func (s *Story) match() {
	owned := make(map[string][]*Hold)
	for _, h := range s.Holds {
		if h.By.Owner != "" {
			owned[h.By.Owner] = append(owned[h.By.Owner], h)
		}
	}
	for _, w := range s.Waits {
		all := owned[w.Owner]
		i := sort.Search(len(all), func(i int) bool { return !all[i].From.Before(w.Since) })
		if i < len(all) && all[i].From.Before(cmp.Or(w.Until, s.To).Add(time.Second)) {
			w.Got = all[i]
		}
	}
}

// settled is how long a lock must be held for its fence to be known for certain. A holder raises the number at the
// nodes before it relies on the lock, which may be after the nodes were read, and they are read again in the next beat.
const settled = 2 * beat

// fences compares the fences of successive exclusive holds: it adds those to Unfenced that are not larger than the one
// before. It sets a fence to 0 (unknown) if it was read so early that it may have been raised since.
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
			if h.most > highest.Fence || cmp.Or(h.To, s.To).Sub(h.From) < settled {
				h.Fence = 0
				continue
			}
			s.Unfenced = append(s.Unfenced, [2]*Hold{highest, h})
		}
		s.Fenced++
		highest = h
	}
}

// At returns what the nodes had at an instant, judged as [redlock.Locker.Inspect] does it, without the TTLs: the record
// does not have the extensions.
func (s *Story) At(at time.Time) *redlock.Status {
	p := newPlay(&Story{Name: s.Name, From: s.From, changes: s.changes})
	p.until(at)
	broken := s.broken(at)
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
		if broken {
			one = redlock.NodeStatus{Node: name, Err: &redlock.NodeError{Node: name, Outcome: redlock.OutcomeUnreachable, Err: errors.New(Nothing)}}
		}
		all = append(all, one)
	}
	return redlock.Judge(s.Name, all, p.set.Quorum)
}

// Nothing is why nothing is known of an instant.
const Nothing = "nothing was recorded"

// broken reports whether no recorder ran at an instant: the record has a gap there that is not one of a single node.
func (s *Story) broken(at time.Time) bool {
	return slices.ContainsFunc(s.Silences, func(q Silence) bool { return q.Node == "" && at.After(q.From) && at.Before(q.To) })
}

// Then returns the holds that had begun at an instant, and had not ended.
func (s *Story) Then(at time.Time) (all []*Hold) {
	for _, h := range s.Holds {
		if !h.From.After(at) && (h.To.IsZero() || at.Before(h.To)) {
			all = append(all, h)
		}
	}
	return all
}

// WhoWaited returns the waits that had begun at an instant, and had not ended, the longest first.
func (s *Story) WhoWaited(at time.Time) (all []*Wait) {
	for _, w := range s.Waits {
		if !w.Since.After(at) && (w.Until.IsZero() || at.Before(w.Until)) {
			all = append(all, w)
		}
	}
	slices.SortStableFunc(all, func(a, b *Wait) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Waiter, b.Waiter)) })
	return all
}
