package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/pty"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// At a terminal one line is drawn again and again, and gone in the end; a Ctrl-C
// there ends it.
func TestChaosAtATerminal(t *testing.T) {
	need.Full(t) // the program runs schedules until it is stopped
	keyboard, terminal := pty.Open(t)
	var stdout, screen buffer
	cmd := exec.Command("redlock", "chaos", "--arena", "model", "--scenario", "calm", "--for", "5m")
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &stdout, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	go io.Copy(&screen, keyboard) // until there is no terminal any more
	bars := func() int { return strings.Count(screen.String(), "\rmodel [....................] ") }
	if !within(patience, func() bool { return bars() >= 3 }) {
		t.Fatalf("%d bars on the screen: %q", bars(), screen.String())
	}
	if strings.Contains(strings.TrimSuffix(screen.String(), "\n"), "\n") {
		t.Errorf("more than one line: %q", screen.String())
	}
	if _, err := keyboard.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	matches(t, stdout.String(), `; ended early by SIGINT\n\z`)
	if !within(patience, func() bool { return strings.Contains(screen.String(), "\r\x1b[Kredlock: SIGINT: ends when ") }) {
		t.Errorf("the line has not made way: %q", screen.String())
	}
	gone := func() bool {
		text := screen.String()
		return strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\r\x1b[K")
	}
	if !within(patience, gone) {
		t.Errorf("something is left on the screen: %q", screen.String())
	}
}
