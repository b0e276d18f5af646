package redisproc

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// askWithin bounds one question. The server is on this machine, and serves only this process.
const askWithin = 2 * time.Second

// CPU is the processor time, user and system, of the present run of the server,
// to a hundredth of a second. It can be read while the server hangs.
func (s *Server) CPU() (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.alive("CPU")
	if err != nil {
		return 0, err
	}
	return p.cpu()
}

// Commands is the number of commands that the present run of the server has executed. The question
// itself is two commands (PING and INFO), and the count includes the first. So the difference of two
// readings has two commands that are not the caller's.
func (s *Server) Commands() (int64, error) {
	n, err := askNumber(s.Addr, "stats", "total_commands_processed")
	if err != nil {
		return 0, fmt.Errorf("redisproc: %w", err)
	}
	return n, nil
}

func askPid(addr string) (int, error) {
	n, err := askNumber(addr, "server", "process_id")
	return int(n), err
}

// askNumber reads one field of INFO over a connection of its own. It speaks
// Redis' inline form, which needs no client library. The PING is for servers that
// are still loading their data: those answer INFO, but not yet anything else.
func askNumber(addr, section, field string) (int64, error) {
	conn, err := net.DialTimeout("tcp", addr, askWithin)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(askWithin)); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(conn, "PING\r\nINFO "+section+"\r\n"); err != nil {
		return 0, err
	}
	r := bufio.NewReader(conn)
	pong, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if pong != "+PONG\r\n" {
		return 0, fmt.Errorf("answer to PING: %q", pong)
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("no field %s in INFO %s: %w", field, section, err)
		}
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
}
