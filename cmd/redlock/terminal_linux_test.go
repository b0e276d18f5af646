package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/pty"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// In a terminal the child can read from it, and gets a Ctrl-C once: from the terminal, and not
// from redlock again.
func TestTerminal(t *testing.T) {
	nodes, err := memredis.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	var stdout, stderr buffer
	env := append(os.Environ(), "GORACE=atexit_sleep_ms=0", reach.NodesVariable+"="+strings.Join(nodes.URLs(), " "))
	cmd, keyboard, ended := startOnTerminal(t, env, &stdout, &stderr, "run", "--key", "k", "--", "sh", "-c", `read word; echo "read $word"; exec child polite`)
	await := func(text string) {
		t.Helper()
		if !within(patience, func() bool { return strings.Contains(stdout.String(), text) }) {
			t.Fatalf("no %q in stdout %q, stderr %q", text, stdout.String(), stderr.String())
		}
	}
	press := func(keys string) {
		t.Helper()
		if _, err := keyboard.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}

	press("hello\n")
	await("read hello\n")
	await("ready")
	// While redlock is stopped the child gets the signal first: two in quick succession could
	// become one. If redlock passed it on, that would be before the later signal.
	send := func(sig syscall.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGSTOP)
	press("\x03")
	await("got interrupt\n")
	send(syscall.SIGCONT)
	send(syscall.SIGUSR1)
	await("got user defined signal 1\n")
	if n := strings.Count(stdout.String(), "got interrupt\n"); n != 1 {
		t.Errorf("the child got %d interrupts for one Ctrl-C", n)
	}
	send(syscall.SIGTERM)
	if err := <-ended; err != nil {
		t.Errorf("ended with %v, stderr %q", err, stderr.String())
	}
}

// A shellSession is an interactive shell in a terminal, with a keyboard.
type shellSession struct {
	*testing.T
	keyboard *os.File
	shell    *exec.Cmd
	ended    chan error
	said     buffer
	from     int // what it has said since the last key
}

// newSession starts a shell in which redlock finds nodes.
func newSession(t *testing.T) *shellSession {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		need.Skip(t, "in a shell", err)
	}
	nodes, err := memredis.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	keyboard, terminal := pty.Open(t)
	s := &shellSession{T: t, keyboard: keyboard, ended: make(chan error, 1)}
	go func() { _, _ = io.Copy(&s.said, keyboard) }()
	s.shell = exec.Command(bash, "--norc", "--noprofile", "--noediting", "-i")
	s.shell.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "PS1=$ ", reach.NodesVariable+"="+strings.Join(nodes.URLs(), " "))
	s.shell.Stdin, s.shell.Stdout, s.shell.Stderr = terminal, terminal, terminal
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.shell.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.shell.Wait() }()
	t.Cleanup(func() { _ = s.shell.Process.Kill() })
	return s
}

// press types keys, and waits until a text is on the screen.
func (s *shellSession) press(keys, until string) {
	s.Helper()
	if _, err := s.keyboard.WriteString(keys); err != nil {
		s.Fatal(err)
	}
	if !within(patience, func() bool { return strings.Contains(s.said.String()[s.from:], until) }) {
		s.Fatalf("no %q after %q in %q", until, keys, s.said.String())
	}
	s.from += strings.Index(s.said.String()[s.from:], until) + len(until)
}

// front is the foreground process group.
func (s *shellSession) front() uint32 {
	s.Helper()
	group, err := unix.IoctlGetUint32(int(s.keyboard.Fd()), unix.TIOCGPGRP)
	if err != nil {
		s.Fatal(err)
	}
	return group
}

// fg continues the job, whose processes are in one group. The shell prints its command before it
// gives the job the terminal, and reads what is typed in between.
func (s *shellSession) fg(job uint32, says string) {
	s.Helper()
	s.press("fg\n", says)
	if !within(patience, func() bool { return s.front() == job }) {
		s.Fatalf("the terminal is of group %d after fg, and the job is %d: %q", s.front(), job, s.said.String())
	}
}

// leave ends the shell, which must still be there.
func (s *shellSession) leave() {
	s.Helper()
	s.press("exit 7\n", "exit")
	if <-s.ended; s.shell.ProcessState.ExitCode() != 7 {
		s.Errorf("the shell ended with %v: %q", s.shell.ProcessState, s.said.String())
	}
}

