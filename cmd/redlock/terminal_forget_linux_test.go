package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/redlock/internal/memredis"
)

// In a terminal members forget shows what the node keeps, and asks. Another answer than yes changes nothing.
func TestForgetAsks(t *testing.T) {
	nodes, err := memredis.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	env := append(os.Environ(), "GORACE=atexit_sleep_ms=0", nodesVariable+"="+strings.Join(nodes.URLs(), " "))
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
		keyboard, terminal := openPty(t)
		var said buffer
		cmd := exec.Command("redlock", "members", "forget", nodes.Nodes[0].Addr())
		cmd.Env = env
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &said, &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		cmd.WaitDelay = patience
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		if !within(patience, func() bool { return strings.HasSuffix(said.String(), "Forget? Type yes: ") }) {
			t.Fatalf("no question in %q", said.String())
		}
		shown := said.String()
		if !regexp.MustCompile(`^redlock: \S+: it keeps epoch 1 of the set [0-9a-f]+, with the members .*\n`).MatchString(shown) {
			t.Errorf("it shows %q", shown)
		}
		if _, err := keyboard.WriteString(tt.answer); err != nil {
			t.Fatal(err)
		}
		<-ended
		rest := strings.TrimPrefix(said.String(), shown)
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !regexp.MustCompile(tt.says).MatchString(rest) {
			t.Errorf("answer %q: exit code %d, want %d; said %q", tt.answer, code, tt.code, rest)
		}
		if reply, err := ask(nodes.Nodes[0].Addr(), []string{"EXISTS", "redlock:set"}); err != nil || (reply == int64(1)) != tt.keeps {
			t.Errorf("answer %q: the node keeps %v, %v", tt.answer, reply, err)
		}
	}
}
