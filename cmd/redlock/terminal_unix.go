//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"syscall"
	"unsafe"
)

// A terminal is the one that we are in; nil: we are in none.
type terminal struct{ file *os.File }

func openTerminal() *terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &terminal{file}
}

func (t *terminal) fd() int { return int(t.file.Fd()) }

// foreground is the process group that has it; 0: none, or there is no terminal.
func (t *terminal) foreground() int {
	if t == nil {
		return 0
	}
	var group int32
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, t.file.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group))); errno != 0 {
		return 0
	}
	return int(group)
}

// give lets a process group have it.
func (t *terminal) give(group int) {
	number := int32(group)
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, t.file.Fd(), syscall.TIOCSPGRP, uintptr(unsafe.Pointer(&number)))
}

func (t *terminal) close() {
	if t != nil {
		t.file.Close()
	}
}
