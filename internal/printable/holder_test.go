package printable_test

import (
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/printable"
)

// TestHolder: of a token that may be secret only the beginning is shown, the whole one only if nothing says who the owner is.
// What another client has written cannot steer the terminal.
func TestHolder(t *testing.T) {
	long := strings.Repeat("x", 101)
	for _, tt := range []struct{ owner, token, want string }{
		{"web-1", "0123456789", "web-1 (token 01234567…)"},
		{"web-1", "01234567", "web-1 (token 01234567)"},
		{"", "0123456789", "0123456789"},
		{"", long, long[:64] + "…"},
		{"", long[:100], long[:100]},
		{"a\x1b[31m", "t\n", `a\x1b[31m (token t\n)`},
		{"", "t\x1b", `t\x1b`},
	} {
		if got := printable.Holder(tt.owner, tt.token); got != tt.want {
			t.Errorf("%q with token %q is shown as %q, want %q", tt.owner, tt.token, got, tt.want)
		}
	}
}
