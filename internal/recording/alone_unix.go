//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package recording

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// alone locks the file of a record until it is closed, if the file system has locks. It returns an error only if another
// process has locked it: each would rename the other's file.
func alone(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another redlock record writes to %s", file.Name())
	}
	return nil // it is locked, or the file system has no locks
}
