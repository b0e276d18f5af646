//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package recording

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks the file of a record until it is closed, if the file system has locks. taken: another process has locked it.
func lockFile(file *os.File) (taken bool) {
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
