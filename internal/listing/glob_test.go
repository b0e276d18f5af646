package listing_test

import (
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/listing"
)

// TestMatcher: a pattern matches what it matches in Redis (KEYS). TestServersPattern draws patterns and asks a server; here
// are those of which each says one rule.
func TestMatcher(t *testing.T) {
	for _, tt := range []struct{ pattern, matches, not string }{
		{"", "", "a"},
		{"*", " a ab", ""},
		{"a", "a", " A ab"},
		{"a*", "a ab a/b", "ba"},
		{"*b*c", "bc abxc bbcc", "cb bcd"},
		{"?", "a *", " ab"},
		{"[ab]", "a b", "c ab"},
		{"[^ab]", "c ^", "a b"},
		{"[a-c]x", "ax cx", "dx -x"},
		{"[c-a]", "a b c", "d"}, // the other way round it is the same
		{`[\]-]`, "] -", `\`},
		{"[ab", "a b", "c ["}, // the set ends with the pattern
		{`\*`, "*", `a \*`},
		{`a\`, `a\`, "a"}, // nothing is escaped: it stands for itself
	} {
		match := listing.Matcher(tt.pattern)
		for text, want := range map[string]bool{tt.matches: true, tt.not: false} {
			if text == "" && (tt.pattern == "" || tt.pattern == "*") != want {
				continue // there is none
			}
			for name := range strings.SplitSeq(text, " ") {
				if match(name) != want {
					t.Errorf("%q matches %q: %v, want %v", tt.pattern, name, !want, want)
				}
			}
		}
	}
}

// TestMatcherIsNotExponential: a pattern with many stars takes no longer than the product of both lengths.
func TestMatcherIsNotExponential(t *testing.T) {
	if listing.Matcher(strings.Repeat("a*", 200) + "b")(strings.Repeat("a", 2000)) {
		t.Error("it matches")
	}
}

// TestEscape: an escaped text matches itself, and none of the texts that it would match as a pattern.
func TestEscape(t *testing.T) {
	for text, other := range map[string]string{"a*": "ab", "a?": "ab", "[ab]": "a", `\a`: "a", "a-1/b:c": "a"} {
		match := listing.Matcher(listing.Escape(text))
		if !match(text) || match(other) {
			t.Errorf("%q as a pattern is %q: it matches itself: %v; %q: %v", text, listing.Escape(text), match(text), other, match(other))
		}
	}
}
