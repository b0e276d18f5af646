//go:build !(windows || linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package recording

import "os"

// alone makes sure that nobody else writes to a record, where that is known how.
func alone(*os.File) error { return nil }
