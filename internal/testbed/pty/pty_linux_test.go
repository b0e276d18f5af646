package pty_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/redlock/internal/testbed/pty"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// read reads n bytes. It fails the test if they do not come.
func read(t *testing.T, from *os.File, n int) (string, error) {
	t.Helper()
	text, done := make([]byte, n), make(chan error, 1)
	go func() {
		_, err := io.ReadFull(from, text)
		done <- err
	}()
	select {
	case err := <-done:
		return string(text), err
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing comes from %s", from.Name())
		return "", nil
	}
}

// TestBothEnds: what is written at one end is read at the other, with what a terminal does to it, and a size that is set at
// one end is that of the other.
func TestBothEnds(t *testing.T) {
	leaks.Check(t)
	keyboard, terminal := pty.Open(t)
	for _, step := range []struct {
		to, from     *os.File
		writes, want string
	}{
		{keyboard, terminal, "typed\n", "typed\n"},
		{nil, keyboard, "", "typed\r\n"}, // the echo
		{terminal, keyboard, "said\n", "said\r\n"},
	} {
		if step.to != nil {
			if _, err := step.to.WriteString(step.writes); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := read(t, step.from, len(step.want)); got != step.want || err != nil {
			t.Errorf("%s has %q, want %q: %v", step.from.Name(), got, step.want, err)
		}
	}

	size := unix.Winsize{Row: 33, Col: 77}
	if err := unix.IoctlSetWinsize(int(keyboard.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		t.Fatal(err)
	}
	if got, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ); err != nil || *got != size {
		t.Errorf("the terminal's size is %+v, want %+v: %v", got, size, err)
	}
}

// TestHangUp: each end notices that the other one was closed.
func TestHangUp(t *testing.T) {
	leaks.Check(t)
	keyboard, terminal := pty.Open(t)
	terminal.Close()
	if got, err := read(t, keyboard, 1); !errors.Is(err, unix.EIO) {
		t.Errorf("without a terminal the keyboard reads %q, %v", got, err)
	}
	keyboard, terminal = pty.Open(t)
	keyboard.Close()
	if got, err := read(t, terminal, 1); err == nil {
		t.Errorf("after the hang-up the terminal reads %q", got)
	}
	if _, err := terminal.WriteString("x"); !errors.Is(err, unix.EIO) {
		t.Errorf("after the hang-up it writes to the terminal: %v", err)
	}
}

// TestClosed: the end of a test closes both ends.
func TestClosed(t *testing.T) {
	var ends [2]*os.File
	t.Run("open", func(t *testing.T) { ends[0], ends[1] = pty.Open(t) })
	for _, end := range ends {
		if end == nil {
			return // the test in it was skipped
		}
		if err := end.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s is open after the test: %v", end.Name(), err)
		}
	}
}
