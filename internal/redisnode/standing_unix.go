//go:build unix

package redisnode

import (
	"net"
	"syscall"
	"time"
)

// look asks the socket of conn, over which no reply is owed, whether something has arrived (broken): the end of the
// connection or, below TLS, its announcement. It does not block. blind: the caller's own dialer has used no socket.
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
