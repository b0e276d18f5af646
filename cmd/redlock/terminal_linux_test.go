package main

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/quorumlock/redlock/internal/embedded"
)

// In a terminal the child can read from it, and gets a Ctrl-C once: from the
// terminal, and not from us again.
func TestTerminal(t *testing.T) {
	nodes, err := embedded.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	keyboard, terminal := openPty(t)

	var stdout, stderr buffer
	cmd := exec.Command("redlock", "run", "--key", "k", "--", "sh", "-c", `read word; echo "read $word"; exec child polite`)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", nodesVariable+"="+strings.Join(nodes.URLs(), " "))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
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
	// Stopped, redlock gets it well after the child: two in quick succession could
	// become one. It would be passed on before the later one, by which we see that
	// it was not.
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

// Ctrl-Z stops the command and us, as the shell sees it, and fg has both go on.
func TestJobControl(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	nodes, err := embedded.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	keyboard, terminal := openPty(t)
	var said buffer
	go func() { _, _ = io.Copy(&said, keyboard) }()

	shell := exec.Command(bash, "--norc", "--noprofile", "--noediting", "-i")
	shell.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "PS1=$ ", nodesVariable+"="+strings.Join(nodes.URLs(), " "))
	shell.Stdin, shell.Stdout, shell.Stderr = terminal, terminal, terminal
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- shell.Wait() }()
	t.Cleanup(func() { _ = shell.Process.Kill() })
	from := 0
	press := func(keys, until string) {
		t.Helper()
		if _, err := keyboard.WriteString(keys); err != nil {
			t.Fatal(err)
		}
		if !within(patience, func() bool { return strings.Contains(said.String()[from:], until) }) {
			t.Fatalf("no %q after %q in %q", until, keys, said.String())
		}
		from += strings.Index(said.String()[from:], until) + len(until)
	}

	press("redlock run --key k --ttl 1m -- child polite\n", "ready")
	var job uint32
	if err := ioctl(keyboard, syscall.TIOCGPGRP, &job); err != nil {
		t.Fatal(err)
	}
	press("\x1a", "Stopped")
	press("echo mine $((6*7))\n", "mine 42")
	press("fg\n", "--key k")
	// The shell says that before it gives the terminal to the job, and what is typed
	// in between is for the shell.
	var front uint32
	if !within(patience, func() bool {
		return ioctl(keyboard, syscall.TIOCGPGRP, &front) == nil && front == job
	}) {
		t.Fatalf("the terminal is of group %d after fg, and the job is %d", front, job)
	}
	press("\x03", "got interrupt")
	press("\x1a", "Stopped")
	press("bg; sleep 0.1; echo mine $((6*8))\n", "mine 48")
	press("kill -TERM %1; wait %1; echo code $?\n", "code 0")
	press("exit 7\n", "exit")
	if <-ended; shell.ProcessState.ExitCode() != 7 {
		t.Errorf("the shell ended with %v: %q", shell.ProcessState, said.String())
	}
}

// openPty makes a pseudo-terminal, and gives both of its ends.
func openPty(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			t.Skip("no pseudo-terminals here: ", err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	keyboard = open("/dev/ptmx")
	var number, unlock uint32
	for request, arg := range map[uintptr]*uint32{syscall.TIOCSPTLCK: &unlock, syscall.TIOCGPTN: &number} {
		if err := ioctl(keyboard, request, arg); err != nil {
			t.Fatal(err)
		}
	}
	return keyboard, open("/dev/pts/" + strconv.Itoa(int(number)))
}

func ioctl(terminal *os.File, request uintptr, arg *uint32) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
		return errno
	}
	return nil
}

// Once nobody reads our stderr, a line that we write there must not end us and
// leave the child alone.
func TestStderrThatNobodyReads(t *testing.T) {
	nodes, err := embedded.Start(3)
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
