//go:build unix

package proc

import (
	"os"
	"os/signal"
	"syscall"
)

// Forwarded are the signals that redlock passes on. Not among them are those that the kernel sends about the receiver
// itself (SIGCHLD, SIGPIPE, SIGSEGV ...), SIGURG, which the Go runtime sends to itself, and those of a terminal's job
// control, which go to the whole group (SIGTSTP, SIGCONT, SIGWINCH ...).
var Forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// CatchSignals delivers the signals to a channel until restore is called. A signal that redlock was
// started to ignore, as by nohup, stays ignored; the command inherits that.
func CatchSignals() (signals <-chan os.Signal, restore func()) {
	var catch []os.Signal
	for _, sig := range Forwarded {
		if !signal.Ignored(sig) {
			catch = append(catch, sig)
		}
	}
	ch := make(chan os.Signal, 16) // the runtime does not wait for a reader
	if len(catch) > 0 {            // no signals would mean all of them
		signal.Notify(ch, catch...)
	}

	// If stderr is a pipe without a reader, a line to it must not kill redlock and leave the command alone with the
	// lock. Ignoring the signal is no solution: the command would inherit that.
	pipe := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(pipe, syscall.SIGPIPE)
	}
	return ch, func() {
		signal.Stop(ch)
		signal.Stop(pipe)
	}
}

// SignalNames are those that can be asked for, by their names without SIG.
var SignalNames = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "KILL": syscall.SIGKILL,
	"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

// Ends reports whether a signal usually ends a program.
func Ends(sig os.Signal) bool { return sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 }
