//go:build !unix

package proc

import (
	"os"
	"os/signal"
	"syscall"
)

// CatchSignals delivers the signals to a channel until restore is called.
func CatchSignals() (signals <-chan os.Signal, restore func()) {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, os.Interrupt)
	return ch, func() { signal.Stop(ch) }
}

// SignalNames are those that can be asked for, by their names without SIG.
var SignalNames = map[string]syscall.Signal{"INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}

// Ends reports whether a signal usually ends a program.
func Ends(os.Signal) bool { return true }
