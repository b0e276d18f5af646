package history_test

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// TestSpells: a fault lasts from its Struck to the first Healed of the same fault. One that is meant to last and is not healed
// is open until the end of the history; one that is not meant to last was over at once.
func TestSpells(t *testing.T) {
	hang, cut := history.Fault{Kind: history.Hang, For: time.Second}, history.Fault{Kind: history.Cut, Node: 1, For: time.Minute}
	reset := history.Fault{Kind: history.Reset}
	at := func(n time.Duration, kind history.Kind, f *history.Fault) history.Event {
		return history.Event{At: n * time.Second, Kind: kind, Fault: f}
	}
	events := []history.Event{
		at(1, history.Struck, &hang), at(2, history.Struck, &cut), at(3, history.Struck, &hang), at(4, history.Healed, &hang), at(5, history.Struck, &reset),
		at(6, history.Healed, &hang), at(9, history.Calm, nil),
	}
	want := []history.Spell{
		{Fault: hang, Struck: 0, From: time.Second, To: 4 * time.Second, Healed: true},
		{Fault: cut, Struck: 1, From: 2 * time.Second, To: 9 * time.Second, Open: true},
		{Fault: hang, Struck: 2, From: 3 * time.Second, To: 6 * time.Second, Healed: true},
		{Fault: reset, Struck: 4, From: 5 * time.Second, To: 5 * time.Second},
	}
	got := history.Spells(events)
	if len(got) != len(want) {
		t.Fatalf("there are %d spells, want %d", len(got), len(want))
	}
	for i := range want {
		if *got[i] != want[i] {
			t.Errorf("spell %d is %+v, want %+v", i, *got[i], want[i])
		}
	}
}
