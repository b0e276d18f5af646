package ways_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/quorumlock/redlock/internal/ways"
)

// TestBar: what may be held together is said once for each pair, and both have to say it.
func TestBar(t *testing.T) {
	together := map[string]bool{"ss": true, "sr": true, "ll": true, "ww": true, "wr": true, "rr": true}
	for _, one := range "xslwr" {
		for _, other := range "xslwr" {
			want := !together[string(one)+string(other)] && !together[string(other)+string(one)]
			if got := Bar(Way(one), Way(other)); got != want {
				t.Errorf("%c and %c: %v", one, other, got)
			}
		}
	}
}

// TestAsTheScriptSays: there are two who say what goes together, this package and the
// script, and they say the same.
func TestAsTheScriptSays(t *testing.T) {
	script, err := os.ReadFile("../script/kinds.lua")
	if err != nil {
		t.Fatal(err)
	}
	table := func(name string) map[string]string {
		text := regexp.MustCompile(`(?m)^ *(?:local )?` + name + ` = \{(.*)\}`).FindSubmatch(script)
		if text == nil {
			t.Fatalf("kinds.lua has no %s", name)
		}
		all := make(map[string]string)
		for _, field := range strings.Split(string(text[1]), ", ") {
			key, value, _ := strings.Cut(field, " = ")
			all[key] = strings.Trim(value, "'")
		}
		return all
	}
	bars := table("bars")
	for way, others := range Bars {
		if bars[string(way)] != others {
			t.Errorf("%c bars %q, and in the script %q", way, others, bars[string(way)])
		}
	}
	if len(bars) != len(Bars) {
		t.Errorf("the script has %v", bars)
	}
	ranges := table("range")
	for _, way := range []Way{Shared, Slots, Write, Read, Alone, Slot} {
		from, inSet := ranges[string(way)]
		if inSet != IsSet(way) {
			t.Errorf("%c is in a set: %v, and in the script %v", way, IsSet(way), inSet)
		}
		if !inSet {
			continue
		}
		start, err := strconv.ParseFloat(from, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := Score(way, 1_800_000_000_123); got != strconv.FormatInt(int64(start)+1_800_000_000_123, 10) {
			t.Errorf("%c: the score is %s, and in the script it is from %s on", way, got, from)
		}
	}
}

// TestScore: a score says the way and the deadline, however Redis writes it.
func TestScore(t *testing.T) {
	for _, way := range []Way{Shared, Slots, Write, Read} {
		for _, deadline := range []int64{0, 1, 1_800_000_000_123, 9_999_999_999_999} {
			score := Score(way, deadline)
			f, err := strconv.ParseFloat(score, 64)
			if err != nil {
				t.Fatal(err)
			}
			for _, written := range []string{score, strconv.FormatFloat(f, 'g', 17, 64), strconv.FormatFloat(f, 'e', -1, 64)} {
				if w, d := OfScore(written); w != way || d != deadline {
					t.Errorf("%c until %d is %s, which is read as %c until %d", way, deadline, written, w, d)
				}
			}
		}
	}
	for _, score := range []string{"", "soon", "-1", "40000000000000", "1e300", "inf", "nan"} {
		if w, d := OfScore(score); w != 0 || d != 0 {
			t.Errorf("%q is read as %c until %d", score, w, d)
		}
	}
}

// TestClash: who waits lets those go first with whom he cannot hold a key, and those who
// want a slot, too.
func TestClash(t *testing.T) {
	for _, one := range "xslwr" {
		for _, other := range "xslwr" {
			want := Bar(Way(one), Way(other)) || one == 'l' && other == 'l'
			if got := Clash(Way(one), Way(other)); got != want || got != Clash(Way(other), Way(one)) {
				t.Errorf("%c and %c: %v", one, other, got)
			}
		}
	}
}

func TestBelow(t *testing.T) {
	for way, want := range map[Way]bool{Alone: false, Shared: false, Slot: false, Slots: false, Write: true, Read: true} {
		if Below(way) != want {
			t.Errorf("%c: %v", way, !want)
		}
	}
}
