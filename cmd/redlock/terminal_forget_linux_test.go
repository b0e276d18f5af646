package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

// answered runs a command on a terminal and answers its question (none if it is empty); before it does, something else
// happens. It returns what was shown with the question, what was said afterwards, and the exit code.
func answered(t *testing.T, env []string, question, answer string, before func(), args ...string) (shown, rest string, code int) {
	t.Helper()
	var said buffer
	cmd, keyboard, ended := startOnTerminal(t, env, &said, &said, args...)
	if question != "" {
		if !within(patience, func() bool { return strings.HasSuffix(said.String(), question) }) {
			t.Fatalf("no question in %q", said.String())
		}
		shown = said.String()
		before()
		if _, err := keyboard.WriteString(answer); err != nil {
			t.Fatal(err)
		}
	}
	<-ended
	return shown, strings.TrimPrefix(said.String(), shown), cmd.ProcessState.ExitCode()
}

// In a terminal members forget shows what the node keeps, and asks. Another answer than yes changes nothing.
func TestForgetAsks(t *testing.T) {
	nodes, err := memredis.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	env := append(os.Environ(), "GORACE=atexit_sleep_ms=0", reach.NodesVariable+"="+strings.Join(nodes.URLs(), " "))
	first := exec.Command("redlock", "run", "k", "--", "true")
	first.Env = env
	if out, err := first.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, tt := range []struct {
		answer string
		code   int
		says   string
		keeps  bool
	}{
		{"y\n", 75, `^redlock: no node was made to forget\n$`, true},
		{"\x04", 75, `^redlock: no node was made to forget\n$`, true},
		{"yes\n", 0, `^\S+ has forgotten its set\n$`, false},
	} {
		shown, rest, code := answered(t, env, "Forget? Type yes: ", tt.answer, func() {}, "members", "forget", nodes.Nodes[0].Addr())
		if !regexp.MustCompile(`^redlock: \S+: it keeps epoch 1 of the set [0-9a-f]+, with the members .*\n`).MatchString(shown) {
			t.Errorf("it shows %q", shown)
		}
		if code != tt.code || !regexp.MustCompile(tt.says).MatchString(rest) {
			t.Errorf("answer %q: exit code %d, want %d; said %q", tt.answer, code, tt.code, rest)
		}
		if reply, err := ask(nodes.Nodes[0].Addr(), []string{"EXISTS", "redlock:set"}); err != nil || (reply == int64(1)) != tt.keeps {
			t.Errorf("answer %q: the node keeps %v, %v", tt.answer, reply, err)
		}
	}
}

// In a terminal members restore shows what is left, asks, and looks again before it writes: a member may have come back while
// the operator thought about it, so that the set is lost no more.
func TestRestoreAsks(t *testing.T) {
	nodes, err := memredis.Start(5)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	urls := nodes.URLs()
	first := exec.Command("redlock", "run", "k", "--", "true")
	first.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", reach.NodesVariable+"="+strings.Join(urls[:3], " "))
	if out, err := first.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	nodes.Nodes[1].Kill()
	nodes.Nodes[2].Kill()
	env := append(os.Environ(), "GORACE=atexit_sleep_ms=0", reach.NodesVariable+"="+strings.Join([]string{urls[0], urls[3], urls[4]}, " "))
	comesBack := func() {
		if err := nodes.Nodes[1].Restart(true); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		answer string
		before func()
		code   int
		says   string
	}{
		{"no\n", func() {}, 75, `^redlock: nothing was restored\n$`},
		{"yes\n", comesBack, 64, `^redlock: the set of \S+, \S+, \S+ is not lost: 2 of these 3 members keep its last description \(epoch 1\)\n`},
		{"yes\n", func() {}, 0, `^\S+, \S+, \S+ are the members of the set, and vote when 10s are over at the soonest\n$`},
	} {
		shown, rest, code := answered(t, env, "Restore? Type yes: ", tt.answer, tt.before, "members", "restore")
		if !regexp.MustCompile(`(?m)^redlock: the set will have the members .*, a quorum of 2, no separator, and locks of 10s at most$`).MatchString(shown) {
			t.Errorf("it shows %q", shown)
		}
		if code != tt.code || !regexp.MustCompile(tt.says).MatchString(rest) {
			t.Errorf("answer %q: exit code %d, want %d; said %q", tt.answer, code, tt.code, rest)
		}
		nodes.Nodes[1].Kill()
		for i, want := range []int64{1, 0} { // the one that keeps the description, and a new one
			if tt.code == 0 {
				want = 1
			}
			if reply, err := ask(nodes.Nodes[3*i].Addr(), []string{"EXISTS", "redlock:set"}); err != nil || reply != want {
				t.Errorf("answer %q: node %d has a description: %v, %v", tt.answer, 3*i, reply, err)
			}
		}
	}
}
