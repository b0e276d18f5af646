//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Package term is the controlling terminal of the process, and its foreground.
package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// A Terminal is the controlling terminal; nil: there is none.
type Terminal struct{ file *os.File }

// Open opens the controlling terminal of this process; nil: it has none.
func Open() *Terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &Terminal{file}
}

// FD returns the terminal's file descriptor. t must not be nil.
func (t *Terminal) FD() int { return int(t.file.Fd()) }

// Foreground returns the process group in the terminal's foreground; 0: not known, or t is nil.
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

// Give puts a process group into the terminal's foreground. t must not be nil.
func (t *Terminal) Give(group int) {
	_ = unix.IoctlSetPointerInt(t.FD(), unix.TIOCSPGRP, group)
}

// Is reports whether a file is the controlling terminal.
func Is(f any) bool {
	file, ok := f.(*os.File)
	return ok && (&Terminal{file}).Foreground() != 0
}

// Close closes the terminal; it does nothing if t is nil.
func (t *Terminal) Close() {
	if t != nil {
		t.file.Close()
	}
}

// Width returns the number of columns of a terminal; 0 if f is not a terminal, and 80 if it does not know its size.
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
