package wire_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/script"
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

// TestAsTheScriptSays: the scripts are given the conflicts and the ranges of the scores, and have
// a range for each mode of a set.
func TestAsTheScriptSays(t *testing.T) {
	table := func(name string) map[string]string {
		text := regexp.MustCompile(`(?m)^ *(?:local )?` + name + ` ?= ?\{(.*)\}`).FindStringSubmatch(script.Extend.Source)
		if text == nil {
			t.Fatalf("the script has no %s", name)
		}
		all := make(map[string]string)
		for _, field := range strings.Split(text[1], ",") {
			key, value, _ := strings.Cut(field, "=")
			all[strings.TrimSpace(key)] = strings.Trim(value, " '")
		}
		return all
	}
	bars := table("bars")
	for mode, others := range Conflicting {
		if bars[string(mode)] != others {
			t.Errorf("%c conflicts with %q, and in the script with %q", mode, others, bars[string(mode)])
		}
	}
	if len(bars) != len(Conflicting) {
		t.Errorf("the script has %v", bars)
	}
	ranges := table("range")
	for _, mode := range []Mode{ModeS, ModeSlots, ModeIX, ModeIS, ModeX, ModeSlot} {
		from, inSet := ranges[string(mode)]
		if inSet != IsSet(mode) {
			t.Errorf("%c is in a set: %v, and in the script %v", mode, IsSet(mode), inSet)
		}
		if !inSet {
			continue
		}
		start, err := strconv.ParseFloat(from, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := Score(mode, 1_800_000_000_123); got != strconv.FormatInt(int64(start)+1_800_000_000_123, 10) {
			t.Errorf("%c: the score is %s, and in the script it is from %s on", mode, got, from)
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