// For the shell Ctrl-Z stops redlock with its command, and fg continues both.
func TestJobControl(t *testing.T) {
	s := newSession(t)
	s.press("redlock run --key k --ttl 1m -- child polite\n", "ready")
	job := s.front()
	s.press("\x1a", "Stopped")
	s.press("echo mine $((6*7))\n", "mine 42")
	s.fg(job, "redlock run")
	s.press("\x03", "got interrupt")
	s.press("\x1a", "Stopped")
	s.press("bg; sleep 0.1; echo mine $((6*8))\n", "mine 48")
	s.press("kill -TERM %1; wait %1; echo code $?\n", "code 0")
	s.leave()
}

// A command in the background that reads from the terminal is stopped, and redlock with it: the
// terminal is the shell's. In the foreground it reads.
func TestReadsInTheBackground(t *testing.T) {
	s := newSession(t)
	s.press("redlock run --key k --ttl 1m -- sh -c 'read word; echo \"<$word>\"; exec child polite' &\n", "$ ")
	s.press("until jobs | grep -q Stopped; do sleep 0.05; done; echo mine $((6*7))\n", "mine 42")
	s.press("fg\n", "redlock run")
	s.press("hello\n", "<hello>")
	s.press("", "ready")
	s.press("\x03", "got interrupt")
	s.press("\x1a", "Stopped")
	s.press("bg; kill -TERM %1; wait %1; echo code $?\n", "code 0")
	s.leave()
}

// In a pipeline the process that reads gets the keys, and all processes get Ctrl-C and Ctrl-Z.
func TestPipeline(t *testing.T) {
	s := newSession(t)
	s.press("redlock run --key k --ttl 1m -- sh -c 'echo ready $$; exec sleep 60' | while read line; do echo \"<$line>\"; read key < /dev/tty && echo \"<$key>\"; done\n", "<ready ")
	s.press("", ">")
	command := strings.TrimSuffix(s.said.String()[:s.from], ">")
	command = command[strings.LastIndexByte(command, ' ')+1:]
	job := s.front()
	s.press("one\n", "<one>")
	s.press("\x1a", "Stopped")
	s.press("echo mine $((6*7))\n", "mine 42")
	var stat []byte
	var err error
	if !within(patience, func() bool { // redlock has sent it the signal, and it stops when it runs next
		stat, err = os.ReadFile("/proc/" + command + "/stat")
		return err == nil && strings.Contains(string(stat), ") T ")
	}) {
		t.Errorf("the command is not stopped: %q, %v", stat, err)
	}
	s.fg(job, "redlock run")
	s.press("\x03", "$ ")
	s.leave()
}

// Ctrl-C ends a script that runs redlock, as it does without redlock: the command gets it from
// redlock, and the script from the terminal.
func TestScriptIsInterrupted(t *testing.T) {
	s := newSession(t)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("redlock run --key k --ttl 1m -- sh -c 'echo ready; exec sleep 60'\necho the script goes on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.press("bash "+script+"\n", "ready")
	job := s.front()
	s.press("\x1a", "Stopped")
	s.press("echo mine $((6*7))\n", "mine 42")
	s.fg(job, "bash")
	s.press("\x03", "$ ")
	s.press("echo code $?\n", "code 130")
	if strings.Contains(s.said.String(), "goes on") {
		t.Errorf("%q", s.said.String())
	}
	s.leave()
}

// startOnTerminal starts redlock on a terminal of its own, and gives the keyboard, and a channel that gets how it has ended.
func startOnTerminal(t *testing.T, env []string, stdout, stderr io.Writer, args ...string) (*exec.Cmd, *os.File, <-chan error) {
	t.Helper()
	keyboard, terminal := pty.Open(t)
	cmd := exec.Command("redlock", args...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, keyboard, ended
}

// If stderr is a pipe without a reader, a line that redlock writes there must not end redlock and
// leave the child alone.
func TestStderrThatNobodyReads(t *testing.T) {
	nodes, err := memredis.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	nodes.Nodes[0].Kill() // something to write about
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	var stdout strings.Builder
	cmd := exec.Command("redlock", "run", "--key", "k", "--node", strings.Join(nodes.URLs(), " "), "--", "echo", "done")
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = &stdout, w
	if err := cmd.Run(); err != nil || stdout.String() != "done\n" {
		t.Errorf("ended with %v, stdout %q", err, &stdout)
	}
}
