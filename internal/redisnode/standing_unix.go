//go:build unix

package redisnode

import (
	"net"
	"syscall"
	"time"
)

// stands reports whether a connection over which nothing is expected still stands, as far as its
// socket knows. One without a socket of its own (TLS, a proxy of the caller's) counts as standing.
func stands(conn net.Conn) bool {
	direct, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	_ = conn.SetReadDeadline(time.Time{}) // the last batch's is over, and would end this
	socket, err := direct.SyscallConn()
	if err != nil {
		return false
	}
	silent := true
	err = socket.Read(func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), make([]byte, 1)) // does not block
		silent = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && silent
}
