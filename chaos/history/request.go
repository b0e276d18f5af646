package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Request has what a client asks for: the names of a lock, and its kind.
type Request struct {
	Name   string
	Also   string // other names, with a space between them
	Shared bool
	Slots  int // the number of slots of which the lock is one; 0: it is no slot
}

// Request is the request of an event that begins an acquisition.
func (e *Event) Request() Request { return Request{e.Name, e.Also, e.Shared, e.Slots} }

// Fill writes the names and the kind of this request into an event.
func (w Request) Fill(e Event) Event {
	e.Name, e.Also, e.Shared, e.Slots = w.Name, w.Also, w.Shared, w.Slots
	return e
}

// String describes the request in words.
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

// Label is a short description.
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

// Invalid reports whether the request is for no kind of lock.
func (w Request) Invalid() bool { return w.Slots < 0 || w.Slots > 0 && (w.Shared || w.Also != "") }

// IsSlot reports whether the request is for one of several slots.
func (w Request) IsSlot() bool { return w.Slots > 0 && !w.Invalid() }

// Canonical is the same for all requests for the same lock, however they are written: the names,
// except those that lie in others, and the kind.
func (w Request) Canonical(separator string) Request {
	all := append(strings.Fields(w.Also), w.Name)
	slices.Sort(all) // a folder comes before the names in it
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

// SharesSlots reports whether two requests are for slots of the same name.
func (w Request) SharesSlots(o Request) bool { return w.IsSlot() && o.IsSlot() && w.Name == o.Name }

// Conflicts reports whether two locks cannot be held at once: they have a name in common, and do
// not both share it. The number of slots of a name that are held is a separate question.
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

// Overlap reports whether two names are equal, or one lies in the other.
func Overlap(a, b, separator string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || separator != "" && strings.HasPrefix(b, a) && strings.HasPrefix(b[len(a):], separator)
}

// MustQueueBehind reports whether this request must let an earlier one go first. Two requests for a
// slot must, since only one slot may be free.
func (w Request) MustQueueBehind(o Request, separator string) bool {
	return w.SharesSlots(o) || w.Conflicts(o, separator)
}
