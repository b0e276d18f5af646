package model

import "testing"

// TestTurns: no two links of a lane have one turn, also after some were given up; if they had, it would depend on the
// scheduler which of the two goes on first, and a seed would not give one history.
func TestTurns(t *testing.T) {
	first := &Link{lane: new(links), actor: 16}
	var all []*Link
	for range 7 {
		all = append(all, first.Fork())
	}
	for range 3 { // a subscription's turn is given back as soon as it listens
		all[2].Interrupt()
		all[5].leave()
		all[5].Interrupt() // gives back nothing: the turn may be another's
		all[2], all[5] = first.Fork(), first.Fork()
		turns := make(map[int]bool)
		for _, l := range all {
			turns[l.actor] = true
		}
		if len(turns) != 7 || turns[16] || turns[24] {
			t.Fatalf("seven links have the turns %v", turns)
		}
	}
}
