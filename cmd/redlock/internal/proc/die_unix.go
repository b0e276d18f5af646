//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
)

// DieOf has us end by a signal that has ended our command, or our waiting, if it was for
// all in the foreground of a terminal. A script that runs us was interrupted by Ctrl-C, too,
// and goes on only if we took care of it: which an exit code says, and a signal does not.
func DieOf(sig syscall.Signal) {
	tty := term.Open()
	defer tty.Close()
	if own := syscall.Getpgrp(); own != os.Getpid() && tty.Foreground() == own {
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig)
		time.Sleep(time.Second) // the signal may be another thread's
	}
}
