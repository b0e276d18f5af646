//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Package term is the controlling terminal of the process, and its foreground.
package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// A Terminal is the controlling terminal; nil: there is none.
type Terminal struct{ file *os.File }

// Open opens it.
func Open() *Terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &Terminal{file}
}

// FD is its file descriptor.
func (t *Terminal) FD() int { return int(t.file.Fd()) }

// Foreground is the process group in its foreground; 0: none, or there is no terminal.
func (t *Terminal) Foreground() int {
	if t == nil {
		return 0
	}
	group, err := foreground(t.FD())
	if err != nil {
		return 0
	}
	return group
}

// Give puts a process group into its foreground.
func (t *Terminal) Give(group int) {
	_ = unix.IoctlSetPointerInt(t.FD(), unix.TIOCSPGRP, group)
}

// Is reports whether a file is the controlling terminal.
func Is(f any) bool {
	file, ok := f.(*os.File)
	return ok && (&Terminal{file}).Foreground() != 0
}

// Close closes it, if there is one.
func (t *Terminal) Close() {
	if t != nil {
		t.file.Close()
	}
}

// Width is the number of columns of a terminal, and 0 if a file is not a terminal. It is 80 for
// a terminal that does not know its size.
func Width(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	switch {
	case err != nil:
		return 0
	case size.Col == 0:
		return 80
	}
	return int(size.Col)
}
