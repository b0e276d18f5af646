// Package sockerr compares errors of sockets on all systems.
package sockerr

import (
	"errors"
	"syscall"
)

// windows has the numbers that sockets return on Windows. There the constants of package syscall are others, which no
// socket returns; on other systems no error has these numbers.
var windows = map[syscall.Errno]syscall.Errno{
	syscall.EMFILE:       10024,
	syscall.EADDRINUSE:   10048,
	syscall.ECONNABORTED: 10053,
	syscall.ECONNRESET:   10054,
	syscall.ECONNREFUSED: 10061,
}

// Is reports what errors.Is does, also for the number that Windows has for the same error.
func Is(err error, number syscall.Errno) bool {
	other, ok := windows[number]
	return errors.Is(err, number) || ok && errors.Is(err, other)
}
