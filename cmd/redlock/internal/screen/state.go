package screen

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/internal/listing"
)

// A State is what was seen, and what the keys have chosen of it.
type State struct {
	Picture *Picture // nil: there is none yet
	Order   string   // one of locks.Orders
	Filter  string
	Typing  bool // the keys go into the filter

	Open     string          // the lock that is looked into; "": none
	Detail   *redlock.Status // of it, once the nodes have answered
	DetailAt time.Time

	Note string // the latest message

	selected string // a name of the lock that is selected
	at       int    // where it was, in case that it ends
	scroll   int    // lines of the detail that are above the screen
}

// See takes a new picture of all locks. The same lock stays selected; if it has ended, the one in its place is.
func (s *State) See(p *Picture) {
	if s.Picture != nil {
		s.at = s.index(s.rows())
	}
	s.Picture = p
	s.settle()
}

// Look takes the details of a lock at an instant, if its details are still shown (Open).
func (s *State) Look(d *redlock.Status, at time.Time) {
	if d.Name == s.Open {
		s.Detail, s.DetailAt = d, at
	}
}

// Press does what a key means. It returns true if that is to quit.
func (s *State) Press(k Key) (quit bool) {
	switch {
	case s.Typing:
		s.edit(k)
	case k == 'q' || k == 'Q':
		return true
	case s.Open != "":
		s.turn(k)
	default:
		s.choose(k)
	}
	return false
}

// longestFilter is far more than a name that a person types.
const longestFilter = 200

func (s *State) edit(k Key) {
	switch {
	case k == Enter:
		s.Typing = false
	case k == Esc:
		s.Typing, s.Filter = false, ""
	case k == Clear:
		s.Filter = ""
	case k == Back && s.Filter != "":
		_, n := utf8.DecodeLastRuneInString(s.Filter)
		s.Filter = s.Filter[:len(s.Filter)-n]
	case k >= ' ' && len(s.Filter) < longestFilter:
		s.Filter += string(rune(k))
	}
	s.settle()
}

// turn does what a key means while the details of one lock are shown.
func (s *State) turn(k Key) {
	last := 0
	if s.Detail != nil {
		last = len(s.details()) - 1
	}
	switch k {
	case Esc, Back:
		s.Open, s.Detail = "", nil
	case Up, 'k':
		s.scroll--
	case Down, 'j':
		s.scroll++
	case PageUp:
		s.scroll -= page
	case PageDown, ' ':
		s.scroll += page
	case Home, 'g':
		s.scroll = 0
	case End, 'G':
		s.scroll = last
	}
	s.scroll = max(0, min(s.scroll, last))
}

// page is how far the keys for pages go.
const page = 10

// choose does what a key means while all locks are shown.
func (s *State) choose(k Key) {
	rows := s.rows()
	at := s.index(rows)
	switch k {
	case 's':
		s.Order = locks.Orders[(slices.Index(locks.Orders, s.Order)+1)%len(locks.Orders)]
		s.settle()
		return
	case '/':
		s.Typing = true
		return
	case Esc:
		s.Filter = ""
		s.settle()
		return
	case Enter:
		if len(rows) > 0 {
			s.Open, s.Detail, s.scroll = rows[at].Names[0], nil, 0
		}
	case Up, 'k':
		at--
	case Down, 'j':
		at++
	case PageUp:
		at -= page
	case PageDown, ' ':
		at += page
	case Home, 'g':
		at = 0
	case End, 'G':
		at = len(rows) - 1
	}
	s.at, s.selected = at, ""
	s.settle()
}

// settle keeps the selected lock; if it is no longer shown, it selects the one in its place.
func (s *State) settle() {
	rows := s.rows()
	if s.at = s.index(rows); len(rows) > 0 {
		s.selected = rows[s.at].Names[0]
	}
}

// index returns the index of the selected lock in rows; that of the lock in its place if it is not there.
func (s *State) index(rows []*locks.Row) int {
	if i := slices.IndexFunc(rows, func(r *locks.Row) bool { return s.selected != "" && slices.Contains(r.Names, s.selected) }); i >= 0 {
		return i
	}
	return max(0, min(s.at, len(rows)-1))
}

// rows returns the locks that match the filter, in the order that the user has chosen.
func (s *State) rows() []*locks.Row {
	if s.Picture == nil {
		return nil
	}
	rows := slices.Clone(s.Picture.Rows)
	if s.Filter != "" {
		matches := matcher(s.Filter)
		rows = slices.DeleteFunc(rows, func(r *locks.Row) bool { return !slices.ContainsFunc(r.Names, matches) })
	}
	locks.Sort(rows, s.Order)
	return rows
}

// matcher returns a function that reports whether a name matches a filter: a pattern, as in redlock ls, or a part.
func matcher(filter string) func(name string) bool {
	if strings.ContainsAny(filter, `*?[\`) {
		return listing.Matcher(filter)
	}
	return func(name string) bool { return strings.Contains(name, filter) }
}
