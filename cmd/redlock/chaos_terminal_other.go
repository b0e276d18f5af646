//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import "os"

// terminalWidth says of every file that it is no terminal, where we cannot ask.
func terminalWidth(*os.File) int { return 0 }
