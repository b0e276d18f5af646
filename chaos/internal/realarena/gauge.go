package realarena

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/chaos/internal/client"
)

// A gauge asks one server for its time again and again.
type gauge struct {
	addr  string
	whole bool // the time of the reply's way counts as well
	start time.Time
	late  []period // from the request to its execution, or, with whole, to the reply
}

func (g *gauge) run(ctx context.Context) {
	var conn net.Conn
	for ctx.Err() == nil {
		var err error
		if conn == nil {
			conn, err = net.DialTimeout("tcp", g.addr, time.Second)
		}
		if err == nil {
			err = g.ask(ctx, conn)
		}
		if err != nil && conn != nil { // a server that is down, or refuses, is not late
			_ = conn.Close()
			conn = nil
		}
		client.Wait(ctx, tick)
	}
	if conn != nil {
		_ = conn.Close()
	}
}

// ask asks for the time. The server's time counts: the reply may have had to wait for this process.
func (g *gauge) ask(ctx context.Context, conn net.Conn) error {
	sent := time.Now()
	done := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer done()
	if _, err := conn.Write([]byte("TIME\r\n")); err != nil {
		return err
	}
	reply := bufio.NewReader(conn)
	var numbers []int64
	for len(numbers) < 2 {
		line, err := reply.ReadString('\n')
		if err != nil {
			return err
		}
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "-"):
			return errors.New(line)
		case line == "" || line[0] == '*' || line[0] == '$':
		default:
			n, err := strconv.ParseInt(line, 10, 64)
			if err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
	}
	took := time.Unix(numbers[0], numbers[1]*1000).Sub(sent)
	if g.whole {
		took = time.Since(sent)
	}
	if took >= worth {
		from := sent.Sub(g.start)
		g.late = append(g.late, period{from, from + took})
	}
	return nil
}
