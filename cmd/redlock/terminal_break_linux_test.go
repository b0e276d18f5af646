package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// In a terminal break shows who has the lock, and asks. Another answer than yes changes nothing; nor
// does yes if the lock has changed hands while it was asking.
func TestBreakAsks(t *testing.T) {
	nodes, err := memredis.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	env := append(os.Environ(), "GORACE=atexit_sleep_ms=0", reach.NodesVariable+"="+strings.Join(nodes.URLs(), " "))
	redlock := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("redlock", args...)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("redlock %q: %v", args, err)
		}
		return string(out)
	}
	for row, tt := range []struct {
		name      string
		flags     []string
		meanwhile func(handle string)
		answer    string
		code      int
		says      string // on stdout and stderr, after the question
		after     string
	}{
		{"yes", nil, nil, "yes", 0, `^"k" is broken: .*; nobody waits for it\n$`, `"k": free`},
		{"no", nil, nil, "y", 75, `^redlock: "k" is not broken\n$`, `"k": held`},
		{"the end of the input", nil, nil, "\x04", 75, `^redlock: "k" is not broken\n$`, `"k": held`},
		{"it changes hands", nil, func(handle string) {
			redlock("unlock", handle)
			redlock("lock", "k")
		}, "yes", 79, `^redlock: "k": its holder does not have it any more, and nothing was broken: `, `"k": held`},
		{"several readers", []string{"--shared"}, nil, "", 64, `redlock: "k" has 2 holders\nredlock: hint: --token TOKEN says which`, `"k": held`},
	} {
		if !need.Sample(row, 3) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			handle := redlock(append([]string{"lock", "k"}, tt.flags...)...)
			if tt.flags != nil {
				redlock(append([]string{"lock", "k"}, tt.flags...)...)
			}
			question, answer := "Break it? Type yes: ", tt.answer
			switch answer {
			case "":
				question = ""
			case "yes", "y":
				answer += "\n"
			}
			shown, rest, code := answered(t, env, question, answer, func() {
				if tt.meanwhile != nil {
					tt.meanwhile(handle)
				}
			}, "break", "k")
			for _, want := range []string{`^"k": exclusive by .* \(token .*\), fence at most \d+, since .* ago\n`, `left unless renewed, on 3 of 3 nodes; nobody waits for it\n`, "The holder is not stopped\\."} {
				if question != "" && !regexp.MustCompile(want).MatchString(shown) {
					t.Errorf("no %q in %q", want, shown)
				}
			}
			if code != tt.code || !regexp.MustCompile(tt.says).MatchString(rest) {
				t.Errorf("exit code %d, want %d; said %q", code, tt.code, rest)
			}
			if status := redlock("status", "k"); !strings.HasPrefix(status, tt.after) {
				t.Errorf("afterwards: %s", status)
			}
			for strings.HasPrefix(redlock("status", "k"), `"k": held`) {
				fields := regexp.MustCompile(`"token": ?"([^"]+)"`).FindStringSubmatch(redlock("status", "k", "--json"))
				redlock("break", "k", "--yes", "--token", fields[1])
			}
		})
	}
}
