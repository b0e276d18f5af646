package redisnode

import (
	"io"
	"net"
	"testing"

	"github.com/quorumlock/redlock/internal/resp"
)

// TestWhyAGreetingEnds: a server that refuses a connection sends one error and closes it. That error is the reason,
// and a reply to a command is not.
func TestWhyAGreetingEnds(t *testing.T) {
	full := "ERR max number of clients reached"
	for said, want := range map[string]error{
		"-" + full + "\r\n": resp.Error(full),
		"-" + full:          io.EOF,
		"":                  io.EOF,
		"\r\n":              io.EOF,
		"+OK\r\n":           io.EOF,
		"+OK\r\n-ERR unknown command 'DELIFEQ'\r\n":            io.EOF,
		"+OK\r\n-NOPERM no permissions\r\n":                    io.EOF,
		"-ERR unknown subcommand 'INFO'. Try CLIENT HELP.\r\n": io.EOF,
	} {
		for _, piece := range []int{1, 5, 1000} { // a reply may come in pieces
			server, client := net.Pipe()
			go func() {
				defer server.Close()
				for rest := said; rest != ""; {
					n := min(piece, len(rest))
					_, _ = server.Write([]byte(rest[:n]))
					rest = rest[n:]
				}
			}()
			g := newGreeting(client)
			_, _ = io.Copy(io.Discard, g) // until what is no reply, or the end
			if got := g.why(io.EOF); got != want {
				t.Errorf("a server that says %q: %v, want %v", said, got, want)
			}
			client.Close()
		}
	}
}
