package script_test

import (
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/script"
)

// TestShort: a server that waits for a password accepts no longer arguments.
func TestShort(t *testing.T) {
	for _, s := range script.All(strings.Repeat("f", 40)) {
		if n := len(s.Source); n > 16<<10 {
			t.Errorf("a script of %d bytes: %.100q", n, s.Source)
		}
	}
}
