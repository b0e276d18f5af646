//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"syscall"
	"unsafe"
)

// terminalWidth is how many columns a terminal has, and 0 if a file is none. One
// that does not know takes for granted what most have.
func terminalWidth(f *os.File) int {
	var size struct{ rows, columns, _, _ uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	switch {
	case errno != 0:
		return 0
	case size.columns == 0:
		return 80
	}
	return int(size.columns)
}
