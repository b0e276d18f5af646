//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"syscall"
	"unsafe"
)

// sentByTerminal reports whether a signal was, as far as one can tell, a key in
// the terminal: then the command, in the same process group, has got it too, and
// would take a second one for impatience. It cannot be told from a kill of our
// process alone while we are in the terminal's foreground; of these two mistakes
// the one that loses a signal which SIGTERM can replace is the smaller.
func sentByTerminal(sig os.Signal) bool {
	if sig != syscall.SIGINT && sig != syscall.SIGQUIT {
		return false
	}
	tty, err := syscall.Open("/dev/tty", syscall.O_RDONLY|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false // we have none
	}
	defer syscall.Close(tty)
	var foreground int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(tty), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&foreground)))
	return errno == 0 && int(foreground) == syscall.Getpgrp()
}
