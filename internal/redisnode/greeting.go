package redisnode

import (
	"net"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/wire"
)

// A greeting is a new connection while go-redis greets the server over it. A server that does not want this client
// (maxclients, protected mode) sends an error at once, and closes the connection. go-redis takes that error for the
// reply to its first command, which may fail, and reports that the next one could not be sent: "broken pipe".
//
// Whatever the server says, go-redis reads it within bounds (resp.Bounded).
type greeting struct {
	net.Conn
	replies *resp.Bounded
	said    []byte // the beginning of what was read
}

func newGreeting(conn net.Conn) *greeting {
	return &greeting{Conn: conn, replies: resp.NewBounded(conn)}
}

func (g *greeting) Read(b []byte) (n int, err error) {
	n, err = g.replies.Read(b)
	g.said = append(g.said, b[:min(n, 200-len(g.said))]...)
	return n, err
}

// why returns why the greeting failed: the error that the server sent, if it sent nothing else; otherwise err, which
// go-redis returned. Several lines are replies to commands, and so is an error that says that the server lacks a command:
// then the connection broke between two commands.
func (g *greeting) why(err error) error {
	if wire.IsReply(err) || wire.Classify(err) != wire.Unreachable {
		return err
	}
	said, isError := strings.CutPrefix(string(g.said), "-")
	line, more, whole := strings.Cut(said, "\r\n")
	if !isError || !whole || more != "" || facts.Missing(line) != "" {
		return err
	}
	return resp.Error(line)
}

// Write writes b to the connection. If that fails, it reads for up to 10 ms what the server has sent before it closed
// the connection, so that why can report the server's own reason.
func (g *greeting) Write(b []byte) (n int, err error) {
	if n, err = g.Conn.Write(b); err != nil {
		_ = g.Conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = g.Read(make([]byte, 200))
	}
	return n, err
}
