package script_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/script"
)

// TestEachConstantIsReplaced: each name of a constant has one.
func TestEachConstantIsReplaced(t *testing.T) {
	name := regexp.MustCompile(`\$[a-zA-Z]+`)
	for _, s := range append(script.All("id"), script.Script{Source: script.Join}, script.Script{Source: script.Probe}, script.Script{Source: script.Wake}) {
		if names := name.FindAllString(s.Source, -1); len(names) > 0 {
			t.Errorf("%q are no constants, in %.100q", names, s.Source)
		}
	}
}

// TestScriptsFitBeforeTheLogin: a server that waits for a password accepts no longer arguments.
func TestScriptsFitBeforeTheLogin(t *testing.T) {
	for _, s := range script.All(strings.Repeat("f", 40)) {
		if n := len(s.Source); n > 16<<10 {
			t.Errorf("a script of %d bytes: %.100q", n, s.Source)
		}
	}
}
