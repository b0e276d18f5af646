//go:build unix

package redisproc

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// startCat is a Child that sends back what it is sent.
func startCat(t *testing.T) (child *Child, in io.WriteCloser, out *os.File) {
	t.Helper()
	childIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat")
	cmd.Stdin, cmd.Stdout = childIn, childOut
	child, err = StartChild(cmd)
	if err != nil {
		t.Fatal(err)
	}
	childIn.Close()
	childOut.Close()
	t.Cleanup(func() { child.Kill(); in.Close(); out.Close() })
	return child, in, out
}

func TestChild(t *testing.T) {
	child, in, out := startCat(t)
	if child.Pid() == 0 || gone(child.Pid()) {
		t.Fatalf("process %d does not run", child.Pid())
	}
	lines := bufio.NewReader(out)
	ping := func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return line
	}
	io.WriteString(in, "one\n")
	if got := ping(); got != "one\n" {
		t.Errorf("it says %q", got)
	}

	if err := child.Hang(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, "two\n")
	_ = out.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if got := ping(); got == "two\n" {
		t.Error("a hung process answers")
	}
	_ = out.SetReadDeadline(time.Now().Add(10 * time.Second))
	if err := child.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := ping(); got != "two\n" {
		t.Errorf("when it goes on it says %q", got)
	}

	in.Close()
	if got := child.Ended(); got != "exit status 0" {
		t.Errorf("it ended with %q", got)
	}
	if child.Hang() == nil || child.Resume() == nil {
		t.Error("a process that has ended can be hung")
	}
	child.Kill() // nothing to do
}

func TestChildIsKilled(t *testing.T) {
	child, _, _ := startCat(t)
	if err := child.Hang(); err != nil {
		t.Fatal(err)
	}
	child.Kill()
	select {
	case <-child.Done():
	default:
		t.Error("killed, and not done")
	}
	if !gone(child.Pid()) {
		t.Error("it is still there")
	}
	if got := child.Ended(); got != "signal: killed" {
		t.Errorf("it ended with %q", got)
	}
}

// cat is no Go program, but dies of the same signal.
func TestChildIsDumped(t *testing.T) {
	child, _, _ := startCat(t)
	child.Dump()
	if got := child.Ended(); !strings.HasPrefix(got, "signal: quit") {
		t.Errorf("it ended with %q", got)
	}
}

func TestHungChildIsKilled(t *testing.T) {
	need.Full(t) // Dump waits for seconds
	child, _, _ := startCat(t)
	if err := child.Hang(); err != nil {
		t.Fatal(err)
	}
	child.Dump()
	if got := child.Ended(); got != "signal: killed" {
		t.Errorf("hung, it ended with %q", got)
	}
}

func TestNoSuchChild(t *testing.T) {
	if _, err := StartChild(exec.Command("no-such-program-anywhere")); err == nil {
		t.Error("it runs")
	}
}

func TestForget(t *testing.T) {
	s := start(t, "--appendonly", "yes", "--appendfsync", "always")
	want(t, s, "SET k v", "+OK")
	pid := s.Pid()
	if err := s.Forget(); err != nil {
		t.Fatal(err)
	}
	if s.Pid() == pid || !s.Running() {
		t.Errorf("it runs as %d, as before", s.Pid())
	}
	want(t, s, "EXISTS k", ":0")
	want(t, s, "SET k v", "+OK")
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	want(t, s, "EXISTS k", ":1")
}
