//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
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

// isTerminal reports whether something that is read or written is the one that we are in.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && (&terminal{file}).foreground() != 0
}

// dieOf has us end by a signal that has ended our command, or our waiting, if it was for
// all in the foreground of a terminal. A script that runs us was interrupted by Ctrl-C, too,
// and goes on only if we took care of it: which an exit code says, and a signal does not.
func dieOf(sig syscall.Signal) {
	tty := openTerminal()
	defer tty.close()
	if own := syscall.Getpgrp(); own != os.Getpid() && tty.foreground() == own {
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig)
		time.Sleep(time.Second) // the signal may be another thread's
	}
}

func (t *terminal) close() {
	if t != nil {
		t.file.Close()
	}
}
