//go:build unix

package redisnode

import (
	"net"
	"syscall"
	"time"
)

// look looks at the socket of conn, over which no reply is owed, without blocking. broken: the end, or bytes, have arrived
// (below TLS, its close_notify); silent: nothing has; blind: conn, from the caller's own dialer, has no socket.
func look(conn net.Conn) sight {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secured.NetConn()
	}
	direct, ok := conn.(syscall.Conn)
	if !ok {
		return blind
	}
	_ = conn.SetReadDeadline(time.Time{}) // the deadline of the last batch is over, and would make the look fail
	socket, err := direct.SyscallConn()
	if err != nil {
		return broken
	}
	saw := silent
	err = socket.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK) // does not block
		if err != syscall.EAGAIN && err != syscall.EWOULDBLOCK {
			saw = broken
		}
		return true
	})
	if err != nil {
		return broken
	}
	return saw
}
