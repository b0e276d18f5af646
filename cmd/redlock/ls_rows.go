package main

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
)

// modeExclusive is the mode of a holder that is the only one.
const modeExclusive redlock.Mode = "exclusive"

// A lockRow is a lock in the list: one name, or several that are held by the same holders.
type lockRow struct {
	names    []string // sorted
	state    redlock.State
	leftover bool // on some nodes, and not held
	nodes    int  // how many of the nodes have it: its first holder
	left     time.Duration
	holders  []redlock.Holder // the oldest first
	waiting  []redlock.Waiter // the longest wait first
}

// rowsOf makes the rows. A lock on several names has the same token at each, and is one row. A folder that
// is locked only for what lies below it is left out if that is listed itself, unless all are wanted.
func rowsOf(found iter.Seq[*redlock.Status], all bool) (rows []*lockRow) {
	same := make(map[string]*lockRow)
	listed := make(map[string]bool) // tokens of what is no folder above a lock
	for s := range found {
		r := rowOf(s)
		by := r.holding()
		if other := same[by]; by != "" && other != nil {
			other.merge(r)
			continue
		}
		if by != "" {
			same[by] = r
		}
		for _, h := range r.holders {
			if !below(h.Mode) {
				listed[h.Token] = true
			}
		}
		rows = append(rows, r)
	}
	return slices.DeleteFunc(rows, func(r *lockRow) bool {
		return !all && len(r.waiting) == 0 && !slices.ContainsFunc(r.holders, func(h redlock.Holder) bool { return !below(h.Mode) || !listed[h.Token] })
	})
}

func below(m redlock.Mode) bool { return m == redlock.ModeBelow || m == redlock.ModeSharedBelow }

func rowOf(s *redlock.Status) *lockRow {
	r := &lockRow{names: []string{s.Name}, state: s.State, left: s.TTL, waiting: s.Waiting}
	for _, n := range s.Nodes {
		if n.Token == "" {
			continue
		}
		i := slices.IndexFunc(r.holders, func(h redlock.Holder) bool { return h.Token == n.Token })
		if i < 0 {
			r.holders = append(r.holders, redlock.Holder{Token: n.Token, By: redlock.Identify(n.Token), Mode: modeExclusive, TTL: n.TTL, Nodes: 1})
			continue
		}
		r.holders[i].TTL = max(r.holders[i].TTL, n.TTL)
		r.holders[i].Nodes++
	}
	r.holders = append(r.holders, s.Holders...)
	held := func(h redlock.Holder) bool {
		return s.State == redlock.StateHeld && (s.Token == "" || h.Token == s.Token)
	}
	slices.SortStableFunc(r.holders, func(a, b redlock.Holder) int {
		switch {
		case held(a) != held(b) && held(a): // the one that has a majority, before what is left of another one
			return -1
		case held(a) != held(b):
			return 1
		}
		return cmp.Or(compareAge(a.By.Since, b.By.Since), strings.Compare(a.Token, b.Token))
	})
	r.leftover = len(r.holders) > 0 && (s.State == redlock.StateFree || s.State == redlock.StateSplit)
	for _, h := range r.holders {
		r.nodes = max(r.nodes, h.Nodes)
		if s.State != redlock.StateHeld {
			r.left = max(r.left, h.TTL)
		}
	}
	return r
}

// holding names state and holders, if all of them may be those of other names, too; "": not. Another
// library may have the same token for all that it locks.
func (r *lockRow) holding() string {
	by := make([]string, len(r.holders))
	for i, h := range r.holders {
		if h.By.Since.IsZero() || h.Mode != modeExclusive && h.Mode != redlock.ModeShared {
			return ""
		}
		by[i] = string(h.Mode) + " " + h.Token
	}
	if len(by) == 0 {
		return ""
	}
	slices.Sort(by)
	return r.state.String() + "\n" + strings.Join(by, "\n")
}

// merge adds another name of the same lock, whose waiters wait for that name.
func (r *lockRow) merge(o *lockRow) {
	r.names = append(r.names, o.names...)
	r.left, r.nodes = min(r.left, o.left), min(r.nodes, o.nodes)
	for _, w := range o.waiting {
		if i := slices.IndexFunc(r.waiting, func(a redlock.Waiter) bool { return a.Waiter == w.Waiter }); i < 0 {
			r.waiting = append(r.waiting, w)
		} else {
			r.waiting[i].For, r.waiting[i].Nodes = max(r.waiting[i].For, w.For), max(r.waiting[i].Nodes, w.Nodes)
		}
	}
	slices.SortStableFunc(r.waiting, func(a, b redlock.Waiter) int { return cmp.Compare(b.For, a.For) })
}

// since is when the oldest of the holders asked for it; zero: nothing says it.
func (r *lockRow) since() (since time.Time) {
	if len(r.holders) > 0 {
		since = r.holders[0].By.Since
	}
	return since
}

// wait is the longest wait for it.
func (r *lockRow) wait() time.Duration {
	if len(r.waiting) == 0 {
		return -1
	}
	return r.waiting[0].For
}

// compareAge puts what is older first, and what has no age last.
func compareAge(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// sortRows puts the rows in an order, and those that are equal in it by name.
func sortRows(rows []*lockRow, order string) {
	slices.SortFunc(rows, func(a, b *lockRow) int {
		first := 0
		switch order {
		case "age":
			first = compareAge(a.since(), b.since())
		case "wait":
			first = cmp.Compare(b.wait(), a.wait())
		}
		return cmp.Or(first, strings.Compare(a.names[0], b.names[0]))
	})
}
