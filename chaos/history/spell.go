package history

import "time"

// A Spell is a fault with its beginning and end.
type Spell struct {
	Fault
	Struck   int // the event
	From, To time.Duration
	Healed   bool
	Open     bool // until the end of the history, at least
}

// Spells returns the faults of a history, each from Struck to Healed. A fault without Healed was
// over at once, unless it was meant to last.
func Spells(events []Event) []*Spell {
	var all []*Spell
	open := map[Fault][]*Spell{}
	for i, e := range events {
		switch {
		case e.Fault == nil:
		case e.Kind == Struck:
			s := &Spell{Fault: *e.Fault, Struck: i, From: e.At, To: e.At}
			if s.Open = s.For > 0; s.Open {
				s.To = events[len(events)-1].At
			}
			all = append(all, s)
			open[*e.Fault] = append(open[*e.Fault], s)
		case e.Kind == Healed:
			if same := open[*e.Fault]; len(same) > 0 {
				same[0].To, same[0].Healed, same[0].Open = e.At, true, false
				open[*e.Fault] = same[1:]
			}
		}
	}
	return all
}
