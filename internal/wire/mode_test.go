package wire_test

import (
	"strconv"
	"testing"

	. "github.com/quorumlock/redlock/internal/wire"
)

// TestConflict: the test has each pair of modes that go together once, and the table must have it
// both ways.
func TestConflict(t *testing.T) {
	together := map[string]bool{"ss": true, "sr": true, "ll": true, "ww": true, "wr": true, "rr": true}
	for _, one := range "xslwr" {
		for _, other := range "xslwr" {
			want := !together[string(one)+string(other)] && !together[string(other)+string(one)]
			if got := Conflict(Mode(one), Mode(other)); got != want {
				t.Errorf("%c and %c: %v", one, other, got)
			}
		}
	}
}

// TestScore: a score gives back its mode and deadline, in whatever format Redis prints it.
func TestScore(t *testing.T) {
	for _, mode := range []Mode{ModeS, ModeSlots, ModeIX, ModeIS} {
		for _, deadline := range []int64{0, 1, 1_800_000_000_123, 9_999_999_999_999} {
			score := Score(mode, deadline)
			f, err := strconv.ParseFloat(score, 64)
			if err != nil {
				t.Fatal(err)
			}
			for _, written := range []string{score, strconv.FormatFloat(f, 'g', 17, 64), strconv.FormatFloat(f, 'e', -1, 64)} {
				if w, d := ParseScore(written); w != mode || d != deadline {
					t.Errorf("%c until %d is %s, which is read as %c until %d", mode, deadline, written, w, d)
				}
			}
		}
	}
	for _, score := range []string{"", "soon", "-1", "40000000000000", "1e300", "inf", "nan"} {
		if w, d := ParseScore(score); w != 0 || d != 0 {
			t.Errorf("%q is read as %c until %d", score, w, d)
		}
	}
}

// TestMustQueueBehind: a waiter lets earlier ones go first if their modes conflict, or if both want
// a slot.
func TestMustQueueBehind(t *testing.T) {
	for _, one := range "xslwr" {
		for _, other := range "xslwr" {
			want := Conflict(Mode(one), Mode(other)) || one == 'l' && other == 'l'
			if got := MustQueueBehind(Mode(one), Mode(other)); got != want || got != MustQueueBehind(Mode(other), Mode(one)) {
				t.Errorf("%c and %c: %v", one, other, got)
			}
		}
	}
}

func TestIsIntention(t *testing.T) {
	for mode, want := range map[Mode]bool{ModeX: false, ModeS: false, ModeSlot: false, ModeSlots: false, ModeIX: true, ModeIS: true} {
		if IsIntention(mode) != want {
			t.Errorf("%c: %v", mode, !want)
		}
	}
}
