package redisnode

import (
	"bytes"
	"net"
	"time"

	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/wire"
)

// A greeting is a new connection while go-redis greets the server over it. A server that does not want
// this client (maxclients, protected mode) says so at once, and closes the connection. go-redis takes
// that for the answer to its first command, which may fail, and reports that the next one could not be
// sent: "broken pipe".
type greeting struct {
	net.Conn
	last []byte // what was read last
}

func (g *greeting) Read(b []byte) (n int, err error) {
	n, err = g.Conn.Read(b)
	if n > 0 {
		g.last = append(g.last[:0], b[:min(n, 200)]...)
	}
	return n, err
}

// why is the reason for an error of the connection: the error that the server sent last, if there is one.
func (g *greeting) why(err error) error {
	if wire.IsReply(err) || wire.Classify(err) != wire.Unreachable {
		return err
	}
	if line, _, whole := bytes.Cut(g.last, []byte("\r\n")); whole && line[0] == '-' {
		return resp.Error(line[1:])
	}
	return err
}

// Write sends what is left to read of a connection that the server has closed to g.last.
func (g *greeting) Write(b []byte) (n int, err error) {
	if n, err = g.Conn.Write(b); err != nil {
		_ = g.Conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = g.Read(make([]byte, 200))
	}
	return n, err
}
