package main

import (
	"os"
	"strings"
	"testing"
)

// TestRunOnAnySystem: on each system run starts the command, passes its output and its exit status on, and says if there
// is no such command. The scripts test the rest on Unix.
func TestRunOnAnySystem(t *testing.T) {
	for _, c := range []struct {
		command string
		code    int
		prints  string
	}{
		{os.Args[0] + " -test.run=^$", 0, "PASS"},
		{os.Args[0] + " -test.no-such-flag", 2, "not defined: -test.no-such-flag"},
		{"no-such-command-anywhere", 127, "command not found"},
	} {
		var stdout, stderr strings.Builder
		code := main1(append([]string{"run", "k", "--embedded", "--"}, strings.Fields(c.command)...), os.Environ(), strings.NewReader(""), &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String()+stderr.String(), c.prints) {
			t.Errorf("%s: exit status %d, %q, %q", c.command, code, &stdout, &stderr)
		}
	}
}
