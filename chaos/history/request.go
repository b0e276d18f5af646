package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Request is what a client asks for: the names of a lock, and its kind.
type Request struct {
	Name   string
	Also   string // other names, with a space between them
	Shared bool
	Slots  int // it is one of so many; 0: there is one
}

// Request is that of an event that begins an acquisition.
func (e *Event) Request() Request { return Request{e.Name, e.Also, e.Shared, e.Slots} }

// Fill gives an event the names and the kind of this request.
func (w Request) Fill(e Event) Event {
	e.Name, e.Also, e.Shared, e.Slots = w.Name, w.Also, w.Shared, w.Slots
	return e
}

// String is the request in words: what can be asked for, or had.
func (w Request) String() string {
	s := strconv.Quote(w.Name)
	for _, name := range strings.Fields(w.Also) {
		s += " and " + strconv.Quote(name)
	}
	if w.Slots != 0 {
		slots := "slots"
		if w.Slots == 1 {
			slots = "slot"
		}
		s = fmt.Sprintf("one of %d %s of %s", w.Slots, slots, s)
	}
	if w.Shared {
		s += " as a reader"
	}
	return s
}

// Label is short for it.
func (w Request) Label() string {
	s := strings.Join(append([]string{w.Name}, strings.Fields(w.Also)...), "+")
	if w.Slots != 0 {
		s += " 1/" + strconv.Itoa(w.Slots)
	}
	if w.Shared {
		s += " (r)"
	}
	return s
}

// Invalid reports whether it is no kind of lock.
func (w Request) Invalid() bool { return w.Slots < 0 || w.Slots > 0 && (w.Shared || w.Also != "") }

// IsSlot reports whether it is one of several.
func (w Request) IsSlot() bool { return w.Slots > 0 && !w.Invalid() }

// Canonical is what all requests for the same have in common, however they are written: which
// names there are, but for those that lie in others, and how they are held.
func (w Request) Canonical(separator string) Request {
	all := append(strings.Fields(w.Also), w.Name)
	slices.Sort(all) // a folder comes before what lies in it
	least := all[:0]
	for _, name := range all {
		if !slices.ContainsFunc(least, func(whole string) bool { return Overlap(whole, name, separator) }) {
			least = append(least, name)
		}
	}
	slots := 0
	if w.IsSlot() {
		slots = 1
	}
	return Request{Name: strings.Join(least, " "), Shared: w.Shared, Slots: slots}
}

// SharesSlots reports whether two requests are for slots of the same.
func (w Request) SharesSlots(o Request) bool { return w.IsSlot() && o.IsSlot() && w.Name == o.Name }

// Conflicts reports whether two cannot be had at once, whatever else there is: they have
// something in common, and not both read it. How many slots of a name are had is
// another question.
func (w Request) Conflicts(o Request, separator string) bool {
	if w.Shared && o.Shared || w.SharesSlots(o) {
		return false
	}
	if w.Also == "" && o.Also == "" {
		return Overlap(w.Name, o.Name, separator)
	}
	for _, a := range append(strings.Fields(w.Also), w.Name) {
		for _, b := range append(strings.Fields(o.Also), o.Name) {
			if Overlap(a, b, separator) {
				return true
			}
		}
	}
	return false
}

// Overlap reports whether two names are the same, or one lies in the other.
func Overlap(a, b, separator string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || separator != "" && strings.HasPrefix(b, a) && strings.HasPrefix(b[len(a):], separator)
}

// MustQueueBehind reports whether this request has to let the other go first if that was there
// before: two requests for a slot do, for there may be only one.
func (w Request) MustQueueBehind(o Request, separator string) bool {
	return w.SharesSlots(o) || w.Conflicts(o, separator)
}
