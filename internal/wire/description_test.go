package wire

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatCannotBeADescription: a node that keeps such a text keeps no description, and says what is wrong with it.
func TestWhatCannotBeADescription(t *testing.T) {
	members := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("a:", i))
		}
		return all
	}
	for _, tt := range []struct {
		name   string
		change func(d *Description)
		want   string // in the error; "": it is one
	}{
		{"three members", func(*Description) {}, ""},
		{"the largest set", func(d *Description) { d.Members = members(31) }, ""},
		{"one member more", func(d *Description) { d.Members = members(32) }, "32 members"},
		{"no members", func(d *Description) { d.Members = nil }, "no members"},
		{"a member twice", func(d *Description) { d.Members[2] = "a:0" }, "a:0 is there twice"},
		{"all must agree", func(d *Description) { d.Quorum = 3 }, ""},
		{"a quorum that is no majority", func(d *Description) { d.Quorum = 1 }, "the quorum is 1"},
		{"half", func(d *Description) { d.Members, d.Quorum = members(4), 2 }, "the quorum is 2"},
		{"a quorum of more than all", func(d *Description) { d.Quorum = 4 }, "the quorum is 4"},
	} {
		d := &Description{MaxTTL: 10_000, Epoch: 1, Set: "s", Members: members(3)}
		tt.change(d)
		kept := ParseKept("a:0\n" + d.Text())
		if got := fmt.Sprint(kept.Damage); (kept.Description == nil) != (tt.want != "") || tt.want != "" && !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v, %s; want %q", tt.name, kept.Description, got, tt.want)
		}
		if kept := ParseKept("a:0\n" + d.Text()[:len(d.Text())-1]); kept.Description != nil {
			t.Errorf("%s: a text that was cut off is a description", tt.name)
		}
	}
}
