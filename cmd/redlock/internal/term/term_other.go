//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

// Package term is the terminal, which cannot be asked on this system.
package term

import (
	"os"
)

// Width is 0, as for a file that is not a terminal.
func Width(*os.File) int { return 0 }
