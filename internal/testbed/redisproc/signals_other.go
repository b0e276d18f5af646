//go:build !unix

package redisproc

import "syscall"

// Where processes cannot be stopped, sending these is an error.
const (
	sigStop = syscall.Signal(-1)
	sigCont = syscall.Signal(-1)
)
