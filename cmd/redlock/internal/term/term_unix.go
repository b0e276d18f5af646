//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Package term is the terminal that we are in, and its foreground.
package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// A Terminal is the one that we are in; nil: we are in none.
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

// Foreground is the process group that has it; 0: none, or there is no terminal.
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

// Give lets a process group have it.
func (t *Terminal) Give(group int) {
	_ = unix.IoctlSetPointerInt(t.FD(), unix.TIOCSPGRP, group)
}

// Is reports whether something that is read or written is the one that we are in.
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

// Width is how many columns a terminal has, and 0 if a file is none. One
// that does not know takes for granted what most have.
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
