//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
)

// DieOf ends this process by the signal that has ended the command, or the wait for the lock, if the signal was for all
// processes in the foreground of a terminal. A script that runs redlock got the Ctrl-C, too. The shell goes on with the
// script if redlock has handled the signal, which an exit code means; a death by the signal ends the script. If the
// signal was for redlock alone, DieOf returns.
func DieOf(sig syscall.Signal) {
	tty := term.Open()
	defer tty.Close()
	if own := syscall.Getpgrp(); own != os.Getpid() && tty.Foreground() == own {
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig)
		time.Sleep(time.Second) // another thread may take the signal
	}
}
