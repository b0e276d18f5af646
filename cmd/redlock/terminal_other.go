//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import "os"

// sentByTerminal reports whether the command has got a signal from the terminal,
// too. Where we cannot ask, twice is better than not at all.
func sentByTerminal(os.Signal) bool { return false }
