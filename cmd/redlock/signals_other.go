//go:build !unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// catchSignals has the signals delivered to a channel until restore is called.
func catchSignals() (signals <-chan os.Signal, restore func()) {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, os.Interrupt)
	return ch, func() { signal.Stop(ch) }
}

// signalNames are those that can be asked for, by their names without SIG.
var signalNames = map[string]syscall.Signal{"INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}

// ends reports whether a signal is one by which people end a program.
func ends(os.Signal) bool { return true }
