package redisproc

import (
	"fmt"
	"math"
	"os/signal"
	"syscall"
	"unsafe"
)

// LimitFiles makes the server's files as large as they may become, in bytes, as a full disk does: a write that goes
// on fails. Below 0 there is no limit. The server must have been started after IgnoreFileLimit.
func (s *Server) LimitFiles(size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.alive("limit the files of")
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: uint64(size), Max: math.MaxUint64}
	if size < 0 {
		limit.Cur = math.MaxUint64
	}
	const fileSize = 1 // RLIMIT_FSIZE
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(p.pid), fileSize, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("redisproc: limit the files of %s: %w", s.Addr, errno)
	}
	return nil
}

// IgnoreFileLimit makes the servers that are started from now on survive the signal that comes with a write beyond the
// limit: they inherit that this process ignores it.
func IgnoreFileLimit() { signal.Ignore(syscall.SIGXFSZ) }
