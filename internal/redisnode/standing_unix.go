//go:build unix

package redisnode

import (
	"net"
	"syscall"
	"time"
)

// look looks at a connection over which nothing is expected, as far as its socket knows. Below TLS lies
// the socket; what arrives there now is the end of the connection, or its announcement. A connection
// that a dialer of the caller's has made need have no socket.
func look(conn net.Conn) sight {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secured.NetConn()
	}
	direct, ok := conn.(syscall.Conn)
	if !ok {
		return blind
	}
	_ = conn.SetReadDeadline(time.Time{}) // the last batch's is over, and would end this
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
