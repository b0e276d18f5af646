package printable_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quorumlock/redlock/internal/printable"
)

func TestTextIsOneLineOfVisibleCharacters(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain", `a-1 "b" \x1b café 日本 é`, `a-1 "b" \x1b café 日本 é`},
		{"empty", "", ""},
		{"escape", "a\x1b[31mred\x1b]0;title\x07", `a\x1b[31mred\x1b]0;title\a`},
		{"CSI in 8 bits", "a\x9b31m", `a\x9b31m`},
		{"CSI in UTF-8", "a\u009b31m", `a\u009b31m`},
		{"lines", "a\nredlock: all is well\r\n\tb\u2028c\x85\v", `a\nredlock: all is well\r\n\tb\u2028c\x85\v`},
		{"order of reading", "a\u202eb\u2066c\u200fd\u061ce", `a\u202eb\u2066c\u200fd\u061ce`},
		{"what is not seen", "a\u200bb\u00adc\ufeffd\u00a0e\x00\x7f", `a\u200bb\u00adc\ufeffd\u00a0e\x00\x7f`},
		{"no UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
		{"the replacement character", "a\ufffdb", "a\ufffdb"},
	} {
		if got := printable.Text(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// FuzzText: the result is one line of visible characters, and such a line stays as it is.
func FuzzText(f *testing.F) {
	f.Add("a\x1b\x9b\n\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		text := printable.Text(s)
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\n\r\t\u009b\u202e\u2066\u2028") || printable.Text(text) != text {
			t.Errorf("%q is shown as %q", s, text)
		}
	})
}
