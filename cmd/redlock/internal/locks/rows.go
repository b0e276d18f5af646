// Package locks has the locks that the nodes know as rows of a table, and the status of one as text: for the
// verbs that show locks. Its functions ask no node.
package locks

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
)

// ModeExclusive is the mode of a holder that is the only one.
const ModeExclusive redlock.Mode = "exclusive"

// A Row is a lock in the list: one name, or several that are held by the same holders.
type Row struct {
	Names    []string // sorted
	State    redlock.State
	Leftover bool // on some nodes, and not held
	Nodes    int  // how many of the nodes have it: its first holder
	Left     time.Duration
	Holders  []redlock.Holder // the oldest first
	Waiting  []redlock.Waiter // the longest wait first
}

// RowsOf makes a row for each lock. A lock on several names has the same token at each, and is one row. A folder that
// is held only because something below it is locked is left out if that is found, too, unless all is set.
func RowsOf(found iter.Seq[*redlock.Status], all bool) (rows []*Row) {
	same := make(map[string]*Row)
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
		for _, h := range r.Holders {
			if !below(h.Mode) {
				listed[h.Token] = true
			}
		}
		rows = append(rows, r)
	}
	return slices.DeleteFunc(rows, func(r *Row) bool {
		return !all && len(r.Waiting) == 0 && !slices.ContainsFunc(r.Holders, func(h redlock.Holder) bool { return !below(h.Mode) || !listed[h.Token] })
	})
}

// Exclusive returns the tokens that nodes have as exclusive holders, in the order of the nodes: that of the lock that
// is held, and those that are left of others.
func Exclusive(s *redlock.Status) (all []redlock.Holder) {
	for _, n := range s.Nodes {
		if n.Token == "" {
			continue
		}
		i := slices.IndexFunc(all, func(h redlock.Holder) bool { return h.Token == n.Token })
		if i < 0 {
			all = append(all, redlock.Holder{Token: n.Token, By: redlock.Identify(n.Token), Mode: ModeExclusive, TTL: n.TTL, Nodes: 1})
			continue
		}
		all[i].TTL = max(all[i].TTL, n.TTL)
		all[i].Nodes++
	}
	return all
}

func below(m redlock.Mode) bool { return m == redlock.ModeBelow || m == redlock.ModeSharedBelow }

func rowOf(s *redlock.Status) *Row {
	r := &Row{Names: []string{s.Name}, State: s.State, Left: s.TTL, Waiting: s.Waiting}
	r.Holders = append(Exclusive(s), s.Holders...)
	held := func(h redlock.Holder) bool {
		return s.State == redlock.StateHeld && (s.Token == "" || h.Token == s.Token)
	}
	slices.SortStableFunc(r.Holders, func(a, b redlock.Holder) int {
		switch {
		case held(a) != held(b) && held(a): // the one that has a majority, before what is left of another one
			return -1
		case held(a) != held(b):
			return 1
		}
		return cmp.Or(compareAge(a.By.Since, b.By.Since), strings.Compare(a.Token, b.Token))
	})
	r.Leftover = len(r.Holders) > 0 && (s.State == redlock.StateFree || s.State == redlock.StateSplit)
	for _, h := range r.Holders {
		r.Nodes = max(r.Nodes, h.Nodes)
		if s.State != redlock.StateHeld {
			r.Left = max(r.Left, h.TTL)
		}
	}
	return r
}

// holding returns a text that is the same for the names of one lock: state and holders. "": the row may not be merged
// with others, as its token may be used for several locks, which other libraries do.
func (r *Row) holding() string {
	by := make([]string, len(r.Holders))
	for i, h := range r.Holders {
		if h.By.Since.IsZero() || h.Mode != ModeExclusive && h.Mode != redlock.ModeShared {
			return ""
		}
		by[i] = string(h.Mode) + " " + h.Token
	}
	if len(by) == 0 {
		return ""
	}
	slices.Sort(by)
	return r.State.String() + "\n" + strings.Join(by, "\n")
}

// merge adds o, the row of another name of the same lock, with those who wait for that name.
func (r *Row) merge(o *Row) {
	r.Names = append(r.Names, o.Names...)
	r.Left, r.Nodes = min(r.Left, o.Left), min(r.Nodes, o.Nodes)
	for _, w := range o.Waiting {
		if i := slices.IndexFunc(r.Waiting, func(a redlock.Waiter) bool { return a.Waiter == w.Waiter }); i < 0 {
			r.Waiting = append(r.Waiting, w)
		} else {
			r.Waiting[i].For, r.Waiting[i].Nodes = max(r.Waiting[i].For, w.For), max(r.Waiting[i].Nodes, w.Nodes)
		}
	}
	slices.SortStableFunc(r.Waiting, func(a, b redlock.Waiter) int { return cmp.Compare(b.For, a.For) })
}

// Since returns when the oldest of the holders asked for the lock; zero: its token does not say it.
func (r *Row) Since() (since time.Time) {
	if len(r.Holders) > 0 {
		since = r.Holders[0].By.Since
	}
	return since
}

// Wait returns for how long the first waiter has waited; -1: nobody waits.
func (r *Row) Wait() time.Duration {
	if len(r.Waiting) == 0 {
		return -1
	}
	return r.Waiting[0].For
}

// compareAge compares two instants for a sort: earlier ones come first, and zero (not known) last.
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

// Sort sorts the rows by an order of Orders, and those that are equal in it by name.
func Sort(rows []*Row, order string) {
	slices.SortFunc(rows, func(a, b *Row) int {
		first := 0
		switch order {
		case "age":
			first = compareAge(a.Since(), b.Since())
		case "wait":
			first = cmp.Compare(b.Wait(), a.Wait())
		}
		return cmp.Or(first, strings.Compare(a.Names[0], b.Names[0]))
	})
}

// Orders are the orders of Sort: age puts the oldest lock first, wait the longest wait.
var Orders = []string{"age", "wait", "name"}

// Holding returns a set of keys, one for each holder of the locks that are held: its token, which is never used again.
// For a holder of another library, which may have one token for all its locks, the name is part of the key.
func Holding(found []*redlock.Status) map[string]bool {
	all := make(map[string]bool)
	for _, s := range found {
		if s.State != redlock.StateHeld {
			continue
		}
		note := func(token string, by redlock.Identity) {
			if by.Since.IsZero() {
				token = s.Name + "\n" + token
			}
			all[token] = true
		}
		if s.Token != "" {
			note(s.Token, s.By)
		}
		for _, h := range s.Holders {
			note(h.Token, h.By)
		}
	}
	return all
}

// Switches returns how many holds of now (see Holding) are not among those before.
func Switches(before, now map[string]bool) (n int) {
	for hold := range now {
		if !before[hold] {
			n++
		}
	}
	return n
}
