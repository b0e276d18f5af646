// Package port finds ports of the loopback interface for servers that may be down for a while: nobody else who
// uses this package is given a port that is claimed.
package port

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are drawn from below the range that kernels use for outgoing connections. Otherwise the kernel
// might give a server's port to another connection, or another server, before the restart; worse, a client
// that keeps dialling a dead port of that range can end up connected to itself.
const (
	first = 20000
	last  = 31999

	tries = 20
)

// ErrTaken is part of the error of a server that cannot listen since somebody else does.
var ErrTaken = errors.New("port is taken")

// A Claim keeps a port for a server, whether it runs or not.
type Claim struct {
	Addr   string // host:port
	Number int
	udp    net.PacketConn // the same number's: no process that uses this package starts a server there
}

// Find draws ports until start has a server at one. It is given a listener there, to use or to close. Any error
// of its own but ErrTaken ends that.
func Find(start func(*Claim, net.Listener) error) (*Claim, error) {
	var failed error
	for range tries {
		c, l, err := claim(first + rand.IntN(last-first+1))
		if err != nil {
			failed = err
			continue
		}
		if failed = start(c, l); failed == nil {
			return c, nil
		}
		_ = l.Close()
		c.Close()
		if !errors.Is(failed, ErrTaken) {
			break
		}
	}
	return nil, failed
}

// Reserve claims a port for a server that the caller starts there.
func Reserve() (*Claim, error) {
	return Find(func(_ *Claim, l net.Listener) error { return l.Close() })
}

func claim(number int) (*Claim, net.Listener, error) {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(number))
	udp, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		_ = udp.Close()
		return nil, nil, err
	}
	return &Claim{Addr: addr, Number: number, udp: udp}, l, nil
}

// Close ends the claim. The server does not listen any more.
func (c *Claim) Close() { _ = c.udp.Close() }
