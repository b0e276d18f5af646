package pty

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// Open makes a pseudo-terminal, and returns both of its ends. The end of the test closes them. Where there is none, the
// test is skipped.
func Open(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			need.Skip(t, "in a pseudo-terminal", err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	keyboard = open("/dev/ptmx")
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetUint32(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	return keyboard, open("/dev/pts/" + strconv.FormatUint(uint64(number), 10))
}
