package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/redlock"
)

// A want is what somebody asks for: the names of a lock, and its kind.
type want struct {
	Name   string
	Also   string // other names, with a space between them
	Shared bool
	Slots  int // it is one of so many; 0: there is one
}

// want is that of an event that begins an acquisition.
func (e *Event) want() want { return want{e.Name, e.Also, e.Shared, e.Slots} }

// ask is an event of this want.
func (w want) ask(e Event) Event {
	e.Name, e.Also, e.Shared, e.Slots = w.Name, w.Also, w.Shared, w.Slots
	return e
}

// String is the want in words: what can be asked for, or had.
func (w want) String() string {
	s := strconv.Quote(w.Name)
	for _, name := range strings.Fields(w.Also) {
		s += " and " + strconv.Quote(name)
	}
	if w.Slots != 0 {
		s = fmt.Sprintf("one of %s of %s", countOf(w.Slots, "slot"), s)
	}
	if w.Shared {
		s += " as a reader"
	}
	return s
}

// label is short for it.
func (w want) label() string {
	s := strings.Join(append([]string{w.Name}, strings.Fields(w.Also)...), "+")
	if w.Slots != 0 {
		s += " 1/" + strconv.Itoa(w.Slots)
	}
	if w.Shared {
		s += " (r)"
	}
	return s
}

// options are what the library has to be told beside the name.
func (w want) options() (all []redlock.AcquireOption) {
	if w.Also != "" {
		all = append(all, redlock.Also(strings.Fields(w.Also)...))
	}
	if w.Shared {
		all = append(all, redlock.Shared())
	}
	if w.Slots != 0 {
		all = append(all, redlock.Slots(w.Slots))
	}
	return all
}

// odd reports whether it is no kind of lock.
func (w want) odd() bool { return w.Slots < 0 || w.Slots > 0 && (w.Shared || w.Also != "") }

// slot reports whether it is one of several.
func (w want) slot() bool { return w.Slots > 0 && !w.odd() }

// line is what two have in common who want the same, whatever they say: which names there
// are, but for those that lie in others, and how they are held.
func (w want) line(separator string) want {
	all := append(strings.Fields(w.Also), w.Name)
	slices.Sort(all) // a folder comes before what lies in it
	least := all[:0]
	for _, name := range all {
		if !slices.ContainsFunc(least, func(whole string) bool { return meet(whole, name, separator) }) {
			least = append(least, name)
		}
	}
	return want{Name: strings.Join(least, " "), Shared: w.Shared, Slots: one(w.slot())}
}

// sibling reports whether two want slots of the same.
func (w want) sibling(o want) bool { return w.slot() && o.slot() && w.Name == o.Name }

// excludes reports whether two cannot be had at once, whatever else there is: they have
// something in common, and not both read it. How many slots of a name are had is
// another question.
func (w want) excludes(o want, separator string) bool {
	if w.Shared && o.Shared || w.sibling(o) {
		return false
	}
	if w.Also == "" && o.Also == "" {
		return meet(w.Name, o.Name, separator)
	}
	for _, a := range append(strings.Fields(w.Also), w.Name) {
		for _, b := range append(strings.Fields(o.Also), o.Name) {
			if meet(a, b, separator) {
				return true
			}
		}
	}
	return false
}

// meet reports whether two names are the same, or one lies in the other.
func meet(a, b, separator string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || separator != "" && strings.HasPrefix(b, a) && strings.HasPrefix(b[len(a):], separator)
}

// yields reports whether one who wants this has to let an earlier one go first who wants
// the other: two who want a slot do, for there may be only one.
func (w want) yields(o want, separator string) bool {
	return w.sibling(o) || w.excludes(o, separator)
}
