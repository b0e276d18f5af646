// Package chaos puts lockers to work while nodes die, hang, restart and are cut
// off, writes down what every client believed and when, and judges afterwards
// whether the promise held: no two valid locks on one name at one moment, and
// nothing left on the nodes.
//
// The judge is pure. It sees no node and no network, only the history.
package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Hold is one lock as its holder saw it: from the moment when it was handed out
// until the holder gave it back, or learned that it had ended.
type Hold struct {
	Client int
	Name   string
	Token  string
	From   time.Time
	To     time.Time // zero: the holder never learned of an end
}

func (h Hold) String() string {
	return fmt.Sprintf("client %d held %q from %s to %s with %s", h.Client, h.Name, clock(h.From), clock(h.To), h.Token)
}

func clock(t time.Time) string { return t.Format("15:04:05.000000") }

// Violations lists every pair of holds of one name that were valid at once, the
// earlier first. A hold that ends at the instant at which the next begins does
// not overlap it.
func Violations(history []Hold) (found []error) {
	byName := make(map[string][]Hold)
	for _, h := range history {
		byName[h.Name] = append(byName[h.Name], h)
	}
	for _, holds := range byName {
		slices.SortStableFunc(holds, func(a, b Hold) int { return a.From.Compare(b.From) })
		var last Hold // of those so far, the one that ends last
		for i, h := range holds {
			if i > 0 && (last.To.IsZero() || h.From.Before(last.To)) {
				found = append(found, fmt.Errorf("%v, and %v", last, h))
			}
			if i == 0 || !last.To.IsZero() && (h.To.IsZero() || h.To.After(last.To)) {
				last = h
			}
		}
	}
	slices.SortFunc(found, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return found
}
