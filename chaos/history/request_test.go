package history_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorumlock/redlock/chaos/history"
)

// TestRequestWords: a request in words, and as the short label of a chart.
func TestRequestWords(t *testing.T) {
	for _, tt := range []struct {
		want         history.Request
		text, labels string
	}{
		{history.Request{Name: "a"}, `"a"`, "a"},
		{history.Request{Name: "a\n"}, `"a\n"`, "a\n"},
		{history.Request{Name: "a", Also: "b c", Shared: true}, `"a" and "b" and "c" as a reader`, "a+b+c (r)"},
		{history.Request{Name: "a", Slots: 3}, `one of 3 slots of "a"`, "a 1/3"},
	} {
		if got := tt.want.String(); got != tt.text {
			t.Errorf("%#v is %s, want %s", tt.want, got, tt.text)
		}
		if got := tt.want.Label(); got != tt.labels {
			t.Errorf("%#v is %s for short, want %s", tt.want, got, tt.labels)
		}
	}
}

// TestCanonical: requests for the same lock have the same canonical form.
func TestCanonical(t *testing.T) {
	lines := make(map[history.Request][]string)
	for _, w := range []history.Request{
		{Name: "a"}, {Name: "a", Also: "a/b a"}, {Name: "a/b", Also: "a"},
		{Name: "a/b"}, {Name: "ab"}, {Name: "a", Shared: true}, {Name: "a/c", Also: "a", Shared: true},
		{Name: "a", Also: "b"}, {Name: "b", Also: "a"}, {Name: "a", Slots: 2}, {Name: "a", Slots: 3},
	} {
		lines[w.Canonical("/")] = append(lines[w.Canonical("/")], w.Label())
	}
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprint(l))
	}
	slices.Sort(got)
	want := []string{"[a (r) a/c+a (r)]", "[a 1/2 a 1/3]", "[a a+a/b+a a/b+a]", "[a+b b+a]", "[a/b]", "[ab]"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
